"""What measuring cells would take: which are missing, how long and how much disk they need."""

import statistics
from collections import defaultdict
from collections.abc import Sequence
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Literal, NamedTuple

import torch

from episodic_curiosity.bonus.episodic import EpisodicConfig
from episodic_curiosity.cells import Cell
from episodic_curiosity.config import Run
from episodic_curiosity.harness import run_folder
from episodic_curiosity.presets import ON_THE_HOST
from episodic_curiosity.reachability.network import RNetwork
from episodic_curiosity.record import read_metrics
from episodic_curiosity.results import Key, Result, load_timings
from episodic_curiosity.saving import LoadError

# Steps a second, to an order of magnitude, on what a preset is for: two CPU cores or one H200.
# Good until something alike has been measured.
ROUGH_RATES = {"cpu": 1_000.0, "gpu": 100_000.0, "paper": 1_000.0}
ROUGH_RATE_ON_THE_HOST = 2_000.0
POLICY_BYTES = 7_000_000  # 1.7M numbers
SNAPSHOT_BYTES = 256  # at most, of one step that an R-network is refitted to
LINE_BYTES = 2_000  # of metrics, timing and TensorBoard, an update


class Entry(NamedTuple):
    """What one cell would take."""

    cell: Cell
    state: Literal["done", "damaged", "interrupted", "missing"]
    steps_left: int
    seconds: float
    is_rough: bool  # no cell alike has been measured yet
    peak_bytes: int  # while it runs
    kept_bytes: int  # once its result is there


def plan(cells: Sequence[Cell], results: Path, runs: Path) -> list[Entry]:
    """Looks at what is there, and touches nothing."""
    rates = _measured_rates(results)
    return [_entry(cell, results, runs, rates) for cell in cells]


def show(entries: Sequence[Entry]) -> str:
    """A plan to print."""
    lines = []
    for entry in entries:
        key = entry.cell.key
        words: str = entry.state
        if entry.state != "done":
            time = timedelta(seconds=round(entry.seconds))
            words += f", {entry.steps_left:,} steps left, about {time}"
        lines.append(f"{key.table} {key.label:52} {key.preset}, {key.steps:,} steps: {words}")
    left = [entry for entry in entries if entry.state != "done"]
    time = timedelta(seconds=round(sum(entry.seconds for entry in left)))
    rough = " (roughly: not all of their kind have been measured yet)"
    kept = sum(entry.kept_bytes for entry in left) / 1e9
    peak = max((entry.peak_bytes for entry in left), default=0) / 1e9
    lines.append(
        f"{len(left)} of {len(entries)} cells to measure: about {time} one after another"
        f"{rough if any(entry.is_rough for entry in left) else ''}, {kept:.1f} GB of disk at "
        f"the end and up to {peak:.1f} GB more meanwhile"
    )
    return "\n".join(lines)


def _entry(cell: Cell, results: Path, runs: Path, rates: dict[tuple[str, ...], float]) -> Entry:
    run, key = cell.run(), cell.key
    # A fit of an R-network alone plays at random and no more.
    steps = run.random_play_steps if cell.measure == "r-network" else key.steps
    state, steps_left = _state(steps, results / key.path, run_folder(cell, runs))
    rate = rates.get(_likeness(key))
    rough = ROUGH_RATES[key.preset]
    if key.task.partition("/")[0] in ON_THE_HOST:
        rough = min(rough, ROUGH_RATE_ON_THE_HOST)
    peak, kept = _disk(run)
    seconds = steps_left / (rate or rough)
    return Entry(cell, state, steps_left, seconds, rate is None, peak, kept)


def _state(
    steps: int, path: Path, folder: Path
) -> tuple[Literal["done", "damaged", "interrupted", "missing"], int]:
    if path.exists():
        try:
            Result.read(path)
        except LoadError:
            return "damaged", steps
        return "done", 0
    try:
        lines = read_metrics(folder)
    except LoadError:
        lines = []
    behind = int(lines[-1]["steps"]) if lines else 0
    return ("interrupted" if behind else "missing"), max(0, steps - behind)


def _measured_rates(results: Path) -> dict[tuple[str, ...], float]:
    """Steps a second of the cells that are done, whole runs with all that they fitted."""
    rates = defaultdict(list)
    for key, timing in load_timings(results):
        if "steps_per_second" not in timing:  # of an R-network alone
            continue
        rates[_likeness(key)].append(key.steps / timing["seconds"])
    return {likeness: statistics.median(values) for likeness, values in rates.items()}


def _likeness(key: Key) -> tuple[str, ...]:
    return key.preset, key.method, key.task.partition("/")[0]


def _disk(run: Run) -> tuple[int, int]:
    """Bytes of three checkpoints, two kept and one being written, and of what stays."""
    weights, state = POLICY_BYTES, 3 * POLICY_BYTES  # the optimiser keeps two numbers for each
    if run.r_network is not None and isinstance(run.bonus, EpisodicConfig):
        size = run.world.view_size or run.world.observation_size or (1, 1)
        r_network, slot_size = _r_network_size(size, tuple(run.r_network.architecture.items()))
        weights += r_network
        state += r_network + run.world.num_envs * run.bonus.memory_capacity * slot_size * 4
        if run.r_network.online is not None:
            state += 2 * r_network + run.r_network.online.history * SNAPSHOT_BYTES
    lines = LINE_BYTES * run.num_updates
    return 3 * state, weights + lines


@cache
def _r_network_size(
    size: tuple[int, int], architecture: tuple[tuple[str, object], ...]
) -> tuple[int, int]:
    """Bytes of its weights, and numbers that a memory slot holds."""
    with torch.device("meta"):
        r_network = RNetwork((3, *size), **dict(architecture))  # type: ignore[arg-type]
    return sum(tensor.numel() * 4 for tensor in r_network.parameters()), r_network.slot_size
