"""Comparison of methods: normalised scores and probability of improvement."""

from collections.abc import Sequence
from typing import NamedTuple

from episodic_curiosity.experiments.tables import Row
from episodic_curiosity.show.report.grids import Grid, TableCell
from episodic_curiosity.support.statistics import (
    Estimate,
    Summary,
    interquartile_mean,
    probability_of_improvement,
    summarise,
)

MIN_SEEDS = 2  # of each method: a single run says nothing about others
Pairs = list[tuple[list[float], list[float]]]  # values of two rows, per task


class Overall(NamedTuple):
    """Aggregates of a row over the tasks of its grid."""

    row: Row
    num_tasks: int  # tasks with a score, which needs a measured Grid Oracle
    score: Estimate | None  # interquartile mean of the normalised values
    improvement: Estimate | None  # probability of improvement over the baseline
    num_compared: int  # tasks behind `improvement`


def baseline(grid: Grid) -> Row:
    """The row that others are compared with: PPO, or else the first plain method."""
    rows = grid.experiment.rows
    plain = [row for row in rows if row.variant is None]
    return next((row for row in plain if row.method == "ppo"), (plain or rows)[0])


def improvement(grid: Grid, row: Row, task: str | None = None) -> Estimate | None:
    """The probability that a run of the row beats one of the baseline, on one or all tasks.

    Only tasks with at least two seeds of both count. None if there is no such task, if the row
    is the baseline, or if the metric has no better direction.
    """
    return _improvement(_compared(grid, row, grid.tasks if task is None else [task]))


def _improvement(pairs: Pairs) -> Estimate | None:
    if not pairs:
        return None
    return probability_of_improvement([ours for ours, _ in pairs], [its for _, its in pairs])


def _compared(grid: Grid, row: Row, tasks: Sequence[str]) -> Pairs:
    """Values of the row and of the baseline, per task on which both have enough seeds."""
    base = baseline(grid)
    if row == base or grid.experiment.measure == "speed":
        return []
    cells = [(grid.cell(row, task), grid.cell(base, task)) for task in tasks]
    return [
        (ours.values, theirs.values)
        for ours, theirs in cells
        if min(len(ours.results), len(theirs.results)) >= MIN_SEEDS
    ]


def normalised(grid: Grid, cell: TableCell) -> list[float] | None:
    """Values divided by the mean of the Grid Oracle with the same preset and steps.

    None if either was not measured, or if the Grid Oracle's mean is not positive.
    """
    oracle = grid.oracle(cell.task)
    if not cell.results or oracle is None or oracle.summary is None or oracle.summary.mean <= 0:
        return None
    return [value / oracle.summary.mean for value in cell.values]


def normalised_summary(grid: Grid, cell: TableCell) -> Summary | None:
    values = normalised(grid, cell)
    return None if values is None else summarise(values)


def published_share(grid: Grid, cell: TableCell) -> float | None:
    """The published number divided by the Grid Oracle's."""
    oracle = grid.oracle(cell.task)
    if oracle is None or oracle.published is None or cell.published is None:
        return None
    return cell.published.mean / oracle.published.mean


def overall(grid: Grid) -> list[Overall]:
    """Aggregates each row over its tasks, with one stratum per task."""
    found = []
    for row in grid.experiment.rows:
        cells = [grid.cell(row, task) for task in grid.tasks]
        strata = [values for cell in cells if (values := normalised(grid, cell))]
        score = interquartile_mean(strata) if strata else None
        pairs = _compared(grid, row, grid.tasks)
        found.append(Overall(row, len(strata), score, _improvement(pairs), len(pairs)))
    return found
