"""The status of a cell, from the folders of results and runs; changes nothing.

The runner and the forecast both use it.
"""

from pathlib import Path
from typing import Literal, NamedTuple

from episodic_curiosity.experiments.cells import Cell, why_stale
from episodic_curiosity.experiments.measure import Measured
from episodic_curiosity.experiments.results import read_measured, read_result
from episodic_curiosity.experiments.sources import fingerprint_in
from episodic_curiosity.runs.checkpoints import Checkpoints
from episodic_curiosity.runs.config import in_full
from episodic_curiosity.runs.metrics_files import read_metrics
from episodic_curiosity.runs.record import CONFIG, differences, read_config, shown
from episodic_curiosity.runs.train import MAY_DIFFER
from episodic_curiosity.support.saving import LoadError, UnreadableError
from episodic_curiosity.support.version import code_version

# stale: measured or begun with another config than the cell has today; unreadable: unknown, so
# nothing is done. In the last three states the cell is to be measured.
CellState = Literal["done", "stale", "unreadable", "damaged", "interrupted", "missing"]
TO_MEASURE = ("damaged", "interrupted", "missing")


class CellStatus(NamedTuple):
    """How far a cell is."""

    state: CellState
    reason: str = ""  # why it does not count, and what to do about it
    steps: int = 0  # done by its run

    @property
    def is_to_measure(self) -> bool:
        return self.state in TO_MEASURE


def find_status(cell: Cell, results: Path, runs: Path, episodes: int) -> CellStatus:
    """Checks the cell's result and, where none counts, its run."""
    path, run = results / cell.key.path, _run_status(cell, runs, episodes)
    try:
        result = read_result(path)
    except UnreadableError as error:
        return run if _is_missing(path) else CellStatus("unreadable", str(error))
    except LoadError as error:
        return CellStatus("damaged", str(error), run.steps) if run.is_to_measure else run
    if reason := why_stale(result, cell, episodes):
        paths = [path, run_folder(cell, runs)] if run.state == "stale" else [path]
        words = " and ".join(map(str, paths))
        return CellStatus("stale", f"{path} {reason}; remove {words} to measure it again")
    return CellStatus("done")


def run_folder(cell: Cell, runs: Path) -> Path:
    """The folder of a cell's run."""
    return runs / cell.key.path.with_suffix("")


def kept_path(cell: Cell, runs: Path) -> Path:
    """The path of a result that has been measured but not yet written to the results."""
    return run_folder(cell, runs) / "result.json"


def find_kept(cell: Cell, runs: Path, episodes: int) -> Measured | None:
    """The result at `kept_path`, if these sources would measure the same."""
    try:
        result, timing = read_measured(kept_path(cell, runs))
    except LoadError:
        return None
    is_ours = fingerprint_in(result.code) == fingerprint_in(code_version())
    if result.key != cell.key or not is_ours:
        return None
    return None if why_stale(result, cell, episodes) else Measured(result, timing)


def _run_status(cell: Cell, runs: Path, episodes: int) -> CellStatus:
    folder = run_folder(cell, runs)
    if find_kept(cell, runs, episodes):
        return CellStatus("interrupted", steps=cell.key.steps)
    if _is_missing(folder / CONFIG):
        return CellStatus("missing")
    today = cell.run().to_dict()
    try:
        stored = in_full(read_config(folder))
        for name, was, now in differences(stored, today, MAY_DIFFER):
            reason = f"{folder} holds a run with another config ({name} was {shown(was)}, now "
            reason += f"{shown(now)}); remove it to restart the run"
            return CellStatus("stale", reason)
        if Checkpoints(folder).is_empty:  # the run would start from the beginning
            return CellStatus("missing")
        lines = read_metrics(folder)
    except UnreadableError as error:
        return CellStatus("unreadable", str(error))
    except ValueError as error:
        return CellStatus("stale", f"{error}; remove {folder} to restart the run")
    return CellStatus("interrupted", steps=int(lines[-1]["steps"]) if lines else 0)


def _is_missing(path: Path) -> bool:
    """True if there is no such file; one without permission may be there."""
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        return False
    return False
