"""The charts of a grid: bars with the published numbers, and training curves."""

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np

from episodic_curiosity.experiments.measure import OF_EPISODES
from episodic_curiosity.show.report import formatting
from episodic_curiosity.show.report.bars import Bar, bar_chart
from episodic_curiosity.show.report.chart import Axis, Line, Points, line_chart
from episodic_curiosity.show.report.comparison import (
    normalised,
    normalised_summary,
    published_share,
)
from episodic_curiosity.show.report.grids import Grid, TableCell
from episodic_curiosity.show.report.tables import short_name
from episodic_curiosity.support.statistics import Estimate, Summary

NUM_POINTS = 40  # of a curve: few enough to smooth the noise of single lines of metrics
SHARE = Axis("of the Grid Oracle", ".0%", shows=(0.0, 1.0))


def bar_charts(grid: Grid) -> list[str]:
    """One figure per measured task, if larger values are better."""
    if grid.experiment.measure == "speed":
        return []
    return [_bars(grid, task) for task in grid.tasks if _measured(grid, task)]


def curve_charts(grid: Grid) -> list[str]:
    """One figure per task with training curves."""
    drawn = ((task, _lines(grid, task)) for task in grid.tasks)
    return [_curves(grid, task, lines) for task, lines in drawn if lines]


def _bars(grid: Grid, task: str) -> str:
    """Values relative to the Grid Oracle if it was measured, else plain values."""
    cells = [grid.cell(row, task) for row in grid.experiment.rows]
    if any(normalised(grid, cell) for cell in cells):
        axis = SHARE
        found = [
            (normalised_summary(grid, cell), published_share(grid, cell)) for cell in cells
        ]
    else:
        axis = Axis(formatting.UNITS[cells[0].metric], _plain_form(cells))
        found = [(cell.summary, cell.published and cell.published.mean) for cell in cells]
    bars = [
        Bar(cell.row.name, number, _estimate(short), published)
        for number, (cell, (short, published)) in enumerate(zip(cells, found, strict=True), 1)
    ]
    return bar_chart(short_name(task), axis, bars, f"{axis.label}; {_extent(grid, task)}")


def _lines(grid: Grid, task: str) -> list[Line]:
    lines = []
    for number, row in enumerate(grid.experiment.rows, 1):
        cell = grid.cell(row, task)
        runs = tuple(
            points for result in cell.results if (points := thinned(result.curve, cell.metric))
        )
        if runs:
            mean = mean_curve(runs)
            lines.append(Line(row.name, number, mean, runs, cell.random_play_steps))
    return lines


def _curves(grid: Grid, task: str, lines: list[Line]) -> str:
    label = "steps, with random play" if any(line.before for line in lines) else "steps"
    steps = Axis(label, shows=(0, grid.regime.steps))
    unit = Axis(formatting.UNITS[grid.experiment.metric(task)], shows=(0,))
    note = f"{unit.label} while training; {_extent(grid, task)}"
    return line_chart(short_name(task), steps, unit, lines, note)


def _measured(grid: Grid, task: str) -> list[TableCell]:
    return [cell for cell in grid.measured if cell.task == task]


def _extent(grid: Grid, task: str) -> str:
    return f"{grid.regime}, {formatting.seeds(_measured(grid, task))}"


def _estimate(short: Summary | None) -> Estimate | None:
    if short is None:
        return None
    return Estimate(short.mean, short.low, short.high, short.num_values)


def _plain_form(cells: list[TableCell]) -> str:
    """The number format of an axis, chosen by its largest value."""
    sizes = [abs(cell.summary.mean) for cell in cells if cell.summary]
    sizes += [abs(cell.published.mean) for cell in cells if cell.published]
    return formatting.form(cells[0].metric, max(sizes, default=0.0))


def thinned(
    lines: Sequence[Mapping[str, float]], metric: str, num_points: int = NUM_POINTS
) -> Points:
    """A metric over the steps, with lines averaged into at most `num_points` points.

    Each episode has the same weight. A point is at the last step of its piece, even if the
    metric was not measured there, so that the points of all seeds align. A piece without
    measurements has no point.
    """
    # All pieces but the last have one size: unequal ones would put a kink into the line. A
    # short last piece is merged with the one before it.
    size = max(1, math.ceil(len(lines) / num_points))
    borders = list(range(0, len(lines), size))
    if len(borders) > 1 and 2 * (len(lines) - borders[-1]) <= size:
        borders.pop()
    pieces = [lines[start:end] for start, end in pairwise([*borders, len(lines)])]
    means = ((float(piece[-1]["steps"]), _mean(piece, metric)) for piece in pieces)
    return tuple((steps, mean) for steps, mean in means if mean is not None)


def mean_curve(curves: Sequence[Points]) -> Points:
    """The mean of several curves at the steps that all of them have.

    A mean of fewer curves would jump where another begins.
    """
    if not curves:
        return ()
    by_steps = [dict(points) for points in curves]
    shared = sorted(set.intersection(*(set(points) for points in by_steps)))
    return tuple(
        (steps, sum(points[steps] for points in by_steps) / len(by_steps)) for steps in shared
    )


def _mean(lines: Sequence[Mapping[str, float]], metric: str) -> float | None:
    known = [line for line in lines if math.isfinite(line.get(metric, math.nan))]
    if not known:
        return None
    is_of_episodes = metric in OF_EPISODES
    weights = [line.get("episodes", 1.0) if is_of_episodes else 1.0 for line in known]
    return float(np.average([line[metric] for line in known], weights=weights))
