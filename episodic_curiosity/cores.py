"""How much of this machine's CPU there is to use."""

import os


def num_cores() -> int:
    """The cores that this process may use where the system tells, all elsewhere."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
