"""What the tables of a grid say, for the page and for the documentation alike."""

from collections.abc import Sequence
from typing import NamedTuple

from episodic_curiosity.report import written
from episodic_curiosity.report.comparing import Overall, baseline, improvement, overall
from episodic_curiosity.report.grids import Grid, Place
from episodic_curiosity.report.page import Entry

RATE = "steps_per_second"  # an R-network alone has none


class Table(NamedTuple):
    """Rows under a head."""

    head: Sequence[str]
    rows: Sequence[Sequence[str | Entry]]


def beside_table(grid: Grid) -> Table:
    """As the paper lays it out: a method in each row, a task in each column."""
    corner = str(grid.setting) if grid.measured else "not measured"
    head = [corner, *(short_name(task) for task in grid.tasks)]
    rows = [
        [
            Entry(row.name, colour=number),
            *(_both(grid.place(row, task)) for task in grid.tasks),
        ]
        for number, row in enumerate(grid.experiment.rows, 1)
    ]
    return Table(head, rows)


def overall_table(grid: Grid) -> Table:
    """Every row over all tasks; without rows where nothing can be compared."""
    lines = [line for line in overall(grid) if line.score or line.improvement]
    head = [str(grid.setting), f"P(better than {baseline(grid).name})"]
    if scored := any(line.score for line in lines):
        head += ["IQM, normalised", "95 % interval", "tasks with a score"]
    colours = {row.name: number for number, row in enumerate(grid.experiment.rows, 1)}
    rows: list[list[str | Entry]] = []
    for line in lines if len(grid.tasks) > 1 else []:
        name = Entry(line.row.name, colour=colours[line.row.name])
        score = _score(line, len(grid.tasks)) if scored else []
        rows.append([name, written.estimate(line.improvement), *score])
    return Table(head, rows)


def numbers_table(grid: Grid) -> Table:
    """All that is known of every place that was measured."""
    head = ["task", "method", "preset", "steps", "seeds", "mean", "deviation", "IQM"]
    head += ["95 % interval", f"P(better than {baseline(grid).name})", "published"]
    head += ["measured / published", "minutes a run", "steps/s", "on"]
    by_task = sorted(grid.measured, key=lambda place: grid.tasks.index(place.task))
    return Table(head, [_numbers(grid, place) for place in by_task])


def short_name(task: str) -> str:
    """A task without its world, which is said elsewhere."""
    return task.partition("/")[2]


def _score(line: Overall, num_tasks: int) -> list[str]:
    counted = f"{line.num_tasks} of {num_tasks}"
    if line.score is None:
        return ["-", "-", counted]
    return [f"{line.score.value:.2f}", written.interval(line.score, ".2f"), counted]


def _both(place: Place) -> Entry:
    paper = [f"paper {written.published_with_seeds(place)}"] if place.published else []
    if not place.results:
        return Entry("missing", paper, kind="missing")
    return Entry(written.measured(place), [written.count(len(place.results), "seed"), *paper])


def _numbers(grid: Grid, place: Place) -> list[str | Entry]:
    short, middle = place.summary, place.middle
    assert short is not None
    assert middle is not None
    how = written.form(place.metric, short.mean)
    ratio = "-"
    if place.published is not None and place.published.mean:
        ratio = f"{short.mean / place.published.mean:.2f}"
    return [
        short_name(place.task),
        place.row.name,
        place.key.preset,
        f"{place.key.steps:,}",
        str(len(place.results)),
        format(short.mean, how),
        "-" if short.deviation is None else format(short.deviation, how),
        format(middle.value, how),
        written.interval(middle, how),
        written.estimate(improvement(grid, place.row, place.task)),
        written.published_with_seeds(place),
        ratio,
        *_time(place),
    ]


def _time(place: Place) -> list[str]:
    """Minutes and steps a second of a run, the mean over its seeds, and on what."""
    minutes = [timing["seconds"] / 60 for timing in place.timings]
    rates = [timing[RATE] for timing in place.timings if RATE in timing]
    hardware = sorted({str(timing["hardware"]) for timing in place.timings})
    return [_mean(minutes), _mean(rates), ", ".join(hardware) or "-"]


def _mean(values: list[float]) -> str:
    return f"{sum(values) / len(values):,.0f}" if values else "-"
