"""Selects the results that a table counts: of a commit, up to date, one config per cell.

Results that are left out are reported with the reason.
"""

from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from episodic_curiosity.experiments.cells import why_stale
from episodic_curiosity.experiments.results import (
    Key,
    Problem,
    Result,
    load_results,
    read_timing,
)
from episodic_curiosity.experiments.sources import read_list, why_uncounted
from episodic_curiosity.experiments.tables import EXPERIMENTS, Experiment, Row
from episodic_curiosity.runs.record import ABSENT, differences
from episodic_curiosity.support.saving import LoadError

Timing = Mapping[str, Any]


class Selection(NamedTuple):
    """The results of each cell, by the key of seed 0."""

    results: Mapping[Key, tuple[Result, ...]]  # in order of seed
    timings: Mapping[Key, tuple[Timing, ...]]  # of the seeds with a recorded time
    problems: list[Problem]


def select_results(folder: Path) -> Selection:
    """Reads a folder, including tables that are not in the paper."""
    loaded = load_results(folder)
    if not loaded.results and not loaded.problems:
        raise ValueError(f"{folder} holds no results; `curiosity table` writes some")
    listed = read_list(folder)
    by_cell: dict[Key, list[Result]] = {}
    problems = []
    for result in loaded.results:
        if reason := why_uncounted(result.code, listed) or _why_not(result):
            problems.append(_problem(result, reason))
        else:
            by_cell.setdefault(result.key._replace(seed=0), []).append(result)
    results = {}
    for key, group in by_cell.items():
        results[key], unlike = _alike(group)
        problems += unlike
    timings, unknown = _timings(folder, results)
    return Selection(results, timings, [*loaded.problems, *sorted([*problems, *unknown])])


def mean_of(result: Result, metric: str) -> float | None:
    """The mean over the test episodes, or None if the metric was not measured."""
    return result.metrics.get(metric, {}).get("mean")


def _why_not(result: Result) -> str | None:
    """The reason why a result does not count, to follow its name, or None if it counts."""
    if result.key.table not in EXPERIMENTS:
        return None
    *_, preset, steps, seed = result.key
    found = _cells(preset, steps).get(result.key._replace(seed=0))
    if found is None:
        return f"is in no row and column of {result.key.table}"
    experiment, row = found
    if mean_of(result, metric := experiment.metric(result.key.task)) is None:
        return f"lacks the metric of its table: {metric}"
    try:
        return why_stale(result, experiment.cell(row, result.key.task, preset, steps, seed))
    except ValueError as error:
        return f"can no longer be measured: {error}"


@cache
def _cells(preset: str, steps: int) -> dict[Key, tuple[Experiment, Row]]:
    """Experiment and row of every cell of the paper, by the key of seed 0."""
    return {
        experiment.cell(row, task, preset, steps, 0).key: (experiment, row)
        for experiment in EXPERIMENTS.values()
        for world in experiment.worlds
        for task in experiment.tasks(world)
        for row in experiment.rows
    }


def _alike(group: Iterable[Result]) -> tuple[tuple[Result, ...], list[Problem]]:
    """The results that may be averaged with the first seed's, and problems of the others."""
    first, *others = sorted(group, key=lambda result: result.key.seed)
    alike, problems = [first], []
    for other in others:
        # A field that only one has is an option that came later; `_why_not` has checked it.
        known = other.key.table in EXPERIMENTS
        paths = [
            path
            for path, *values in differences(first.config, other.config)
            if not (known and ABSENT in values)
        ]
        if another := [path for path in paths if path != "seed"]:
            reason = f"differs in {another[0]} from seed {first.key.seed}"
            problems.append(_problem(other, reason))
        elif other.episodes != first.episodes:
            reason = (
                f"has {other.episodes} test episodes, seed {first.key.seed} {first.episodes}"
            )
            problems.append(_problem(other, reason))
        else:
            alike.append(other)
    return tuple(alike), problems


def _timings(
    folder: Path, results: Mapping[Key, tuple[Result, ...]]
) -> tuple[dict[Key, tuple[Timing, ...]], list[Problem]]:
    """The timings of each cell; an unreadable file is a problem."""
    found: dict[Key, tuple[Timing, ...]] = {}
    problems = []
    for key, group in results.items():
        known = []
        for result in group:
            try:
                timing = read_timing(folder, result.key)
            except LoadError as error:
                problems.append(Problem(result.key.path, str(error)))
            else:
                known += [timing] if timing else []
        found[key] = tuple(known)
    return found, problems


def _problem(result: Result, reason: str) -> Problem:
    return Problem(result.key.path, f"{result.key.path} {reason}")
