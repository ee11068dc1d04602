"""Compiled levels in a folder: a maze takes Lab ten seconds to compile and one to read."""

import fcntl
import hashlib
import os
import shutil
from pathlib import Path


class LevelCache:
    """What `deepmind_lab.Lab` takes for a level cache; any number of processes may share one.

    A level is written under another name and renamed: who reads it sees all of it or nothing.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def fetch(self, key: str, pk3_path: str) -> bool:
        """Copies a compiled level to where Lab wants it; says whether there is one."""
        try:
            shutil.copyfile(self._file(key), pk3_path)
        except FileNotFoundError:
            return False
        return True

    def write(self, key: str, pk3_path: str) -> None:
        """Keeps what Lab has just compiled, one writer at a time."""
        file = self._file(key)
        with (self._folder / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if file.exists():
                return
            unfinished = file.with_suffix(".unfinished")
            shutil.copyfile(pk3_path, unfinished)
            os.replace(unfinished, file)

    def _file(self, key: str) -> Path:
        """A key holds a hash of the level, and whatever else a file's name may not."""
        return self._folder / f"{hashlib.sha256(key.encode()).hexdigest()}.pk3"
