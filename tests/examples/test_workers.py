"""Processes that train side by side."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from examples import workers

PARENT = """
import time
from tests.examples.test_workers import report_and_sleep
from examples.workers import workers

if __name__ == "__main__":
    with workers() as pool:
        pool.submit(report_and_sleep).result()
"""


def report_and_sleep() -> None:
    print(os.getpid(), flush=True)
    time.sleep(300)


@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGKILL])
def test_a_process_ends_with_its_parent(sent, tmp_path):
    script = tmp_path / "parent.py"
    script.write_text(PARENT)
    root = str(Path(workers.__file__).parents[1])
    command, env = [sys.executable, script], os.environ | {"PYTHONPATH": root}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=env) as parent:
        assert parent.stdout is not None
        worker = int(parent.stdout.readline())
        parent.send_signal(sent)
        parent.wait(timeout=30)
        deadline = time.monotonic() + 30
        while is_running(worker):
            assert time.monotonic() < deadline
            time.sleep(0.1)


def is_running(pid: int) -> bool:
    """True if it runs: a process that has ended may wait for init to look at it."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"
