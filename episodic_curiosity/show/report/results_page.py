"""The page of a folder of results: every experiment of the paper, measured beside published."""

import shlex
from collections.abc import Iterable, Sequence
from itertools import groupby
from pathlib import Path

from episodic_curiosity.experiments.results import Problem
from episodic_curiosity.show.report import claim_tables as promises
from episodic_curiosity.show.report import formatting, page
from episodic_curiosity.show.report.figures import bar_charts, curve_charts
from episodic_curiosity.show.report.grids import Grid, Layout, Place, Regime
from episodic_curiosity.show.report.page import Entry
from episodic_curiosity.show.report.tables import (
    Table,
    beside_table,
    numbers_table,
    overall_table,
    plain_table,
    short_name,
)

SEEDS = 5  # what `curiosity table` measures where the paper does not say how many it had
READING = (
    "A measured number is the mean over the seeds, each seed being the mean of its test "
    "episodes, ± their standard deviation. Only runs of one preset, one number of steps and "
    "one number of test episodes are ever averaged; the first two stand beside every number. "
    "The paper's number of seeds stands in brackets.",
    "IQM is the interquartile mean: the mean without the best and the worst quarter of the "
    "runs, where every task weighs the same. Intervals are those of a bootstrap that "
    "resamples the seeds of each task by themselves. Of many seeds they hold the true value 95 "
    "times in 100; of few they are too narrow and hold it less often, of five about 84 times, "
    "of three 73, of two 51. One seed has none. P(better than X) is how likely a run of the "
    "method beats a run of X on the same task, of those with two seeds or more of both; 0.50 "
    "is a draw. Normalised means divided by the mean of the Grid Oracle, which knows where it "
    "is, with the same preset and steps; the intervals take that mean as given.",
    promises.READING,
    "Steps/s while training are the median over the updates, without the work on R-networks; "
    "in all is every step over every second of the run, compilers included, without the test.",
)
ABOUT_BARS = (
    "Bars are the measured means, thin lines their 95 % intervals; an upright mark is the "
    "published number."
)
ABOUT_CURVES = (
    "Thin lines are single runs on the training levels, thick ones their mean. A thick piece "
    "of the axis is the random play that an R-network was fitted to beforehand."
)


def results_page(layout: Layout, folder: Path) -> str:
    """The whole file."""
    sections = [
        page.row(_tiles(layout), "numbers"),
        *_problems(layout.problems),
        page.section("What was measured", page.table(*_contents(layout.grids))),
        page.section(
            "What the paper says in words", page.table(*promises.claims_table(layout.grids))
        ),
        page.section("How to read it", *map(page.paragraph, READING)),
    ]
    for _, group in groupby(layout.grids, key=lambda grid: grid.experiment.name):
        sections.append(_experiment(list(group), folder))
    for table, places in groupby(layout.others, key=lambda place: place.key.table):
        sections.append(_other(table, list(places)))
    return page.page(
        "Episodic curiosity, measured beside published",
        "Every experiment of the paper with the numbers printed there, and beside them what "
        f"was measured here: the files of {folder.name}/. What was not measured says so.",
        sections,
    )


def _tiles(layout: Layout) -> list[str]:
    grids = layout.grids
    places = [*layout.others, *(place for grid in grids for place in grid.places)]
    runs = {result.key for place in places for result in place.results}
    begun = {grid.experiment.name for grid in grids if grid.is_begun}
    experiments = {grid.experiment.name for grid in grids}
    settings = {str(Regime(key.preset, key.steps)) for key in runs}
    steps = sum(key.steps for key in runs)
    return [
        page.number(f"{len(runs):,}", "Runs", f"{steps:,} steps in all"),
        page.number(f"{len(begun)} of {len(experiments)}", "Experiments begun", "of the paper"),
        page.number(f"{len(settings)}", "Settings", "; ".join(sorted(settings)) or "none yet"),
    ]


def _problems(problems: Sequence[Problem]) -> list[str]:
    if not problems:
        return []
    head = f"{formatting.count(len(problems), 'file')} not counted:"
    return [page.warning(head, *(problem.reason for problem in problems))]


def _contents(grids: Iterable[Grid]) -> Table:
    rows: list[list[str | Entry]] = [
        [
            Entry(grid.experiment.title, [grid.experiment.source], link=grid.experiment.name),
            Entry(formatting.coverage(grid), kind="" if grid.measured else "missing"),
            grid.world,
            *(_extent(grid) if grid.measured else ("-", "-", "-")),
        ]
        for grid in grids
    ]
    head = ["experiment", "cells measured", "world", "preset", "steps", "seeds of a cell"]
    return Table(head, rows, aside=["world", "preset"])


def _extent(grid: Grid) -> tuple[str, str, Entry]:
    preset, steps = grid.regime
    return preset, f"{steps:,}", Entry(formatting.seeds(grid.measured), kind="words")


def _experiment(grids: Sequence[Grid], folder: Path) -> str:
    experiment = grids[0].experiment
    parts = [page.paragraph(f"In the paper: {experiment.source}.")]
    if experiment.note:
        parts.append(page.paragraph(f"Note: {experiment.note}."))
    parts += [
        _measured(grid, folder) if grid.measured else _unmeasured(grid, folder)
        for grid in grids
    ]
    return page.section(experiment.title, *parts, anchor=experiment.name)


def _unmeasured(grid: Grid, folder: Path) -> str:
    seeds = grid.experiment.seeds
    unsaid = "" if seeds else " (how many seeds it had the paper does not say)"
    return page.block(
        "Not measured yet",
        page.table(*beside_table(grid)),
        page.paragraph(f"What would measure it, at the paper's sizes{unsaid}:"),
        page.commands(table_command(grid, folder, seeds or SEEDS)),
    )


def _measured(grid: Grid, folder: Path) -> str:
    where = f"{grid.world}, {grid.regime}"
    parts = [page.table(*beside_table(grid))]
    over_all = overall_table(grid)
    if over_all.rows:
        parts += [page.paragraph("Over all tasks:"), page.table(*over_all)]
    if bars := bar_charts(grid):
        parts += [page.row(bars, "charts"), page.paragraph(ABOUT_BARS)]
    if curves := curve_charts(grid):
        parts += [page.row(curves, "charts"), page.paragraph(ABOUT_CURVES)]
    parts += [
        page.fold(f"All numbers: {where}", page.table(*numbers_table(grid))),
        page.fold(f"The command behind every number: {where}", *_commands(grid, folder)),
    ]
    return page.block(where, *parts)


def _commands(grid: Grid, folder: Path) -> list[str]:
    parts = []
    if len(grid.measured) < len(grid.places):
        num_seeds = max(len(place.results) for place in grid.measured)
        parts += [
            page.paragraph("What measures the missing ones:"),
            page.commands(table_command(grid, folder, num_seeds)),
        ]
    for place in grid.measured:
        name = f"{short_name(place.task)}, {place.row.name}"
        parts += _command(f"{name}: {grid.regime}", place)
    return parts


def _other(table: str, places: Sequence[Place]) -> str:
    """A table that the paper does not have."""
    commands = [
        part
        for place in {place.key: place for place in places}.values()
        for part in _command(
            f"{place.task}, {place.row.name}: {Regime(place.key.preset, place.key.steps)}",
            place,
        )
    ]
    return page.section(
        f"Not of the paper: {table}",
        page.table(*plain_table(places)),
        page.fold("The command behind every number", *commands),
    )


def _command(name: str, place: Place) -> list[str]:
    commands = [result.command for result in place.results if result.command]
    return [
        page.paragraph(f"{name}; code {', '.join(place.codes)}"),
        *([page.commands("\n".join(commands))] if commands else []),
    ]


def table_command(grid: Grid, folder: Path, num_seeds: int) -> str:
    """What measures the places of a grid that are still missing."""
    preset, steps = grid.regime
    return (
        f"curiosity table {grid.experiment.name} --world {grid.world} --preset {preset} "
        f"--steps {steps} --seeds {num_seeds} --out {shlex.quote(str(folder))}"
    )
