"""Work on a disk that is full, read-only or refuses large files; then there is room again.

Each attempt has its own small file system (tmpfs), mounted where only its process sees it.
"""

import argparse
import ctypes
import os
import random
import resource
import shutil
import tempfile
from collections import Counter
from pathlib import Path

from benchmarks.soak.killing import CONTEXT, PATIENCE, play_on, start_server
from benchmarks.soak.works import Table, Work, a_fit, play_here, training

KINDS = ("full disk", "read-only", "file too large")
CLONE_NEWNS, CLONE_NEWUSER = 0x00020000, 0x10000000
MS_RDONLY, MS_REMOUNT, MS_REC, MS_PRIVATE = 1, 32, 16384, 1 << 18
ROOM = 1 << 30  # bytes, once there is room again
STOPPED, SURVIVED = "the fault stopped it", "it had room enough"
NUM_UPDATES = 6


def fill_disks(options: argparse.Namespace) -> list[str]:
    """Prints a table of disk faults; returns what was not as it should be."""
    works: list[Work] = [
        training("maze", "ppo+ec", NUM_UPDATES),
        training("maze", "ppo+eco", NUM_UPDATES),
        training("gymnasium", "ppo+eco", NUM_UPDATES),  # frames are in a file
        a_fit(),
        Table(),
    ]
    print(f"\n{options.disks} disk faults of each kind for each work, seed {options.seed}")
    print(f"\n| work | fault | {STOPPED} | {SURVIVED} | different | wrong |")
    print("|---" * 6 + "|", flush=True)
    start_server()
    wrong: list[str] = []
    for work in works:
        with tempfile.TemporaryDirectory() as folder:
            assert play_on(work, Path(folder) / "whole").code == 0
            wanted = work.left(Path(folder) / "whole")
            size = sum(
                path.stat().st_size for path in Path(folder).rglob("*") if path.is_file()
            )
        for kind in KINDS:
            draw = random.Random(f"{work.name} {kind} {options.seed}")
            counts: Counter[str] = Counter()
            for _ in range(options.disks):
                with tempfile.TemporaryDirectory() as folder:
                    most = draw.randrange(1, int(1.2 * size))
                    said = _attempt(work, Path(folder), kind, most)
                    counts[said] += 1
                    if said not in (STOPPED, SURVIVED):
                        wrong.append(f"{work.name}, {kind} of {most:,} bytes: {said}")
                    elif work.left(Path(folder) / "left") != wanted:
                        counts["different"] += 1
                        wrong.append(f"{work.name}, {kind} of {most:,} bytes: files differ")
            good = counts[STOPPED], counts[SURVIVED], counts["different"]
            bad = counts.total() - sum(good)
            print(
                f"| {work.name} | {kind} | {' | '.join(map(str, good))} | {bad} |", flush=True
            )
    return wrong


def _attempt(work: Work, folder: Path, kind: str, most: int) -> str:
    """Plays on such a disk and, if that fails, once more with room; says how it went."""
    process = CONTEXT.Process(target=_play_on_disk, args=(work, folder, kind, most))
    process.start()
    process.join(PATIENCE)
    if process.is_alive():
        process.kill()
        process.join()
        return "it hangs"
    said = folder / "said"
    return said.read_text() if said.exists() else f"exit code {process.exitcode}"


def _play_on_disk(work: Work, folder: Path, kind: str, most: int) -> None:
    disk = folder / "disk"
    disk.mkdir()
    _mount(disk, most if kind == "full disk" else ROOM)
    if kind == "read-only":
        _remount(disk, f"size={ROOM}", MS_RDONLY)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    if kind == "file too large":
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, before[1]))
    said = SURVIVED
    try:
        play_here(work, disk / "run")
    except (OSError, ValueError, AssertionError) as error:
        # The table's outcome is an assertion: a cell that fails is reported, not raised.
        said = STOPPED if "\n" not in str(error) else f"several lines: {error}"
    except BaseException as error:
        said = f"{type(error).__name__}: {error}"
    resource.setrlimit(resource.RLIMIT_FSIZE, before)
    if said == STOPPED:
        _remount(disk, f"size={ROOM}", 0)
        try:
            work.play(disk / "run")
        except BaseException as error:
            said = f"with room again, {type(error).__name__}: {error}"
    if said in (STOPPED, SURVIVED):
        shutil.copytree(disk / "run", folder / "left")
    (folder / "said").write_text(said)


def _mount(folder: Path, size: int) -> None:
    """Mounts a file system for this process alone."""
    libc = ctypes.CDLL(None, use_errno=True)
    uid, gid = os.getuid(), os.getgid()
    if libc.unshare(CLONE_NEWNS if uid == 0 else CLONE_NEWNS | CLONE_NEWUSER):
        raise OSError(ctypes.get_errno(), "a mount of one's own is not allowed here")
    if uid:
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"0 {uid} 1")
        Path("/proc/self/gid_map").write_text(f"0 {gid} 1")
    _call_mount(libc, b"none", b"/", b"", MS_REC | MS_PRIVATE, b"")
    page = resource.getpagesize()
    blocks = max(1, size // page) * page  # 0 would mean without limit
    _call_mount(libc, b"tmpfs", bytes(folder), b"tmpfs", 0, f"size={blocks}".encode())


def _remount(folder: Path, options: str, flags: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    _call_mount(libc, b"tmpfs", bytes(folder), b"tmpfs", MS_REMOUNT | flags, options.encode())


def _call_mount(
    libc: ctypes.CDLL, source: bytes, target: bytes, kind: bytes, flags: int, data: bytes
) -> None:
    if libc.mount(source, target, kind, ctypes.c_ulong(flags), data):
        raise OSError(ctypes.get_errno(), f"mount of {target!r} failed")
