"""The page of a folder of results: every experiment of the paper, measured beside published."""

import shlex
from collections.abc import Iterable, Sequence
from itertools import groupby
from pathlib import Path

from episodic_curiosity.report import page, written
from episodic_curiosity.report.figures import bar_charts, curve_charts
from episodic_curiosity.report.grids import Grid, Layout, Setting
from episodic_curiosity.report.page import Entry
from episodic_curiosity.report.promises import claims_table
from episodic_curiosity.report.tables import (
    Table,
    beside_table,
    numbers_table,
    overall_table,
    short_name,
)
from episodic_curiosity.results import Damage

READING = (
    "A measured number is the mean over the seeds, each seed being the mean of its test "
    "episodes, ± their standard deviation. Only runs of one preset and one number of steps are "
    "ever averaged; both stand beside every number. The paper's number of seeds stands in "
    "brackets.",
    "IQM is the interquartile mean: the mean without the best and the worst quarter of the "
    "runs. Intervals hold the true value with 95 % confidence, by a bootstrap that resamples "
    "the seeds of each task by themselves. P(better than X) is how likely a run of the method "
    "beats a run of X on the same task; 0.50 is a draw. Normalised means divided by the mean "
    "of the Grid Oracle, which knows where it is, with the same preset and steps; the "
    "intervals take that mean as given.",
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
        page.row(_tiles(layout.grids), "numbers"),
        *_problems(layout.problems),
        page.section("What was measured", page.table(*_contents(layout.grids))),
        page.section("What the paper says in words", page.table(*claims_table(layout.grids))),
        page.section("How to read it", *map(page.paragraph, READING)),
    ]
    for _, group in groupby(layout.grids, key=lambda grid: grid.experiment.name):
        sections.append(_experiment(list(group), folder))
    return page.page(
        "Episodic curiosity, measured beside published",
        "Every experiment of the paper with the numbers printed there, and beside them what "
        f"was measured here: the files of {folder.name}/. What was not measured says so.",
        sections,
    )


def _tiles(grids: Sequence[Grid]) -> list[str]:
    runs = {result.key for grid in grids for place in grid.places for result in place.results}
    begun = {grid.experiment.name for grid in grids if grid.is_begun}
    experiments = {grid.experiment.name for grid in grids}
    settings = {str(Setting(key.preset, key.steps)) for key in runs}
    steps = sum(key.steps for key in runs)
    return [
        page.number(f"{len(runs):,}", "Runs", f"{steps:,} steps in all"),
        page.number(f"{len(begun)} of {len(experiments)}", "Experiments begun", "of the paper"),
        page.number(f"{len(settings)}", "Settings", "; ".join(sorted(settings)) or "none yet"),
    ]


def _problems(problems: Sequence[Damage]) -> list[str]:
    if not problems:
        return []
    head = f"{written.count(len(problems), 'file')} not counted:"
    return [page.warning(head, *(problem.reason for problem in problems))]


def _contents(grids: Iterable[Grid]) -> Table:
    rows: list[list[str | Entry]] = [
        [
            Entry(grid.experiment.title, [grid.experiment.source], link=grid.experiment.name),
            Entry(written.coverage(grid), kind="" if grid.measured else "missing"),
            grid.world,
            *(_extent(grid) if grid.measured else ("-", "-", "-")),
        ]
        for grid in grids
    ]
    return Table(
        ["experiment", "cells measured", "world", "preset", "steps", "seeds of a cell"], rows
    )


def _extent(grid: Grid) -> tuple[str, str, str]:
    preset, steps = grid.setting
    return preset, f"{steps:,}", written.seeds(grid.measured)


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
    return page.block(
        "Not measured yet",
        page.table(*beside_table(grid)),
        page.paragraph("What would measure it, at the paper's sizes:"),
        page.commands(
            f"curiosity table {grid.experiment.name} --world {grid.world} --preset paper "
            f"--out {shlex.quote(str(folder))}"
        ),
    )


def _measured(grid: Grid, folder: Path) -> str:
    where = f"{grid.world}, {grid.setting}"
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
        codes = ", ".join(sorted({result.code for result in place.results}))
        name = f"{short_name(place.task)}, {place.row.name}"
        parts += [
            page.paragraph(f"{name}: {grid.setting}; code {codes}"),
            page.commands("\n".join(result.command for result in place.results)),
        ]
    return parts


def table_command(grid: Grid, folder: Path, num_seeds: int) -> str:
    """What measures the places of a grid that are still missing."""
    preset, steps = grid.setting
    return (
        f"curiosity table {grid.experiment.name} --world {grid.world} --preset {preset} "
        f"--steps {steps} --seeds {num_seeds} --out {shlex.quote(str(folder))}"
    )
