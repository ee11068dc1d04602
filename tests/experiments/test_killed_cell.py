"""A cell that was killed goes on: what is behind it is not done again."""

import subprocess
import sys
import time
from pathlib import Path

import pytest

from episodic_curiosity.experiments.forecast import forecast
from episodic_curiosity.experiments.runner import run_cell
from episodic_curiosity.experiments.status import run_folder
from episodic_curiosity.runs.metrics_files import read_timing
from tests.experiments.small_table import settings, small_cell

pytestmark = pytest.mark.slow

NUM_UPDATES, AT_LEAST = 60, 6
ROOT = Path(__file__).parents[2]
PROGRAM = f"""
import sys
from pathlib import Path
from episodic_curiosity.experiments.runner import run_cell
from tests.experiments.small_table import settings, small_cell
cell = small_cell("maze/sparse", "ppo", num_updates={NUM_UPDATES})
run_cell(cell, settings(Path(sys.argv[1])))
"""


def test_a_killed_cell_goes_on_from_its_newest_checkpoint(tmp_path):
    cell = small_cell("maze/sparse", "ppo", num_updates=NUM_UPDATES)
    folder = run_folder(cell, settings(tmp_path).runs)
    process = subprocess.Popen([sys.executable, "-c", PROGRAM, str(tmp_path)], cwd=ROOT)
    deadline = time.monotonic() + 600
    while newest(folder) < AT_LEAST:
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.01)
    process.kill()
    process.wait()
    behind = newest(folder)
    assert AT_LEAST <= behind < NUM_UPDATES
    # No two runs take the same time: lines that are kept are of updates that were.
    kept = read_timing(folder)[:behind]
    (entry,) = forecast([cell], tmp_path / "results", tmp_path / "runs", episodes=8)
    assert entry.state == "interrupted"
    assert entry.steps_left <= cell.key.steps - 40 * behind

    assert run_cell(cell, settings(tmp_path)).state == "done"
    lines = read_timing(folder)
    assert lines[:behind] == kept
    assert len(lines) == NUM_UPDATES
    assert lines[-1]["seconds"] > kept[-1]["seconds"]


def newest(folder: Path) -> int:
    """The number of updates behind the newest checkpoint."""
    return max((int(path.name) for path in folder.glob("checkpoints/[0-9]*")), default=0)
