"""What measuring cells would take: which are missing, how long and how much disk they need."""

import math
import statistics
from collections import defaultdict
from collections.abc import Sequence
from contextlib import closing
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import NamedTuple

import torch

from episodic_curiosity.bonus.episodic import EpisodicConfig
from episodic_curiosity.experiments.cells import EPISODES, Cell
from episodic_curiosity.experiments.results import load_timings
from episodic_curiosity.experiments.status import CellState, CellStatus, find_status
from episodic_curiosity.experiments.tables import find_trained
from episodic_curiosity.reachability.network import RNetwork
from episodic_curiosity.reachability.random_play import HELD_OUT_STEPS
from episodic_curiosity.runs.config import RNetworkOptions, Run
from episodic_curiosity.runs.presets import ON_THE_HOST
from episodic_curiosity.support.machine import free_bytes
from episodic_curiosity.worlds.registry import make_world

# Steps a second, to an order of magnitude, on what a preset is for: two CPU cores or one H200.
# Good until something alike has been measured.
ROUGH_RATES = {"cpu": 1_000.0, "gpu": 100_000.0, "paper": 1_000.0}
ROUGH_RATE_ON_THE_HOST = 2_000.0
# A test plays without learning, so many times as fast; an episode has about so many steps.
ROUGH_PLAYING, ROUGH_EPISODE = 3.0, 1_800

KEEPING_FRAMES = ("dmlab", "vizdoom", "gym")  # worlds that cannot redraw what they showed
POLICY_BYTES = 7_000_000  # 1.7M numbers
SNAPSHOT_BYTES = 256  # at most, of one step that an R-network is refitted to
LINE_BYTES = 2_000  # of metrics, timing and TensorBoard, an update


class Forecast(NamedTuple):
    """What one cell would take."""

    cell: Cell
    state: CellState
    reason: str  # why it is not measured, where it is stale or unreadable
    steps_left: int
    seconds: float
    is_rough: bool  # no cell alike has been measured yet
    peak_bytes: int  # while it runs
    kept_bytes: int  # once its result is there

    @property
    def is_left(self) -> bool:
        return CellStatus(self.state).is_to_measure


class Rate(NamedTuple):
    """How fast cells of a kind are measured."""

    steps_per_second: float  # of whole runs, or of fits of an R-network alone
    seconds_per_episode: float  # of the test


def forecast(
    cells: Sequence[Cell], results: Path, runs: Path, episodes: int = EPISODES
) -> list[Forecast]:
    """Looks at what is there, and touches nothing."""
    rates = _measured_rates(results)
    return [_forecast(cell, results, runs, episodes, rates) for cell in cells]


def show(forecasts: Sequence[Forecast]) -> str:
    """Forecasts to print."""
    lines = []
    for each in forecasts:
        key = each.cell.key
        words: str = each.state
        if each.reason:
            words += f", not measured: {each.reason}"
        if each.is_left:
            time = timedelta(seconds=round(each.seconds))
            words += f", {each.steps_left:,} steps left, about {time}"
        lines.append(f"{key.table} {key.label:52} {key.preset}, {key.steps:,} steps: {words}")
    left = [each for each in forecasts if each.is_left]
    time = timedelta(seconds=round(sum(each.seconds for each in left)))
    rough = " (roughly: not all of their kind have been measured yet)"
    kept = sum(each.kept_bytes for each in left) / 1e9
    peak = max((each.peak_bytes for each in left), default=0) / 1e9
    lines.append(
        f"{len(left)} of {len(forecasts)} cells to measure: about {time} one after another"
        f"{rough if any(each.is_rough for each in left) else ''}, {kept:.1f} GB of disk at "
        f"the end and up to {peak:.1f} GB more meanwhile"
    )
    return "\n".join(lines)


def _forecast(
    cell: Cell, results: Path, runs: Path, episodes: int, rates: dict[tuple[str, ...], Rate]
) -> Forecast:
    run = cell.run()
    status = find_status(cell, results, runs, episodes)
    is_left, behind = status.is_to_measure, status.steps
    if is_left and (trained := find_trained(cell)):
        other = find_status(trained, results, runs, episodes)
        behind = cell.key.steps if other.state == "done" else other.steps
    # A fit of an R-network alone plays at random and no more.
    steps = run.random_play_steps if cell.measure == "r-network" else cell.key.steps
    left = max(0, steps - behind) if is_left else 0
    measured = rates.get(
        _likeness(cell.key.preset, cell.key.method, cell.key.task, cell.measure)
    )
    rate = measured or _rough_rate(cell)
    seconds = left / rate.steps_per_second
    if is_left and cell.measure == "agent":
        seconds += episodes * rate.seconds_per_episode
    peak, kept = disk_bytes(run)
    reason = "" if is_left else status.reason
    return Forecast(cell, status.state, reason, left, seconds, measured is None, peak, kept)


def _rough_rate(cell: Cell) -> Rate:
    rate = ROUGH_RATES[cell.key.preset]
    if cell.key.task.partition("/")[0] in ON_THE_HOST:
        rate = min(rate, ROUGH_RATE_ON_THE_HOST)
    return Rate(rate, ROUGH_EPISODE / (ROUGH_PLAYING * rate))


def _measured_rates(results: Path) -> dict[tuple[str, ...], Rate]:
    """Medians over the cells that are done."""
    steps, tests = defaultdict(list), defaultdict(list)
    for result, timing in load_timings(results):
        is_fit = "accuracy" in result.metrics
        measure = "r-network" if is_fit else "agent"
        likeness = _likeness(result.key.preset, result.key.method, result.key.task, measure)
        played = (
            result.config["r_network"]["random_play"]["steps"] if is_fit else result.key.steps
        )
        steps[likeness].append(played / timing["seconds"])
        if result.episodes:
            tests[likeness].append(timing.get("evaluation_seconds", 0.0) / result.episodes)
    return {
        likeness: Rate(statistics.median(values), statistics.median(tests[likeness] or [0.0]))
        for likeness, values in steps.items()
    }


def _likeness(preset: str, method: str, task: str, measure: str) -> tuple[str, ...]:
    """What decides how fast a cell is measured; a run for the sake of its speed is a run."""
    kind = "fit" if measure == "r-network" else "run"
    return kind, preset, method, task.partition("/")[0]


def disk_bytes(run: Run) -> tuple[int, int]:
    """Bytes of three checkpoints, two kept and one being written, and of what stays.

    Frames for an R-network come on top in worlds that cannot redraw them: those of random play
    before there are checkpoints, those of the run beside them.
    """
    weights, state = POLICY_BYTES, 3 * POLICY_BYTES  # the optimiser keeps two numbers for each
    before, beside = 0, 0
    if run.r_network is not None and isinstance(run.bonus, EpisodicConfig):
        shape, view_bytes = _view(run)
        r_network, slot_size = _r_network_size(shape, tuple(run.r_network.architecture.items()))
        weights += r_network
        state += r_network + run.world.num_envs * run.bonus.memory_capacity * slot_size * 4
        if run.r_network.online is not None:
            state += 2 * r_network
        if run.task.partition("/")[0] in KEEPING_FRAMES:
            before, beside = _frames(run, run.r_network, view_bytes)
        elif run.r_network.online is not None:
            state += run.r_network.online.history * SNAPSHOT_BYTES
    lines = LINE_BYTES * run.num_updates
    return max(before, 3 * state + beside), weights + lines


def _frames(run: Run, options: RNetworkOptions, view_bytes: int) -> tuple[int, int]:
    """Bytes of the files of frames, before a run and in it."""
    if options.online is not None:
        # What two checkpoints may refer to is not overwritten yet.
        spare = 2 * run.record.checkpoint_every * run.batch_size
        return 0, (options.online.history + spare) * view_bytes
    num_tasks = max(1, len(options.random_play.tasks if options.random_play else ()))
    wanted = (run.random_play_steps + HELD_OUT_STEPS) * view_bytes
    free = free_bytes(torch.device("cpu"))
    # Each task's are kept in memory where they take at most half of what is free.
    return (wanted if free is not None and wanted / num_tasks > free / 2 else 0), 0


def _view(run: Run) -> tuple[tuple[int, ...], int]:
    """The shape of what curiosity sees, and its bytes."""
    size = run.world.view_size or run.world.observation_size
    if size is not None:
        return (3, *size), 3 * math.prod(size)
    return _view_of_world(run.task)


@cache
def _view_of_world(task: str) -> tuple[tuple[int, ...], int]:
    """As `_view`, of a world that shows what it likes."""
    with closing(make_world(task, num_envs=1, seed=0)) as world:
        spec = world.spec
    return spec.view_shape, math.prod(spec.view_shape) * spec.view_dtype.itemsize


@cache
def _r_network_size(
    shape: tuple[int, ...], architecture: tuple[tuple[str, object], ...]
) -> tuple[int, int]:
    """Bytes of its weights, and numbers that a memory slot holds."""
    with torch.device("meta"):
        r_network = RNetwork(shape, **dict(architecture))  # type: ignore[arg-type]
    return sum(tensor.numel() * 4 for tensor in r_network.parameters()), r_network.slot_size
