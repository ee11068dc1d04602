"""Measures the missing cells of a table, one after another in one process.

Cells that are done are skipped, interrupted ones are resumed, and those of other processes are
left alone: each cell has a lock for its result and one for its run, which the kernel releases
when their holder dies. Between machines this needs a shared file system that supports `flock`
across them, as NFS 4 does.
"""

import contextlib
import fcntl
import gc
import os
import sys
import time
import traceback
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

import torch

from episodic_curiosity.experiments.cells import EPISODES, Cell
from episodic_curiosity.experiments.forecast import forecast
from episodic_curiosity.experiments.measure import Device, Measured, measure, measure_speed
from episodic_curiosity.experiments.results import (
    read_measured,
    remove_measured,
    set_aside,
    write_measured,
)
from episodic_curiosity.experiments.status import (
    CellStatus,
    find_kept,
    find_status,
    kept_path,
    run_folder,
)
from episodic_curiosity.experiments.tables import find_trained
from episodic_curiosity.runs.build import REPLAY
from episodic_curiosity.runs.checkpoints import Checkpoints
from episodic_curiosity.support.checks import (
    check_at_least,
    check_choice,
    printable,
    usable_device,
)
from episodic_curiosity.support.files import UnfitFileError, append_to_file, check_own
from episodic_curiosity.worlds.registry import find_family, make_world

PATIENCE = 10.0  # seconds to wait for cells of other processes
OutcomeState = Literal["done", "skipped", "postponed", "busy", "stale", "failed"]


@dataclass(frozen=True, kw_only=True)
class RunnerConfig:
    """The folders of results and runs, and how cells are measured."""

    results: Path
    runs: Path
    episodes: int = EPISODES  # of the test, at least
    device: Device = "auto"
    progress: bool = False  # of each run
    deadline: float | None = None  # of time.monotonic(): no R-network is fitted past it

    def __post_init__(self) -> None:
        check_at_least("episodes", self.episodes, 1)
        check_choice("device", self.device, ("auto", "cpu", "cuda"))

    def status(self, cell: Cell) -> CellStatus:
        """The status of a cell in these folders."""
        return find_status(cell, self.results, self.runs, self.episodes)


class Outcome(NamedTuple):
    """The outcome of a cell."""

    cell: Cell
    state: OutcomeState
    message: str

    @property
    def is_good(self) -> bool:
        return self.state in ("done", "skipped")


def run_cells(cells: Sequence[Cell], settings: RunnerConfig) -> list[Outcome]:
    """Measures the missing cells; reports each on standard error.

    A cell that fails does not stop the others; errors that concern all cells are raised
    beforehand.
    """
    check_cells(cells)
    _check_machine([cell for cell in cells if settings.status(cell).is_to_measure], settings)
    outcomes: list[Outcome] = []
    left, waiting_since = list(cells), time.monotonic()
    while left:
        busy = []
        for cell in left:
            outcome = run_cell(cell, settings)
            if outcome.state == "busy":
                busy.append(outcome)
                continue
            outcomes.append(outcome)
            waiting_since = time.monotonic()
            report(outcome, len(outcomes), len(cells))
        left = [outcome.cell for outcome in busy]
        if busy and time.monotonic() - waiting_since > PATIENCE:
            for outcome in busy:
                report(outcome, len(outcomes), len(cells))
            return outcomes + busy
        if busy:
            time.sleep(1.0)
    return outcomes


def report(outcome: Outcome, number: int, total: int) -> None:
    """Prints the outcome of a cell to standard error."""
    key = outcome.cell.key
    name = f"{key.table} {key.label} ({key.preset}, {key.steps:,} steps)"
    line = printable(f"[{number}/{total}] {name}: {outcome.message}")
    print(line, file=sys.stderr, flush=True)


def check_cells(cells: Sequence[Cell]) -> None:
    """Raises where one of the cells cannot be run."""
    for cell in cells:
        cell.run()


def run_cell(cell: Cell, settings: RunnerConfig) -> Outcome:
    """Measures one cell, unless it is done or another process is measuring it."""
    path = settings.results / cell.key.path
    beside_run = settings.runs / cell.key.path.with_suffix(".run.json")
    status = settings.status(cell)
    if not status.is_to_measure:
        return _leave(cell, status)
    try:
        with cell_lock(path) as has_result, cell_lock(beside_run) as has_run:
            if not (has_result and has_run):
                return Outcome(cell, "busy", "another process is at it")
            check_own(run_folder(cell, settings.runs))
            status = settings.status(cell)  # again: now no other process can change it
            if not status.is_to_measure:
                return _leave(cell, status)
            if reason := _why_too_late(cell, settings):
                return Outcome(cell, "postponed", reason)
            if status.state == "damaged":
                aside = set_aside(path)
                print(f"set aside as {aside}: {status.reason}", file=sys.stderr, flush=True)
            return _measure_and_write(cell, settings)
    except (OSError, UnfitFileError) as error:  # the next cell may have a better folder
        return Outcome(cell, "failed", f"failed: {error}")


@contextlib.contextmanager
def cell_lock(path: Path) -> Iterator[bool]:
    """Locks the cell of that result for the block; yields False where another process does."""
    path.parent.mkdir(parents=True, exist_ok=True)
    check_own(path.parent)
    lock = path.with_name(f".{path.stem}.lock")
    while True:
        with append_to_file(lock) as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield False
                return
            if not _is_at(file.fileno(), lock):  # its holder has just removed it
                continue
            try:
                yield True
            finally:
                lock.unlink(missing_ok=True)
            return


def _leave(cell: Cell, status: CellStatus) -> Outcome:
    """The outcome of a cell that is not measured."""
    if status.state == "done":
        return Outcome(cell, "skipped", "already done")
    if status.state == "stale":
        return Outcome(cell, "stale", status.reason)
    return Outcome(cell, "failed", f"failed: {status.reason}")


def _measure_and_write(cell: Cell, settings: RunnerConfig) -> Outcome:
    """Measures a cell, or finds its result in the run's folder, kept there before a kill."""
    began = time.monotonic()
    folder, kept = run_folder(cell, settings.runs), kept_path(cell, settings.runs)
    measured = find_kept(cell, settings.runs, settings.episodes)
    words = "found in the run's folder"
    if measured is None:
        try:
            found = _measure(cell, folder, settings)
        except Exception as error:
            if not isinstance(error, OSError):  # a full disk is no error of the code
                traceback.print_exc()
            return Outcome(cell, "failed", f"failed: {type(error).__name__}: {error}")
        finally:
            _release_memory()
        if isinstance(found, Outcome):
            return found
        measured = found
        words = f"done in {time.monotonic() - began:,.0f} s"
        write_measured(kept, measured.result, measured.timing)
    Checkpoints(folder).remove()  # large, and no longer needed
    (folder / REPLAY).unlink(missing_ok=True)
    write_measured(settings.results / cell.key.path, measured.result, measured.timing)
    remove_measured(kept)
    return Outcome(cell, "done", words)


def _measure(cell: Cell, folder: Path, settings: RunnerConfig) -> Measured | Outcome:
    """The measurement, or the failed outcome of another cell whose run this one needs."""
    if trained := find_trained(cell):
        outcome = run_cell(trained, settings)
        if not outcome.is_good:
            name = f"{trained.key.table} {trained.key.label}"
            return Outcome(cell, outcome.state, f"needs {name}: {outcome.message}")
        found = Measured(*read_measured(settings.results / trained.key.path))
        return measure_speed(cell, found, folder, settings.device)
    return measure(
        cell,
        folder,
        episodes=settings.episodes,
        device=settings.device,
        progress=settings.progress,
    )


def _why_too_late(cell: Cell, settings: RunnerConfig) -> str | None:
    """Why a cell is not begun: an R-network's fit cannot be resumed, a training run can."""
    if settings.deadline is None or cell.measure != "r-network":
        return None
    (estimate,) = forecast([cell], settings.results, settings.runs, settings.episodes)
    left = max(0.0, settings.deadline - time.monotonic())
    if estimate.seconds <= left:
        return None
    return f"not begun: it takes about {estimate.seconds:,.0f} s, {left:,.0f} s are left"


def _check_machine(cells: Sequence[Cell], settings: RunnerConfig) -> None:
    """Raises where the cells' GPU or simulators are not available."""
    if cells and settings.device != "auto":
        usable_device(settings.device)
    by_family = {find_family(cell.key.task): cell for cell in reversed(cells)}
    for family, cell in by_family.items():
        if family.simulated_on == "device":
            continue
        run = cell.run()
        options = run.world.options("train")
        with closing(make_world(run.task, num_envs=1, seed=0, **options)):
            pass


def _is_at(descriptor: int, path: Path) -> bool:
    """True if an open file is the one that is at that path now."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False


def _release_memory() -> None:
    """Frees the memory of the last cell, captured graphs included."""
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
