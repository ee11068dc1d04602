"""Processes that outlive the one that started them.

This process adopts them: a descendant whose parent has died becomes its child.
"""

import contextlib
import ctypes
import os
import time
from pathlib import Path

PR_SET_CHILD_SUBREAPER = 36
PATIENCE = 15.0  # seconds that orphans get to notice and end


def adopt_orphans() -> None:
    """Makes orphaned descendants children of this process."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "orphans cannot be adopted")


def children() -> set[int]:
    """Process ids of this process's children."""
    tasks = Path("/proc/self/task").iterdir()
    return {int(pid) for task in tasks for pid in (task / "children").read_text().split()}


def orphans_left(known: set[int]) -> list[str]:
    """Waits for children other than `known` to end; returns those that do not."""
    deadline = time.monotonic() + PATIENCE
    while (left := children() - known) and time.monotonic() < deadline:
        for pid in left:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)
        time.sleep(0.02)
    return [_command(pid) for pid in left]


def _command(pid: int) -> str:
    with contextlib.suppress(OSError):
        words = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
        return f"process {pid}: {words[:200]}"
    return f"process {pid}"
