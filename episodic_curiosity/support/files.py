"""Opens files in untrusted folders.

Only regular files of bounded size are read: a named pipe would block for ever, and a device
never ends. Only files of the folder itself are written: a symbolic link planted under the
file's name could otherwise overwrite any other file.
"""

import contextlib
import os
import shutil
import stat
from pathlib import Path
from typing import BinaryIO


class UnfitFileError(ValueError):
    """A file is not read or written; the message names it and says why."""


def open_file(path: Path) -> BinaryIO:
    """Opens a regular file for reading."""
    return _open(path, os.O_RDONLY)


def read_file(path: Path, max_bytes: int) -> bytes:
    """Reads a regular file of at most `max_bytes`."""
    with open_file(path) as file:
        size = os.fstat(file.fileno()).st_size
        if size > max_bytes:
            raise UnfitFileError(f"{path} must have at most {max_bytes:,} bytes, got {size:,}")
        return file.read(size)


def create_file(path: Path) -> BinaryIO:
    """Opens a new, empty file for reading and writing; an older entry is removed first."""
    with contextlib.suppress(FileNotFoundError):
        path.unlink()  # removes a link, not its target
    return _open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW)


def append_to_file(path: Path) -> BinaryIO:
    """Opens a file for appending, creating it if needed; refuses a symbolic link."""
    return _open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW)


def change_file(path: Path) -> BinaryIO:
    """Opens an existing file for reading and writing; refuses a symbolic link."""
    return _open(path, os.O_RDWR | os.O_NOFOLLOW)


def check_own(*paths: Path) -> None:
    """Raises if one of these is a symbolic link, which would redirect writes."""
    for path in paths:
        if path.is_symlink():
            raise UnfitFileError(
                f"{path} must be a file or folder, got a symbolic link to {os.readlink(path)}"
            )


def is_bare(name: str) -> bool:
    """True if this is the name of a file without a folder."""
    return Path(name).name == name


def remove_folder(path: Path, *, ignore_errors: bool = False) -> None:
    """Removes a folder and its content, or a link or file of that name."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=ignore_errors)
    else:
        path.unlink(missing_ok=True)


def _open(path: Path, flags: int) -> BinaryIO:
    """Opens a regular file; O_NONBLOCK keeps a named pipe from blocking."""
    if flags & os.O_NOFOLLOW:
        check_own(path)
    descriptor = os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC, 0o666)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise UnfitFileError(f"{path} is not a regular file")
    if flags & os.O_ACCMODE == os.O_RDONLY:
        return os.fdopen(descriptor, "rb")
    return os.fdopen(descriptor, "ab" if flags & os.O_APPEND else "r+b")
