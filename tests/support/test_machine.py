"""The machine: memory that a process keeps."""

import subprocess
import sys

import pytest

PROGRAM = """
import resource, torch
from episodic_curiosity.support.machine import reusing_freed_memory

def faults_again():
    faults = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    before = faults()
    for _ in range(5):
        torch.ones(20_000_000)  # 80 MB, 19,531 pages
    return faults() - before

def resident():
    lines = dict(line.split(":") for line in open("/proc/self/status") if ":" in line)
    return int(lines["VmRSS"].split()[0]) // 1024

faults_again()
print(faults_again())
with reusing_freed_memory():
    faults_again()
    # A system may take pages back at any time: the best of four.
    print(min(faults_again() for _ in range(4)), resident())
print(resident())
"""


LIMITED = """
import resource, torch
from episodic_curiosity.support.machine import free_bytes
pages = int(open("/proc/self/statm").read().split()[0])
used = pages * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (1 << 28), resource.RLIM_INFINITY))
print(free_bytes(torch.device("cpu")))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_limit_of_the_shell_counts():
    """`ulimit -v` leaves a process less than the machine has."""
    said = subprocess.run(
        [sys.executable, "-c", LIMITED], capture_output=True, text=True, check=True
    )
    assert 1 << 27 < int(said.stdout) <= 1 << 28


@pytest.mark.skipif(sys.platform != "linux", reason="glibc's option")
def test_freed_memory_is_used_again_and_returned_at_the_end():
    said = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True
    ).stdout.split()
    before, within, held, returned = map(int, said)
    assert before > 100  # or there is nothing to save
    assert within < before / 2  # the heap may grow once more
    assert returned < held - 60  # MB: the 80 that were freed
