"""The HTML report of a results folder: measured and published numbers per experiment."""

import itertools
import shlex
from collections.abc import Iterable, Sequence
from itertools import groupby
from pathlib import Path

from episodic_curiosity.experiments.cells import EPISODES, LEAST_EPISODES
from episodic_curiosity.experiments.results import Problem
from episodic_curiosity.show.report import claim_tables, formatting, page, tables
from episodic_curiosity.show.report.figures import bar_charts, curve_charts
from episodic_curiosity.show.report.grids import Grid, Layout, Regime, TableCell
from episodic_curiosity.show.report.page import Entry
from episodic_curiosity.show.report.tables import short_name

SEEDS = 5  # default of `curiosity table`, used if the paper does not state its seeds
READING = (
    "A measured number is the mean ± standard deviation over seeds. The value of a seed is the "
    "mean over its test episodes. Only runs with the same preset, steps and number of test "
    "episodes are averaged. The number in brackets is the paper's number of seeds.",
    "The 95% interval of a mean is Student's t up to 30 seeds, so that of two seeds is very "
    "wide. A single seed has no interval.",
    "IQM is the interquartile mean: the mean without the best and the worst quarter of the "
    "runs, with equal weights for tasks. P(better than X) is the probability that a run of the "
    "method beats a run of X on the same task; 0.50 is a draw. Only tasks with at least two "
    "seeds of both count.",
    "Intervals of IQM, of P(better than X) and of ratios are bootstrap intervals, with seeds "
    "resampled within each task. With few seeds they are too narrow: they contain the true "
    "value about 84 times in 100 with five seeds, 73 with three and 51 with two.",
    "Normalised values are divided by the mean of the Grid Oracle, which knows its position, "
    "with the same preset and steps. Their intervals treat that mean as exact.",
    claim_tables.READING,
    "Steps/s while training are the median over updates, which leaves out the work on "
    "R-networks. Overall steps/s are all steps divided by the duration of the run, with "
    "compilation and without the test.",
)
ABOUT_BARS = (
    "Bars are the measured means, thin lines their 95 % intervals, as far as the axis goes; "
    "an upright mark is the published number."
)
ABOUT_CURVES = (
    "Thin lines are single runs on the training levels, thick lines their means. A thick part "
    "of the axis is the random play for the R-network."
)


def results_page(layout: Layout, folder: Path) -> str:
    """The complete file: what was measured, how to read it, what is missing."""
    by_name = groupby(layout.grids, key=lambda grid: grid.experiment.name)
    experiments = [list(group) for _, group in by_name]
    begun = [group for group in experiments if group[0].is_begun]
    sections = [
        page.row(_tiles(layout), "numbers"),
        *_problems(layout.problems),
        *_contents(itertools.chain.from_iterable(begun)),
        *(_experiment(group, folder) for group in begun),
    ]
    for table, cells in groupby(layout.others, key=lambda cell: cell.key.table):
        sections.append(_other(table, list(cells)))
    claims = claim_tables.claims_table(layout.grids)
    if claims.rows:
        sections.append(page.section("Claims of the paper's text", page.table(*claims)))
    sections.append(page.section("How to read the numbers", *map(page.paragraph, READING)))
    sections += _missing([group for group in experiments if group not in begun], layout, folder)
    return page.page(
        "Episodic curiosity: measured and published results",
        "Every experiment of the paper, with the published numbers and those measured here, "
        f"from the files of {folder.name}/. Missing cells are marked.",
        sections,
    )


def _tiles(layout: Layout) -> list[str]:
    grids = layout.grids
    cells = [*layout.others, *(cell for grid in grids for cell in grid.cells)]
    runs = {result.key for cell in cells for result in cell.results}
    begun = {grid.experiment.name for grid in grids if grid.is_begun}
    experiments = {grid.experiment.name for grid in grids}
    settings = {str(Regime(key.preset, key.steps)) for key in runs}
    steps = sum(key.steps for key in runs)
    return [
        page.number(f"{len(runs):,}", "Runs", f"{steps:,} steps in total"),
        page.number(f"{len(begun)} of {len(experiments)}", "Experiments begun", "of the paper"),
        page.number(f"{len(settings)}", "Settings", "; ".join(sorted(settings)) or "none yet"),
    ]


def _problems(problems: Sequence[Problem]) -> list[str]:
    if not problems:
        return []
    head = f"{formatting.count(len(problems), 'file')} not counted:"
    return [page.warning(head, *(problem.reason for problem in problems))]


def _contents(grids: Iterable[Grid]) -> list[str]:
    """A list of the measured grids, with links."""
    rows: list[list[str | Entry]] = [
        [
            Entry(grid.experiment.title, [grid.experiment.source], link=grid.experiment.name),
            Entry(formatting.coverage(grid), kind="" if grid.measured else "missing"),
            grid.world,
            *(_extent(grid) if grid.measured else ("-", "-", "-")),
        ]
        for grid in grids
    ]
    if not rows:
        return []
    head = ["experiment", "cells measured", "world", "preset", "steps", "seeds per cell"]
    return [page.section("Experiments", page.table(head, rows, aside=["world", "preset"]))]


def _extent(grid: Grid) -> tuple[str, str, Entry]:
    preset, steps = grid.regime
    return preset, f"{steps:,}", Entry(formatting.seeds(grid.measured), kind="words")


def _experiment(grids: Sequence[Grid], folder: Path) -> str:
    experiment = grids[0].experiment
    parts = [
        page.block(f"{grid.world}, {grid.regime}", *_measured(grid, folder)) for grid in grids
    ]
    return page.section(experiment.title, *_about(grids), *parts, anchor=experiment.name)


def _missing(groups: Sequence[Sequence[Grid]], layout: Layout, folder: Path) -> list[str]:
    """The published numbers of what was not measured, collapsed."""
    folds = []
    for grids in groups:
        title = f"{grids[0].experiment.title}: {sum(len(grid.cells) for grid in grids)} cells"
        parts = [part for grid in grids for part in _unmeasured(grid, folder)]
        folds.append(page.fold(title, *_about(grids), *parts))
    claims = claim_tables.open_claims_table(layout.grids)
    if claims.rows:
        title = f"Claims of the paper's text: {len(claims.rows)}"
        folds.append(page.fold(title, page.table(*claims)))
    return [page.section("Not measured yet", *folds)] if folds else []


def _about(grids: Sequence[Grid]) -> list[str]:
    experiment = grids[0].experiment
    note = [f"Note: {experiment.note}."] if experiment.note else []
    return [page.paragraph(line) for line in (f"In the paper: {experiment.source}.", *note)]


def _unmeasured(grid: Grid, folder: Path) -> list[str]:
    seeds = grid.experiment.seeds
    unsaid = "" if seeds else " (the paper does not state its number of seeds)"
    return [
        page.table(*tables.beside_table(grid)),
        page.paragraph(f"The command to measure it as published{unsaid}:"),
        page.commands(table_command(grid, folder, seeds or SEEDS)),
    ]


def _measured(grid: Grid, folder: Path) -> list[str]:
    where = f"{grid.world}, {grid.regime}"
    parts = [page.table(*tables.beside_table(grid))]
    over_all = tables.overall_table(grid)
    if over_all.rows:
        parts += [page.paragraph("Over all tasks:"), page.table(*over_all)]
    if bars := bar_charts(grid):
        parts += [page.row(bars, "charts"), page.paragraph(ABOUT_BARS)]
    if curves := curve_charts(grid):
        parts += [page.row(curves, "charts"), page.paragraph(ABOUT_CURVES)]
    return [
        *parts,
        page.fold(f"All numbers: {where}", page.table(*tables.numbers_table(grid))),
        page.fold(f"Commands: {where}", *_commands(grid, folder)),
    ]


def _commands(grid: Grid, folder: Path) -> list[str]:
    parts = []
    if len(grid.measured) < len(grid.cells):
        num_seeds = max(len(cell.results) for cell in grid.measured)
        parts += [
            page.paragraph("The command for the missing cells:"),
            page.commands(table_command(grid, folder, num_seeds)),
        ]
    for cell in grid.measured:
        name = f"{short_name(cell.task)}, {cell.row.name}"
        parts += _command(f"{name}: {grid.regime}", cell)
    return parts


def _other(table: str, cells: Sequence[TableCell]) -> str:
    """The section of a table that is not in the paper."""
    commands = [
        part
        for cell in {cell.key: cell for cell in cells}.values()
        for part in _command(
            f"{cell.task}, {cell.row.name}: {Regime(cell.key.preset, cell.key.steps)}", cell
        )
    ]
    return page.section(
        f"Not in the paper: {table}",
        page.table(*tables.plain_table(cells)),
        page.fold("Commands", *commands),
    )


def _command(name: str, cell: TableCell) -> list[str]:
    commands = [result.command for result in cell.results if result.command]
    return [
        page.paragraph(f"{name}; code {', '.join(cell.codes)}"),
        *([page.commands("\n".join(commands))] if commands else []),
    ]


def table_command(grid: Grid, folder: Path, num_seeds: int) -> str:
    """The command that measures the missing cells of a grid, as the others were."""
    preset, steps = grid.regime
    tested = [_episodes_wanted(cell) for cell in grid.measured if cell.episodes is not None]
    episodes = max(min(tested, default=EPISODES), LEAST_EPISODES)
    return (
        f"curiosity table {grid.experiment.name} --world {grid.world} --preset {preset} "
        f"--steps {steps} --seeds {num_seeds} --out {shlex.quote(str(folder))}"
        + (f" --episodes {episodes}" if episodes != EPISODES else "")
    )


def _episodes_wanted(cell: TableCell) -> int:
    """The `--episodes` of a tested cell: every environment plays the same number of them."""
    assert cell.episodes is not None
    num_envs = min(cell.results[0].config["world"]["num_envs"], EPISODES)
    by_default = -(-EPISODES // num_envs) * num_envs
    return EPISODES if cell.episodes == by_default else cell.episodes
