"""The machine: memory that a process keeps."""

import subprocess
import sys

import pytest

PROGRAM = """
import resource, torch
from episodic_curiosity.support.machine import keep_freed_memory

def faults_again():
    faults = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    before = faults()
    for _ in range(5):
        torch.ones(20_000_000)  # 80 MB, 19,531 pages
    return faults() - before

faults_again()
print(faults_again(), keep_freed_memory(), faults_again(), faults_again())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="glibc's option")
def test_freed_memory_is_used_again_without_the_system():
    said = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True
    ).stdout.split()
    if said[1] == "False":
        pytest.skip("the C library has no such option")
    before, after = int(said[0]), int(said[3])
    assert before > 100  # or there is nothing to save
    assert after < before / 2  # the heap may grow once more
