"""This machine: cores, devices, free memory and free disk space."""

import ctypes
import os
import platform
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import torch

from episodic_curiosity.support.checks import usable_device

# Parameters of glibc's mallopt, from malloc.h.
TRIM_THRESHOLD, MOST_MAPPINGS = -1, -4
OUT_OF_MEMORY = re.compile(  # in what a RuntimeError says
    "DefaultCPUAllocator: can't allocate memory"
    "|std::bad_alloc"
    "|could not create a primitive$"  # oneDNN, which gives no reason
    "|CUDA error: out of memory"  # from CUDA itself, not from torch's allocator
    "|STATUS_ALLOC_FAILED"  # cuBLAS, cuSOLVER
)


def num_cores() -> int:
    """The number of cores this process may use, or of all cores if the system does not say."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def processor_name() -> str:
    """The CPU's model name on Linux, its architecture elsewhere."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def find_device(name: str) -> torch.device:
    """The device of that name; "auto" is a GPU if there is one."""
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    return usable_device(name)


def free_bytes(device: torch.device) -> int | None:
    """The free memory of the device in bytes; None if unknown."""
    if device.type == "cuda":  # torch keeps memory that was freed
        kept = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        return int(torch.cuda.mem_get_info(device)[0]) + kept
    meminfo = Path("/proc/meminfo")
    if not meminfo.exists():
        return None
    import resource  # not on every system

    sizes = dict(line.split(":", 1) for line in meminfo.read_text().splitlines())
    free = int(sizes["MemAvailable"].split()[0]) * 1024
    most, _ = resource.getrlimit(resource.RLIMIT_AS)  # as of `ulimit -v`
    if most == resource.RLIM_INFINITY:
        return free
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    return max(0, min(free, most - pages * resource.getpagesize()))


def check_memory(what: str, num_bytes: int, device: torch.device, advice: str) -> None:
    """Raises if something would not fit into the device's free memory."""
    free = None if device.type == "meta" else free_bytes(device)  # meta takes none
    if free is not None and num_bytes > free:
        raise MemoryError(
            f"{what} needs {num_bytes / 1e9:.1f} GB, {device} has {free / 1e9:.1f} GB free: "
            f"{advice}"
        )


@contextmanager
def reusing_freed_memory() -> Iterator[None]:
    """Lets this process reuse memory that it frees, instead of returning it to the system.

    A gradient step frees all its activations. glibc returns large ones to the system
    immediately, which then clears the same pages again for the next step: a quarter of the time
    of ICM's update. At the end everything is returned. Other C libraries are not changed.
    """
    mallopt = _of_glibc("mallopt")
    if mallopt is None:
        yield
        return
    mallopt(MOST_MAPPINGS, 0)  # nothing is mapped on its own,
    mallopt(TRIM_THRESHOLD, -1)  # and the heap never shrinks
    try:
        yield
    finally:
        mallopt(MOST_MAPPINGS, 65_536)  # glibc's defaults
        mallopt(TRIM_THRESHOLD, 128 * 1024)
        return_freed_memory()


def return_freed_memory() -> None:
    """Returns freed memory to the system, such as that of data which are no longer needed."""
    trim = _of_glibc("malloc_trim")
    if trim is not None:
        trim(0)


def _of_glibc(name: str) -> Callable[..., int] | None:
    if sys.platform != "linux":
        return None
    function: Callable[..., int] | None = getattr(ctypes.CDLL(None), name, None)
    return function


def is_out_of_memory(error: BaseException) -> bool:
    """True for torch's errors of a full memory, on a GPU or a CPU."""
    is_full = OUT_OF_MEMORY.search(str(error)) is not None
    return isinstance(error, torch.OutOfMemoryError) or is_full


def free_on_disk(path: Path, *others: Path) -> int:
    """Free disk space for these files of one folder; space they already use counts as free."""
    there = sum(file.stat().st_size for file in (path, *others) if file.exists())
    folder = next(folder for folder in path.absolute().parents if folder.exists())
    return shutil.disk_usage(folder).free + there
