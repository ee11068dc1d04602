"""What measuring cells would take: which are missing, how long and how much disk they need."""

import statistics
from collections import defaultdict
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import NamedTuple

from episodic_curiosity.experiments.cells import EPISODES, Cell
from episodic_curiosity.experiments.disk import disk_bytes
from episodic_curiosity.experiments.results import load_timings
from episodic_curiosity.experiments.status import Standing, State, find_standing
from episodic_curiosity.experiments.tables import find_trained
from episodic_curiosity.runs.presets import ON_THE_HOST

# Steps a second, to an order of magnitude, on what a preset is for: two CPU cores or one H200.
# Good until something alike has been measured.
ROUGH_RATES = {"cpu": 1_000.0, "gpu": 100_000.0, "paper": 1_000.0}
ROUGH_RATE_ON_THE_HOST = 2_000.0
# A test plays without learning, so many times as fast; an episode has about so many steps.
ROUGH_PLAYING, ROUGH_EPISODE = 3.0, 1_800


class Entry(NamedTuple):
    """What one cell would take."""

    cell: Cell
    state: State
    reason: str  # why it is not measured, where it is stale or unreadable
    steps_left: int
    seconds: float
    is_rough: bool  # no cell alike has been measured yet
    peak_bytes: int  # while it runs
    kept_bytes: int  # once its result is there

    @property
    def is_left(self) -> bool:
        return Standing(self.state).is_to_measure


class Rate(NamedTuple):
    """How fast cells of a kind are measured."""

    steps_per_second: float  # of whole runs, or of fits of an R-network alone
    seconds_per_episode: float  # of the test


def plan(
    cells: Sequence[Cell], results: Path, runs: Path, episodes: int = EPISODES
) -> list[Entry]:
    """Looks at what is there, and touches nothing."""
    rates = _measured_rates(results)
    return [_entry(cell, results, runs, episodes, rates) for cell in cells]


def show(entries: Sequence[Entry]) -> str:
    """A plan to print."""
    lines = []
    for entry in entries:
        key = entry.cell.key
        words: str = entry.state
        if entry.reason:
            words += f", not measured: {entry.reason}"
        if entry.is_left:
            time = timedelta(seconds=round(entry.seconds))
            words += f", {entry.steps_left:,} steps left, about {time}"
        lines.append(f"{key.table} {key.label:52} {key.preset}, {key.steps:,} steps: {words}")
    left = [entry for entry in entries if entry.is_left]
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


def _entry(
    cell: Cell, results: Path, runs: Path, episodes: int, rates: dict[tuple[str, ...], Rate]
) -> Entry:
    run = cell.run()
    standing = find_standing(cell, results, runs, episodes)
    is_left, behind = standing.is_to_measure, standing.steps
    if is_left and (trained := find_trained(cell)):
        other = find_standing(trained, results, runs, episodes)
        behind = cell.steps if other.state == "done" else other.steps
    # A fit of an R-network alone plays at random and no more.
    steps = run.random_play_steps if cell.measure == "r-network" else cell.steps
    left = max(0, steps - behind) if is_left else 0
    measured = rates.get(_likeness(cell.preset, cell.method, cell.task, cell.measure))
    rate = measured or _rough_rate(cell)
    seconds = left / rate.steps_per_second
    if is_left and cell.measure == "agent":
        seconds += episodes * rate.seconds_per_episode
    peak, kept = disk_bytes(run)
    reason = "" if is_left else standing.reason
    return Entry(cell, standing.state, reason, left, seconds, measured is None, peak, kept)


def _rough_rate(cell: Cell) -> Rate:
    rate = ROUGH_RATES[cell.preset]
    if cell.task.partition("/")[0] in ON_THE_HOST:
        rate = min(rate, ROUGH_RATE_ON_THE_HOST)
    return Rate(rate, ROUGH_EPISODE / (ROUGH_PLAYING * rate))


def _measured_rates(results: Path) -> dict[tuple[str, ...], Rate]:
    """Medians over the cells that are done."""
    steps, tests = defaultdict(list), defaultdict(list)
    for result, timing in load_timings(results):
        is_fit = "accuracy" in result.metrics
        measure = "r-network" if is_fit else "agent"
        likeness = _likeness(result.preset, result.method, result.task, measure)
        played = result.config["r_network"]["random_play"]["steps"] if is_fit else result.steps
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
