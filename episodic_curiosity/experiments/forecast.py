"""Estimates the time and disk space that the missing cells need."""

import math
import statistics
from collections import defaultdict
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from episodic_curiosity.bonus.registry import find_method
from episodic_curiosity.experiments.cells import EPISODES, Cell
from episodic_curiosity.experiments.results import load_timings
from episodic_curiosity.experiments.status import CellState, CellStatus, find_status
from episodic_curiosity.experiments.tables import find_trained
from episodic_curiosity.reachability.network import RNetwork
from episodic_curiosity.reachability.random_play import HELD_OUT_STEPS
from episodic_curiosity.runs.build import bonus_on_meta
from episodic_curiosity.runs.config import RNetworkOptions, Run
from episodic_curiosity.support.machine import free_bytes
from episodic_curiosity.worlds.base import WorldSpec
from episodic_curiosity.worlds.family import split_task
from episodic_curiosity.worlds.registry import find_family, make_world

# Steps/s, to an order of magnitude, on the preset's hardware: two CPU cores or one H200. Used
# until a similar cell has been measured.
ROUGH_RATES = {"cpu": 1e3, "gpu": 5e4, "turbo": 2e5, "paper": 1e3}
ROUGH_RATE_ON_THE_HOST = 2_000.0
# Speed of evaluation relative to training, and steps of an episode.
ROUGH_PLAYING, ROUGH_EPISODE = 3.0, 1_800
ROUGH_ACTIONS = 9
CELLS: dict[str, Any] = {"has_position": True, "oracle_cell": 1.0}  # every bonus can be made

POLICY_BYTES = 7_000_000  # 1.7M parameters
SNAPSHOT_BYTES = 256  # at most, per step of the replay
LINE_BYTES = 2_000  # of metrics, timing and TensorBoard, per update


class Forecast(NamedTuple):
    """The estimate for one cell."""

    cell: Cell
    state: CellState
    reason: str  # why it is not measured, if it is stale or unreadable
    steps_left: int
    seconds: float
    is_rough: bool  # no similar cell has been measured yet
    peak_bytes: int  # while it runs
    kept_bytes: int  # after its result is written

    @property
    def is_left(self) -> bool:
        return CellStatus(self.state).is_to_measure


class Rate(NamedTuple):
    """The speed of similar cells."""

    steps_per_second: float  # of complete runs, or of fits of an R-network alone
    seconds_per_episode: float  # of evaluation


def forecast(
    cells: Sequence[Cell], results: Path, runs: Path, episodes: int = EPISODES
) -> list[Forecast]:
    """Estimates each cell from existing results and runs, which are not changed."""
    rates = _measured_rates(results)
    return [_forecast(cell, results, runs, episodes, rates) for cell in cells]


def show(forecasts: Sequence[Forecast]) -> str:
    """Formats forecasts for printing."""
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
    rough = " (rough: some have no similar cell measured yet)"
    kept = sum(each.kept_bytes for each in left) / 1e9
    peak = max((each.peak_bytes for each in left), default=0) / 1e9
    lines.append(
        f"{len(left)} of {len(forecasts)} cells to measure: about {time} one after another"
        f"{rough if any(each.is_rough for each in left) else ''}, {kept:.1f} GB of disk at "
        f"the end and up to {peak:.1f} GB more while running"
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
    # A fit of an R-network alone takes only the steps of random play.
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
    if find_family(cell.key.task).simulated_on == "host":
        rate = min(rate, ROUGH_RATE_ON_THE_HOST)
    return Rate(rate, ROUGH_EPISODE / (ROUGH_PLAYING * rate))


def _measured_rates(results: Path) -> dict[tuple[str, ...], Rate]:
    """Median rates of the measured cells."""
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
    """The properties that decide a cell's speed; cells of the speed table count as runs."""
    kind = "fit" if measure == "r-network" else "run"
    return kind, preset, method, split_task(task)[0]


def disk_bytes(run: Run) -> tuple[int, int]:
    """Peak bytes while a run is in progress, and bytes that it leaves behind.

    The peak has three checkpoints: two kept and one being written. Worlds that cannot redraw
    add the R-network's frames: of random play before the checkpoints, of the replay with them.
    """
    weights, state = POLICY_BYTES, 3 * POLICY_BYTES  # the optimiser has two numbers per weight
    before, beside = 0, 0
    pays = find_method(run.method).bonus.pays
    whole, learnt = _bonus_bytes(replace(run, seed=0)) if pays else (0, 0)
    weights, state = weights + learnt, state + whole
    if run.r_network is not None:
        if run.r_network.online is not None:
            state += 2 * learnt
        if not find_family(run.task).can_redraw:
            before, beside = _frames(run, run.r_network)
        elif run.r_network.online is not None:
            state += run.r_network.online.history * SNAPSHOT_BYTES
    lines = LINE_BYTES * run.num_updates
    return max(before, 3 * state + beside), weights + lines


@cache
def _bonus_bytes(run: Run) -> tuple[int, int]:
    """Bytes of the state of the run's bonus, and of the part that it has learnt."""
    spec, r_network = _spec(run), None
    if run.r_network is not None:
        with torch.device("meta"):
            r_network = RNetwork(spec.view_shape, **run.r_network.architecture)
    bonus = bonus_on_meta(run, spec, r_network)
    sizes = {
        f"{name}.": part.nbytes
        for name, part in bonus.state_dict().items()
        if isinstance(part, Tensor)
    }
    learnt = tuple(f"{name}." for name in bonus.learnt)
    kept = sum(size for name, size in sizes.items() if name.startswith(learnt))
    return sum(sizes.values()), kept


def _frames(run: Run, options: RNetworkOptions) -> tuple[int, int]:
    """Bytes of the frame files, before the first update and after it."""
    spec = _spec(run)
    view_bytes = math.prod(spec.view_shape) * spec.view_dtype.itemsize
    if options.online is not None:
        # Frames that two checkpoints may refer to are not overwritten.
        spare = 2 * run.record.checkpoint_every * run.batch_size
        return 0, (options.online.history + spare) * view_bytes
    num_tasks = max(1, len(options.random_play.tasks if options.random_play else ()))
    wanted = (run.random_play_steps + HELD_OUT_STEPS) * view_bytes
    free = free_bytes(torch.device("cpu"))
    # Frames are kept in memory if those of one task take at most half of the free memory.
    return (wanted if free is not None and wanted / num_tasks > free / 2 else 0), 0


def _spec(run: Run) -> WorldSpec:
    """The spec of a run's world, as far as sizes depend on it; made up for frames."""
    observation_size = run.world.observation_size or run.world.view_size
    view_size = run.world.view_size or observation_size
    if observation_size is None or view_size is None:
        return replace(_spec_of_world(run.task), num_envs=run.world.num_envs)
    return WorldSpec(
        task=run.task,
        num_envs=run.world.num_envs,
        device=torch.device("meta"),
        observation_shape=(3, *observation_size),
        observation_dtype=torch.uint8,
        view_shape=(3, *view_size),
        view_dtype=torch.uint8,
        num_actions=ROUGH_ACTIONS,
        episode_steps=ROUGH_EPISODE,
        **CELLS,
    )


@cache
def _spec_of_world(task: str) -> WorldSpec:
    """The spec of a world without configured sizes."""
    with closing(make_world(task, num_envs=1, seed=0)) as world:
        return replace(world.spec, **CELLS)
