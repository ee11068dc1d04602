"""The missing cells of a table, one after another in one process.

What is done is skipped, what was interrupted is gone on with, and what another process is at is
left to it: each cell has a lock beside its result, which the kernel releases when its holder
dies, however. Processes on several machines are kept apart as far as the file system they share
keeps `flock` between machines, as NFS 4 does.
"""

import contextlib
import fcntl
import gc
import os
import shutil
import sys
import time
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

import torch

from episodic_curiosity.cells import Cell
from episodic_curiosity.checks import check_at_least
from episodic_curiosity.measuring import Measured, measure
from episodic_curiosity.methods import REPLAY
from episodic_curiosity.record import CHECKPOINTS, differences
from episodic_curiosity.results import (
    Damage,
    Result,
    read_measured,
    read_or_set_aside,
    write_measured,
)
from episodic_curiosity.saving import LoadError

PATIENCE = 10.0  # seconds to wait for cells of others before leaving them to those
State = Literal["done", "skipped", "busy", "stale", "failed"]


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Where results and runs lie, and how cells are measured."""

    results: Path
    runs: Path
    episodes: int = 100  # of the test, at least
    device: Literal["auto", "cpu", "cuda"] = "auto"  # auto: a GPU where there is one
    progress: bool = False  # show how each run is getting on

    def __post_init__(self) -> None:
        check_at_least("episodes", self.episodes, 1)


class Outcome(NamedTuple):
    """What came of a cell."""

    cell: Cell
    state: State
    message: str

    @property
    def is_good(self) -> bool:
        return self.state in ("done", "skipped")


def run_cells(cells: Sequence[Cell], settings: Settings) -> list[Outcome]:
    """Measures the cells that are missing; says to standard error how it goes.

    A cell that fails does not stop the others.
    """
    for cell in cells:
        cell.run()  # raises before anything is begun
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
    """Says what came of a cell."""
    key = outcome.cell.key
    name = f"{key.table} {key.label} ({key.preset}, {key.steps:,} steps)"
    print(f"[{number}/{total}] {name}: {outcome.message}", file=sys.stderr, flush=True)


def run_cell(cell: Cell, settings: Settings) -> Outcome:
    """Measures one cell, unless that is done or being done."""
    path = settings.results / cell.key.path
    with cell_lock(path) as is_ours:
        if not is_ours:
            return Outcome(cell, "busy", "another process is at it")
        found = read_or_set_aside(path)
        if isinstance(found, Damage):
            print(f"set aside: {found.reason}", file=sys.stderr, flush=True)
        if isinstance(found, Result):
            return _judge(cell, found)
        began = time.monotonic()
        try:
            measured = _measure(cell, settings)
        except Exception as error:
            traceback.print_exc()
            return Outcome(cell, "failed", f"failed: {type(error).__name__}: {error}")
        finally:
            _release_memory()
        write_measured(path, measured.result, measured.timing)
        return Outcome(cell, "done", f"done in {time.monotonic() - began:,.0f} s")


@contextlib.contextmanager
def cell_lock(path: Path) -> Iterator[bool]:
    """Whether the cell of that result is this process's alone, until the end of the block."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = path.with_name(f".{path.stem}.lock")
    while True:
        with open(lock, "ab") as file:
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


def run_folder(cell: Cell, runs: Path) -> Path:
    """Where the run of a cell lies."""
    return runs / cell.key.path.with_suffix("")


def _measure(cell: Cell, settings: Settings) -> Measured:
    """Measures a cell, or finds what was measured in its run's folder before a kill."""
    folder = run_folder(cell, settings.runs)
    kept = folder / "result.json"
    measured = _find(kept, cell)
    if measured is None:
        measured = measure(
            cell,
            folder,
            episodes=settings.episodes,
            device=settings.device,
            progress=settings.progress,
        )
        write_measured(kept, measured.result, measured.timing)
    # What a run goes on from is large, and of no more use.
    shutil.rmtree(folder / CHECKPOINTS, ignore_errors=True)
    (folder / REPLAY).unlink(missing_ok=True)
    return measured


def _find(kept: Path, cell: Cell) -> Measured | None:
    try:
        result, timing = read_measured(kept)
    except LoadError:
        return None
    is_same = result.key == cell.key and not _changes(cell, result)
    return Measured(result, timing) if is_same else None


def _judge(cell: Cell, result: Result) -> Outcome:
    """A result counts for a cell if it was measured with the config that the cell has now."""
    if changes := _changes(cell, result):
        name, was, now = changes[0]
        return Outcome(
            cell,
            "stale",
            f"measured with another config ({name} was {was}, now {now}); remove "
            f"{result.key.path} to measure it again",
        )
    return Outcome(cell, "skipped", "already done")


def _changes(cell: Cell, result: Result) -> list[tuple[str, object, object]]:
    return list(differences(result.config, cell.run().to_dict()))


def _is_at(descriptor: int, path: Path) -> bool:
    """Whether an open file is the one that is at that path now."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False


def _release_memory() -> None:
    """Lets the next cell have what the last one held, captured graphs included."""
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
