"""A folder of compiled levels: Lab compiles a maze in 10 s and reads it in 1 s."""

import fcntl
import hashlib
import os
import shutil
from pathlib import Path


class LevelCache:
    """A level cache for `deepmind_lab.Lab`; any number of processes may share one.

    Writes are atomic: a level is written under a temporary name, then renamed.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def fetch(self, key: str, pk3_path: str) -> bool:
        """Copies a compiled level to `pk3_path`; returns whether it was cached."""
        try:
            shutil.copyfile(self._file(key), pk3_path)
        except FileNotFoundError:
            return False
        return True

    def write(self, key: str, pk3_path: str) -> None:
        """Stores a compiled level, one writer at a time."""
        file = self._file(key)
        with (self._folder / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if file.exists():
                return
            unfinished = file.with_suffix(".unfinished")
            shutil.copyfile(pk3_path, unfinished)
            os.replace(unfinished, file)

    def _file(self, key: str) -> Path:
        """The file of a key; hashed, because keys contain characters not allowed in names."""
        return self._folder / f"{hashlib.sha256(key.encode()).hexdigest()}.pk3"
