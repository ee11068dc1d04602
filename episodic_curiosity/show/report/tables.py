"""The tables of a grid, for the HTML page and for Markdown."""

from collections.abc import Sequence
from typing import NamedTuple

from episodic_curiosity.show.report import formatting
from episodic_curiosity.show.report.comparison import Overall, baseline, improvement, overall
from episodic_curiosity.show.report.grids import Grid, TableCell
from episodic_curiosity.show.report.page import Entry
from episodic_curiosity.worlds.family import split_task

# Not recorded for an R-network alone.
RATES = {
    "steps/s while training": "steps_per_second",
    "steps/s overall": "steps_per_second_in_all",
}
EXTENT = ["preset", "steps", "seeds", "test episodes"]
NUMBERS = ["mean", "95 % interval", "deviation", "IQM"]
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
        [Entry(row.name, colour=number), *(_both(grid.cell(row, task)) for task in grid.tasks)]
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
    """All numbers of every measured cell."""
    head = ["task", "method", *EXTENT, *NUMBERS, f"P(better than {baseline(grid).name})"]
    head += ["published", "measured / published", *TIME]
    by_task = sorted(grid.measured, key=lambda cell: grid.tasks.index(cell.task))
    rows = [
        [
            short_name(cell.task),
            cell.row.name,
            *_extent(cell),
            *_numbers(cell),
            formatting.estimate(improvement(grid, cell.row, cell.task)),
            formatting.published_with_seeds(cell),
            _beside_published(cell),
            *_time(cell),
        ]
        for cell in by_task
    ]
    return Table(head, rows)


def plain_table(cells: Sequence[TableCell]) -> Table:
    """Places that are not in the paper, without published numbers."""
    rows = [
        [cell.task, cell.row.name, cell.metric, *_extent(cell), *_numbers(cell), *_time(cell)]
        for cell in cells
    ]
    return Table(["task", "method", "number", *EXTENT, *NUMBERS, *TIME], rows)


def short_name(task: str) -> str:
    """A task without its family."""
    return split_task(task)[1]


def _score(line: Overall, num_tasks: int) -> list[str]:
    scored = f"{line.num_tasks} of {num_tasks}"
    if line.score is None:
        return ["-", "-", scored]
    return [f"{line.score.value:.2f}", formatting.interval(line.score, ".2f"), scored]


def _both(cell: TableCell) -> Entry:
    paper = [f"paper {formatting.published_with_seeds(cell)}"] if cell.published else []
    if not cell.results:
        return Entry("missing", paper, kind="missing")
    seeds = formatting.count(len(cell.results), "seed")
    return Entry(formatting.measured(cell), [seeds, *_mixed(cell), *paper])


def _mixed(cell: TableCell) -> list[str]:
    """A note if a mean is over results of several code versions."""
    return [f"{len(cell.codes)} code versions"] if len(cell.codes) > 1 else []


def _extent(cell: TableCell) -> list[str | Entry]:
    return [
        cell.key.preset,
        f"{cell.key.steps:,}",
        Entry(str(len(cell.results)), _mixed(cell)),
        "-" if cell.episodes is None else f"{cell.episodes:,}",
    ]


def _numbers(cell: TableCell) -> list[str | Entry]:
    short, middle = cell.summary, cell.middle
    assert short is not None
    assert middle is not None
    how = formatting.form(cell.metric, short.mean)
    return [
        format(short.mean, how),
        formatting.interval(short, how),
        "-" if short.deviation is None else format(short.deviation, how),
        format(middle, how),
    ]


def _beside_published(cell: TableCell) -> str:
    if cell.summary is None or cell.published is None or not cell.published.mean:
        return "-"
    return f"{cell.summary.mean / cell.published.mean:.2f}"


def _time(cell: TableCell) -> list[str | Entry]:
    """Minutes and steps/s of a run, as means over its seeds, and the hardware."""
    minutes = _mean([timing["seconds"] / 60 for timing in cell.timings], ",.1f")
    rates = [
        _mean([timing[rate] for timing in cell.timings if rate in timing], ",.0f")
        for rate in RATES.values()
    ]
    hardware = sorted({str(timing.get("hardware", "-")) for timing in cell.timings})
    return [minutes, *rates, ", ".join(hardware) or "-"]


def _mean(values: list[float], how: str) -> str:
    return format(sum(values) / len(values), how) if values else "-"
