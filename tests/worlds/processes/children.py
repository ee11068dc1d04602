"""What processes there are, and whether they end."""

import os
import time
from pathlib import Path

PATIENCE = 120.0  # seconds, on a machine that has other things to do


def members(group: int) -> dict[int, str]:
    """The processes of a group that have not ended, and their commands."""
    found = {}
    for entry in Path("/proc").iterdir():
        try:
            command, _, rest = (entry / "stat").read_text().partition("(")[2].rpartition(")")
            state, _, its_group = rest.split()[:3]
        except (OSError, ValueError):
            continue  # no process, or no longer one
        if int(its_group) == group and state not in "ZX":
            found[int(entry.name)] = command
    return found


def engines(groups: list[int]) -> list[int]:
    """The processes of ViZDoom in these groups."""
    found = [members(group) for group in groups]
    return [pid for group in found for pid, name in group.items() if name == "vizdoom"]


def have_ended(groups: list[int]) -> bool:
    """Whether all processes of these groups end in time."""
    return eventually(lambda: not any(members(group) for group in groups))


def eventually(condition) -> bool:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def shared_memory() -> set[str]:
    """The names of what engines of ViZDoom share with their workers."""
    return {name for name in os.listdir("/dev/shm") if name.startswith("ViZDoom")}
