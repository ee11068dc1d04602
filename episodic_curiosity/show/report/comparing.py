"""One method beside another: normalised scores, and how likely the one beats the other."""

from collections.abc import Sequence
from typing import NamedTuple

from episodic_curiosity.experiments.tables import Row
from episodic_curiosity.show.report.grids import Grid, Place
from episodic_curiosity.support.statistics import (
    Estimate,
    Summary,
    interquartile_mean,
    probability_of_improvement,
    summarise,
)

MIN_SEEDS = 2  # of each side: what one run beats says nothing about the next
Pairs = list[tuple[list[float], list[float]]]  # values of two rows, for each task


class Overall(NamedTuple):
    """A row over all tasks of its grid on which it was measured."""

    row: Row
    num_tasks: int  # with a score: those where the Grid Oracle was measured too
    score: Estimate | None  # interquartile mean of the normalised values
    improvement: Estimate | None  # on the baseline
    num_compared: int  # tasks behind that


def baseline(grid: Grid) -> Row:
    """What a grid's rows are compared with: PPO, else the method as the paper has it."""
    rows = grid.experiment.rows
    plain = [row for row in rows if row.variant is None]
    return next((row for row in plain if row.method == "ppo"), (plain or rows)[0])


def improvement(grid: Grid, row: Row, task: str | None = None) -> Estimate | None:
    """How likely a run of the row is better than one of the baseline, on a task or on all.

    Tasks count on which both have two seeds or more. None where there is nothing to compare:
    no such task, no other row, or no direction that is better.
    """
    return _improvement(_compared(grid, row, grid.tasks if task is None else [task]))


def _improvement(pairs: Pairs) -> Estimate | None:
    if not pairs:
        return None
    return probability_of_improvement([ours for ours, _ in pairs], [its for _, its in pairs])


def _compared(grid: Grid, row: Row, tasks: Sequence[str]) -> Pairs:
    """The row's values and the baseline's, of every task on which both have enough seeds."""
    base = baseline(grid)
    if row == base or grid.experiment.measure == "speed":
        return []
    places = [(grid.place(row, task), grid.place(base, task)) for task in tasks]
    return [
        (ours.values, theirs.values)
        for ours, theirs in places
        if min(len(ours.results), len(theirs.results)) >= MIN_SEEDS
    ]


def normalised(grid: Grid, place: Place) -> list[float] | None:
    """A place's values as shares of the Grid Oracle's mean with the same preset and steps.

    None where either was not measured, or where the Grid Oracle got nothing.
    """
    oracle = grid.oracle(place.task)
    if (
        not place.results
        or oracle is None
        or oracle.summary is None
        or oracle.summary.mean <= 0
    ):
        return None
    return [value / oracle.summary.mean for value in place.values]


def normalised_summary(grid: Grid, place: Place) -> Summary | None:
    values = normalised(grid, place)
    return None if values is None else summarise(values)


def published_share(grid: Grid, place: Place) -> float | None:
    """The published number as a share of the published Grid Oracle's."""
    oracle = grid.oracle(place.task)
    if oracle is None or oracle.published is None or place.published is None:
        return None
    return place.published.mean / oracle.published.mean


def overall(grid: Grid) -> list[Overall]:
    """Each row over all its tasks; a task is a stratum."""
    found = []
    for row in grid.experiment.rows:
        places = [grid.place(row, task) for task in grid.tasks]
        strata = [values for place in places if (values := normalised(grid, place))]
        score = interquartile_mean(strata) if strata else None
        pairs = _compared(grid, row, grid.tasks)
        found.append(Overall(row, len(strata), score, _improvement(pairs), len(pairs)))
    return found
