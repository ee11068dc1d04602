"""Removes the names of shared memory that engines left when they were killed while starting."""

import contextlib
import os
import time
from pathlib import Path

SHARED_MEMORY = Path("/dev/shm")
LONGEST_START = 600.0  # seconds; names are used only until an engine has started


def remove_leftovers() -> None:
    """Removes this user's names that no start can still need; mapped memory stays usable."""
    oldest = time.time() - LONGEST_START
    for file in SHARED_MEMORY.glob("ViZDoom*"):
        with contextlib.suppress(OSError):  # another process was faster
            found = file.lstat()
            if found.st_uid == os.getuid() and found.st_mtime < oldest:
                file.unlink()
