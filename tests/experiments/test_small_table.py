"""A whole small table, here and on a real Ray, killed in the middle and started again.

Every program of these tests computes on one thread, so that all have to leave the same bytes.
"""

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from episodic_curiosity.experiments.results import load_results
from tests.experiments.small_table import METHODS, TASKS, final_files

pytestmark = pytest.mark.slow

NUM_CELLS = len(TASKS) * len(METHODS)
PATIENCE = 600.0  # seconds until a test gives up
ROOT = Path(__file__).parents[2]
DONE = re.compile(r"small (\S+) \(.*: done in")


class Program:
    """`python -m tests.experiments.small_table`, and what it says."""

    def __init__(self, folder: Path, *arguments: str, name: str = "said") -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._said = folder / f"{name}.txt"
        self._folder = folder
        with open(self._said, "wb") as said:
            self._process = subprocess.Popen(
                [
                    sys.executable,
                    "-m",
                    "tests.experiments.small_table",
                    str(folder),
                    *arguments,
                ],
                cwd=ROOT,
                env=os.environ | {"OMP_NUM_THREADS": "1"},
                stdout=said,
                stderr=subprocess.STDOUT,
            )

    def kill_after(self, num_results: int) -> None:
        """SIGKILL, once so many results are there and another cell has been begun."""
        wait_until(lambda: len(results(self._folder)) >= num_results, self)
        wait_until(lambda: holders(self._folder), self)
        self._process.kill()
        self._process.wait()

    def terminate(self) -> None:
        self._process.terminate()
        self._process.wait(PATIENCE)

    def end(self) -> None:
        assert self._process.wait(PATIENCE) == 0, self.said

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    @property
    def said(self) -> str:
        return self._said.read_text()

    @property
    def done(self) -> list[str]:
        """The cells that it says it has measured."""
        return DONE.findall(self.said)


def wait_until(condition, program: Program) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert program.is_alive, program.said
        assert time.monotonic() < deadline, program.said
        time.sleep(0.01)


def results(folder: Path) -> list[Path]:
    found = (folder / "results").glob("*/[!.]*.json")
    return [path for path in found if not path.name.endswith(".timing.json")]


def holders(folder: Path) -> list[int]:
    """The processes that have a cell of these results."""
    locks, pids = {*(folder / "results").glob("*/.*.lock")}, set()
    for link in Path("/proc").glob("[0-9]*/fd/*"):
        with contextlib.suppress(OSError):  # it has ended, or is another user's
            if Path(os.readlink(link)) in locks:
                pids.add(int(link.parts[2]))
    return sorted(pids)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory) -> dict[str, bytes]:
    """What the table leaves if nobody kills anything."""
    folder = tmp_path_factory.mktemp("undisturbed")
    program = Program(folder)
    program.end()
    assert len(program.done) == NUM_CELLS
    loaded = load_results(folder / "results")
    assert not loaded.problems
    assert {(result.key.task, result.key.method) for result in loaded.results} == {
        (task, method) for task in TASKS for method in METHODS
    }
    return final_files(folder)


def test_two_processes_killed_and_started_again(undisturbed, tmp_path):
    """No cell is measured twice, and what is left is as if nothing had happened."""
    first, second = Program(tmp_path, name="first"), Program(tmp_path, name="second")
    first.kill_after(2)
    second.kill_after(4)
    third = Program(tmp_path, name="third")
    third.end()
    assert final_files(tmp_path) == undisturbed
    done = first.done + second.done + third.done
    assert len(done) == len(set(done))
    assert len(third.done) <= NUM_CELLS - 4
    # A kill between the result and the word about it leaves a cell unsaid.
    assert NUM_CELLS - 2 <= len(done) <= NUM_CELLS


def test_side_by_side_with_a_process_killed(undisturbed, tmp_path):
    """It is started again and resumes; stopping the first program stops all."""
    first = Program(tmp_path, "side-by-side", name="first")
    wait_until(lambda: results(tmp_path) and len(holders(tmp_path)) == 2, first)
    os.kill(holders(tmp_path)[0], signal.SIGKILL)
    wait_until(lambda: "started again" in first.said and len(results(tmp_path)) >= 3, first)
    first.terminate()  # the cells in progress may end before it stops
    assert not holders(tmp_path)
    Program(tmp_path, "side-by-side", name="second").end()
    assert final_files(tmp_path) == undisturbed


def test_on_ray_with_a_worker_and_the_driver_killed(undisturbed, tmp_path):
    first = Program(tmp_path, "auto", name="first")
    wait_until(lambda: results(tmp_path) and holders(tmp_path), first)
    worker = holders(tmp_path)[0]
    os.kill(worker, signal.SIGKILL)
    first.kill_after(4)
    assert "steps): failed" not in first.said  # the killed worker's cell was tried again
    second = Program(tmp_path, "auto", name="second")
    second.end()
    assert final_files(tmp_path) == undisturbed
    done = first.done + second.done
    assert len(done) == len(set(done))
    wait_until_gone(tmp_path)


def wait_until_gone(folder: Path) -> None:
    """Nothing that was started may go on working."""
    deadline = time.monotonic() + PATIENCE
    while holders(folder):
        assert time.monotonic() < deadline
        time.sleep(0.1)
