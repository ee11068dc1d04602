"""The tables of a grid, for the HTML page and for Markdown."""

from collections.abc import Sequence
from typing import NamedTuple

from episodic_curiosity.show.report import formatting
from episodic_curiosity.show.report.comparing import Overall, baseline, improvement, overall
from episodic_curiosity.show.report.grids import Grid, Place
from episodic_curiosity.show.report.page import Entry
from episodic_curiosity.worlds.family import split_task

# Not recorded for an R-network alone.
RATES = {
    "steps/s while training": "steps_per_second",
    "steps/s overall": "steps_per_second_in_all",
}
EXTENT = ["preset", "steps", "seeds", "test episodes"]
NUMBERS = ["mean", "deviation", "IQM", "95 % interval"]
TIME = ["minutes per run", *RATES, "hardware"]


class Table(NamedTuple):
    """A header and rows."""

    head: Sequence[str]
    rows: Sequence[Sequence[str | Entry]]
    aside: Sequence[str] = ()  # columns that are hidden on small screens


def beside_table(grid: Grid) -> Table:
    """Measured and published numbers, with methods as rows and tasks as columns."""
    corner = str(grid.regime) if grid.measured else "not measured"
    head = [corner, *(short_name(task) for task in grid.tasks)]
    rows = [
        [Entry(row.name, colour=number), *(_both(grid.place(row, task)) for task in grid.tasks)]
        for number, row in enumerate(grid.experiment.rows, 1)
    ]
    return Table(head, rows)


def overall_table(grid: Grid) -> Table:
    """Every method over all tasks; empty if nothing can be compared."""
    lines = [line for line in overall(grid) if line.score or line.improvement]
    base, num_tasks = baseline(grid), len(grid.tasks)
    head = [str(grid.regime), f"P(better than {base.name})", "tasks compared"]
    if scored := any(line.score for line in lines):
        head += ["IQM, normalised", "95 % interval", "tasks with a score"]
    colours = {row.name: number for number, row in enumerate(grid.experiment.rows, 1)}
    rows: list[list[str | Entry]] = []
    for line in lines if num_tasks > 1 else []:
        name = Entry(line.row.name, colour=colours[line.row.name])
        score = _score(line, num_tasks) if scored else []
        compared = "-" if line.row == base else f"{line.num_compared} of {num_tasks}"
        rows.append([name, formatting.estimate(line.improvement), compared, *score])
    return Table(head, rows)


def numbers_table(grid: Grid) -> Table:
    """All numbers of every measured place."""
    head = ["task", "method", *EXTENT, *NUMBERS, f"P(better than {baseline(grid).name})"]
    head += ["published", "measured / published", *TIME]
    by_task = sorted(grid.measured, key=lambda place: grid.tasks.index(place.task))
    rows = [
        [
            short_name(place.task),
            place.row.name,
            *_extent(place),
            *_numbers(place),
            formatting.estimate(improvement(grid, place.row, place.task)),
            formatting.published_with_seeds(place),
            _beside_published(place),
            *_time(place),
        ]
        for place in by_task
    ]
    return Table(head, rows)


def plain_table(places: Sequence[Place]) -> Table:
    """Places that are not in the paper, without published numbers."""
    rows = [
        [
            place.task,
            place.row.name,
            place.metric,
            *_extent(place),
            *_numbers(place),
            *_time(place),
        ]
        for place in places
    ]
    return Table(["task", "method", "number", *EXTENT, *NUMBERS, *TIME], rows)


def short_name(task: str) -> str:
    """A task without its family."""
    return split_task(task)[1]


def _score(line: Overall, num_tasks: int) -> list[str]:
    counted = f"{line.num_tasks} of {num_tasks}"
    if line.score is None:
        return ["-", "-", counted]
    return [f"{line.score.value:.2f}", formatting.interval(line.score, ".2f"), counted]


def _both(place: Place) -> Entry:
    paper = [f"paper {formatting.published_with_seeds(place)}"] if place.published else []
    if not place.results:
        return Entry("missing", paper, kind="missing")
    seeds = formatting.count(len(place.results), "seed")
    return Entry(formatting.measured(place), [seeds, *_mixed(place), *paper])


def _mixed(place: Place) -> list[str]:
    """A note if a mean is over results of several code versions."""
    return [f"{len(place.codes)} code versions"] if len(place.codes) > 1 else []


def _extent(place: Place) -> list[str | Entry]:
    return [
        place.key.preset,
        f"{place.key.steps:,}",
        Entry(str(len(place.results)), _mixed(place)),
        "-" if place.episodes is None else f"{place.episodes:,}",
    ]


def _numbers(place: Place) -> list[str | Entry]:
    short, middle = place.summary, place.middle
    assert short is not None
    assert middle is not None
    how = formatting.form(place.metric, short.mean)
    return [
        format(short.mean, how),
        "-" if short.deviation is None else format(short.deviation, how),
        format(middle.value, how),
        formatting.interval(middle, how),
    ]


def _beside_published(place: Place) -> str:
    if place.summary is None or place.published is None or not place.published.mean:
        return "-"
    return f"{place.summary.mean / place.published.mean:.2f}"


def _time(place: Place) -> list[str | Entry]:
    """Minutes and steps/s of a run, as means over its seeds, and the hardware."""
    minutes = _mean([timing["seconds"] / 60 for timing in place.timings], ",.1f")
    rates = [
        _mean([timing[rate] for timing in place.timings if rate in timing], ",.0f")
        for rate in RATES.values()
    ]
    hardware = sorted({str(timing.get("hardware", "-")) for timing in place.timings})
    return [minutes, *rates, ", ".join(hardware) or "-"]


def _mean(values: list[float], how: str) -> str:
    return format(sum(values) / len(values), how) if values else "-"
