"""The tables of a folder of results as Markdown, for the documentation."""

import html
import re
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

from episodic_curiosity.show.report import formatting, tables
from episodic_curiosity.show.report.claim_tables import claims_table, open_claims_table
from episodic_curiosity.show.report.grids import Grid, Layout
from episodic_curiosity.show.report.page import Entry
from episodic_curiosity.show.report.results_page import READING, table_command
from episodic_curiosity.show.report.tables import Table
from episodic_curiosity.support.checks import printable


def results_markdown(layout: Layout, folder: Path, command: str) -> str:
    """The complete file; unmeasured experiments are only listed."""
    measured = [grid for grid in layout.grids if grid.measured]
    missing = [grid.experiment.title for grid in layout.grids if not grid.measured]
    parts = [
        "# Measured and published results",
        f"Generated from `{folder}/` by `{command}`; do not edit.",
        *(_grid(grid, folder) for grid in measured),
    ]
    for table, cells in groupby(layout.others, key=lambda cell: cell.key.table):
        parts += [
            f"## Not in the paper: {escaped(table)}",
            markdown_table(tables.plain_table(list(cells))),
        ]
    claims, open_claims = claims_table(layout.grids), open_claims_table(layout.grids)
    if claims.rows:
        parts += ["## Claims of the paper's text", markdown_table(claims)]
    parts += ["## How to read the numbers", *READING]
    if layout.problems:
        reasons = (f"- {escaped(problem.reason)}" for problem in layout.problems)
        parts += ["## Not counted", "\n".join(reasons)]
    if missing:
        parts += ["## Not measured yet", "\n".join(f"- {title}" for title in missing)]
    if open_claims.rows:
        parts += ["Claims of the paper's text:", markdown_table(open_claims)]
    return "\n\n".join(parts) + "\n"


def markdown_table(table: Table) -> str:
    """A Markdown table; the notes of a cell follow on separate lines."""
    lines = [_line(table.head), "|---|" + "---:|" * (len(table.head) - 1)]
    return "\n".join([*lines, *(_line(row) for row in table.rows)])


def _grid(grid: Grid, folder: Path) -> str:
    experiment = grid.experiment
    parts = [
        f"## {experiment.title}: {grid.world}, {escaped(str(grid.regime))}",
        f"In the paper: {experiment.source}. {formatting.coverage(grid)} cells measured, "
        f"{formatting.seeds(grid.measured)} each."
        + (f" Note: {experiment.note}." if experiment.note else ""),
        markdown_table(tables.beside_table(grid)),
    ]
    over_all = tables.overall_table(grid)
    if over_all.rows:
        parts += ["Over all tasks:", markdown_table(over_all)]
    seeds = max(len(cell.results) for cell in grid.measured)
    parts += [
        "All numbers:",
        markdown_table(tables.numbers_table(grid)),
        f"```\n{table_command(grid, folder, seeds)}\n```",
    ]
    return "\n\n".join(parts)


def _line(cells: Sequence[str | Entry]) -> str:
    return f"| {' | '.join(map(_cell, cells))} |"


def _cell(content: str | Entry) -> str:
    if isinstance(content, str):
        return escaped(content)
    return "<br>".join(map(escaped, [content.text, *content.notes]))


def escaped(text: str) -> str:
    """Escapes text of a result file, which is untrusted, for Markdown and HTML."""
    shown = html.escape(printable(" ".join(text.split())), quote=False)
    return re.sub(r"([\\`*~\[\]|])", r"\\\1", shown)
