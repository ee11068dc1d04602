"""Files in folders that may come from a stranger: none hangs, none leads elsewhere.

Whatever is read is a regular file of bounded size: a named pipe would block for ever, a device
never ends. Whatever is written is a file of the folder itself: a symbolic link planted under
its name would have another file overwritten.
"""

import contextlib
import os
import shutil
import stat
from pathlib import Path
from typing import BinaryIO


class UnfitFileError(ValueError):
    """A file that is not read or written; the message names it and says why."""


def open_file(path: Path) -> BinaryIO:
    """A regular file, open for reading."""
    return _open(path, os.O_RDONLY)


def read_file(path: Path, max_bytes: int) -> bytes:
    """The content of a regular file of at most so many bytes."""
    with open_file(path) as file:
        size = os.fstat(file.fileno()).st_size
        if size > max_bytes:
            raise UnfitFileError(
                f"{path} has {size:,} bytes, at most {max_bytes:,} are read of such a file"
            )
        return file.read(size)


def create_file(path: Path) -> BinaryIO:
    """A new empty file, open for reading and writing; what had that name before is removed."""
    with contextlib.suppress(FileNotFoundError):
        path.unlink()  # a link goes, not what it leads to
    return _open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW)


def append_to_file(path: Path) -> BinaryIO:
    """A file to append to, made where there is none; a symbolic link is refused."""
    return _open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW)


def change_file(path: Path) -> BinaryIO:
    """A file to read and write in place; a symbolic link is refused."""
    return _open(path, os.O_RDWR | os.O_NOFOLLOW)


def check_own(*paths: Path) -> None:
    """Raises where one of these is a symbolic link: what is written there goes elsewhere."""
    for path in paths:
        if path.is_symlink():
            raise UnfitFileError(
                f"{path} is a symbolic link to {os.readlink(path)}; it must be a file or folder"
            )


def is_bare(name: str) -> bool:
    """Whether a file's name says nothing of where the file is."""
    return Path(name).name == name


def remove_folder(path: Path, *, ignore_errors: bool = False) -> None:
    """Removes a folder with all that is in it; of a link or a file, that alone."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=ignore_errors)
    else:
        path.unlink(missing_ok=True)


def _open(path: Path, flags: int) -> BinaryIO:
    """Opens a regular file; without O_NONBLOCK a named pipe would wait for its other end."""
    if flags & os.O_NOFOLLOW:
        check_own(path)
    descriptor = os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC, 0o666)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise UnfitFileError(f"{path} is no regular file")
    if flags & os.O_ACCMODE == os.O_RDONLY:
        return os.fdopen(descriptor, "rb")
    return os.fdopen(descriptor, "ab" if flags & os.O_APPEND else "r+b")
