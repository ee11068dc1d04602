"""A whole small table, two tasks by three methods, each cell a run of a second or two.

As a program it runs that table: `python -m tests.experiments.small_table FOLDER [RAY ADDRESS]`,
or, with `side-by-side` for the address, in two processes.
"""

import sys
from pathlib import Path

from episodic_curiosity.experiments.cells import Cell, Variant
from episodic_curiosity.experiments.results import Key
from episodic_curiosity.experiments.runner import Outcome, RunnerConfig, run_cells
from episodic_curiosity.experiments.side_by_side import run_side_by_side
from episodic_curiosity.runs.presets import resolve
from episodic_curiosity.runs.record import differences
from tests.runs.tiny_runs import tiny_run

TASKS = ("maze/sparse", "maze/no-reward")
METHODS = ("ppo", "ppo+ec", "ppo+eco")
NUM_UPDATES = 10


def small_cell(task: str, method: str, seed: int = 0, num_updates: int = NUM_UPDATES) -> Cell:
    """A tiny run as a variant: what differs from the preset, by dotted paths."""
    run = tiny_run(method, task, num_updates=num_updates, seed=seed)
    preset = resolve(task, method, "cpu", run.steps, seed)
    changes = tuple(
        (path, now)
        for path, _, now in differences(preset.to_dict(), run.to_dict())
        if path != "device"
    )
    variant = Variant(name="tiny", changes=changes)
    return Cell(
        key=Key("small", task, method, variant.name, "cpu", run.steps, seed), variant=variant
    )


def small_cells(num_updates: int = NUM_UPDATES) -> list[Cell]:
    return [
        small_cell(task, method, num_updates=num_updates)
        for task in TASKS
        for method in METHODS
    ]


def settings(folder: Path) -> RunnerConfig:
    return RunnerConfig(
        results=folder / "results", runs=folder / "runs", episodes=8, device="cpu"
    )


def run_table(folder: Path, address: str | None = None) -> list[Outcome]:
    if address is None:
        return run_cells(small_cells(), settings(folder))
    if address == "side-by-side":
        command = [sys.executable, "-m", "tests.experiments.small_table", str(folder)]
        left = run_side_by_side(small_cells(), settings(folder), 2, command)
        return [Outcome(cell, "failed", "") for cell in left]
    from episodic_curiosity.experiments.on_ray import run_cells_on_ray

    return run_cells_on_ray(small_cells(), settings(folder), address)


def final_files(folder: Path) -> dict[str, bytes]:
    """All that two runs of the table have to leave alike."""
    results = folder / "results"
    return {
        str(path.relative_to(results)): path.read_bytes()
        for path in sorted(results.rglob("*"))
        # What a killed process was writing is hidden.
        if path.is_file() and not path.name.endswith(".timing.json") and path.name[0] != "."
    }


if __name__ == "__main__":
    outcomes = run_table(Path(sys.argv[1]), *sys.argv[2:])
    sys.exit(not all(outcome.is_good for outcome in outcomes))
