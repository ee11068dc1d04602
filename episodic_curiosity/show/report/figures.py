"""The charts of a grid: bars with the published numbers, and training curves."""

from episodic_curiosity.show.report import formatting
from episodic_curiosity.show.report.bars import Bar, bar_chart
from episodic_curiosity.show.report.chart import Axis, Line, line_chart
from episodic_curiosity.show.report.comparing import (
    normalised,
    normalised_summary,
    published_share,
)
from episodic_curiosity.show.report.curves import mean_curve, thinned
from episodic_curiosity.show.report.grids import Grid, Place
from episodic_curiosity.show.report.tables import short_name
from episodic_curiosity.support.statistics import Estimate, Summary

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
    places = [grid.place(row, task) for row in grid.experiment.rows]
    if any(normalised(grid, place) for place in places):
        axis = SHARE
        found = [
            (normalised_summary(grid, place), published_share(grid, place)) for place in places
        ]
    else:
        axis = Axis(formatting.UNITS[places[0].metric], _plain_form(places))
        found = [(place.summary, place.published and place.published.mean) for place in places]
    bars = [
        Bar(place.row.name, number, _estimate(short), published)
        for number, (place, (short, published)) in enumerate(zip(places, found, strict=True), 1)
    ]
    return bar_chart(short_name(task), axis, bars, f"{axis.label}; {_extent(grid, task)}")


def _lines(grid: Grid, task: str) -> list[Line]:
    lines = []
    for number, row in enumerate(grid.experiment.rows, 1):
        place = grid.place(row, task)
        runs = tuple(
            points
            for result in place.results
            if (points := thinned(result.curve, place.metric))
        )
        if runs:
            mean = mean_curve(runs)
            lines.append(Line(row.name, number, mean, runs, place.random_play_steps))
    return lines


def _curves(grid: Grid, task: str, lines: list[Line]) -> str:
    label = "steps, with random play" if any(line.before for line in lines) else "steps"
    steps = Axis(label, shows=(0, grid.regime.steps))
    unit = Axis(formatting.UNITS[grid.experiment.metric(task)], shows=(0,))
    note = f"{unit.label} while training; {_extent(grid, task)}"
    return line_chart(short_name(task), steps, unit, lines, note)


def _measured(grid: Grid, task: str) -> list[Place]:
    return [place for place in grid.measured if place.task == task]


def _extent(grid: Grid, task: str) -> str:
    return f"{grid.regime}, {formatting.seeds(_measured(grid, task))}"


def _estimate(short: Summary | None) -> Estimate | None:
    if short is None:
        return None
    return Estimate(short.mean, short.low, short.high, short.num_values)


def _plain_form(places: list[Place]) -> str:
    """The number format of an axis, chosen by its largest value."""
    sizes = [abs(place.summary.mean) for place in places if place.summary]
    sizes += [abs(place.published.mean) for place in places if place.published]
    return formatting.form(places[0].metric, max(sizes, default=0.0))
