"""Arranges results as the paper's tables.

A cell is a row of an experiment on one task, with all its seeds. A grid is all cells of an
experiment in one world, trained with one preset for one number of steps. Means are taken only
within a cell, so that runs of 1M and 20M steps are never mixed.
"""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from episodic_curiosity.experiments.published import Published
from episodic_curiosity.experiments.results import Key, Problem, Result
from episodic_curiosity.experiments.tables import EXPERIMENTS, Experiment, Row
from episodic_curiosity.show.report.selection import Selection, Timing, mean_of, select_results
from episodic_curiosity.support.statistics import Summary, interquartile_mean, summarise

ORACLE = "ppo+oracle"


class Regime(NamedTuple):
    """The preset and steps of all runs in a grid."""

    preset: str
    steps: int

    def __str__(self) -> str:
        return f"preset {self.preset}, {self.steps:,} steps"


@dataclass(frozen=True, kw_only=True)
class TableCell:
    """A row on one task: its measured and published numbers."""

    row: Row
    task: str
    metric: str
    key: Key  # of seed 0
    results: tuple[Result, ...]  # one per seed, in order; empty: missing
    timings: tuple[Timing, ...]  # of the seeds with a recorded time
    published: Published | None

    @property
    def seeds(self) -> list[int]:
        return [result.key.seed for result in self.results]

    @property
    def episodes(self) -> int | None:
        """Test episodes per seed, or None if there were none."""
        return self.results[0].episodes if self.results else None

    @property
    def codes(self) -> list[str]:
        """The code versions of its results."""
        return sorted({result.code for result in self.results})

    @cached_property
    def values(self) -> list[float]:
        """The mean over the test episodes, per seed."""
        means = (mean_of(result, self.metric) for result in self.results)
        return [mean for mean in means if mean is not None]  # for type checking: none is None

    @cached_property
    def summary(self) -> Summary | None:
        """Statistics over the seeds, or None if there are none."""
        return summarise(self.values) if self.results else None

    @property
    def random_play_steps(self) -> int:
        """Steps of random play for the R-network before the first update."""
        r_network = self.results[0].config.get("r_network") if self.results else None
        if r_network is None or r_network["source"] or r_network["random_play"] is None:
            return 0
        return int(r_network["random_play"]["steps"])

    @cached_property
    def middle(self) -> float | None:
        """The interquartile mean over the seeds."""
        return interquartile_mean([self.values]).value if self.results else None


@dataclass(frozen=True, kw_only=True)
class Grid:
    """An experiment in one world with one regime."""

    experiment: Experiment
    world: str
    regime: Regime
    cells: tuple[TableCell, ...]  # row by row
    oracles: tuple[TableCell, ...]  # the Grid Oracle's with the same regime, if any

    @property
    def tasks(self) -> tuple[str, ...]:
        return self.experiment.tasks(self.world)

    def cell(self, row: Row, task: str) -> TableCell:
        return next(each for each in self.cells if (each.row, each.task) == (row, task))

    def oracle(self, task: str) -> TableCell | None:
        return next((each for each in self.oracles if each.task == task), None)

    @property
    def measured(self) -> list[TableCell]:
        return [cell for cell in self.cells if cell.results]

    @property
    def is_begun(self) -> bool:
        """True if more was measured than the cells shared with Table 1."""
        return any(cell.key.table == self.experiment.name for cell in self.measured)


class Layout(NamedTuple):
    """The content of a report."""

    grids: list[Grid]  # in the order of the paper, each experiment at least once
    others: list[TableCell]  # of tables that are not in the paper, one per metric
    problems: list[Problem]  # files that were not counted, and why


def lay_out(folder: Path) -> Layout:
    """Sorts a folder's results into grids; results that fit none become problems."""
    selected = select_results(folder)
    regimes = sorted({Regime(key.preset, key.steps) for key in selected.results}, reverse=True)
    grids = []
    for experiment in EXPERIMENTS.values():
        found = [
            grid
            for world in experiment.worlds
            for regime in regimes
            if (grid := _grid(experiment, world, regime, selected)).is_begun
        ]
        as_published = Regime("paper", experiment.steps)
        grids += found or [_grid(experiment, experiment.worlds[0], as_published, selected)]
    return Layout(grids, _others(selected), selected.problems)


def _grid(experiment: Experiment, world: str, regime: Regime, selected: Selection) -> Grid:
    def cell(source: Experiment, row: Row, task: str) -> TableCell:
        key = source.cell(row, task, *regime, seed=0).key
        return TableCell(
            row=row,
            task=task,
            metric=source.metric(task),
            key=key,
            results=selected.results.get(key, ()),
            timings=selected.timings.get(key, ()),
            published=source.published(row, task),
        )

    tasks, table1 = experiment.tasks(world), EXPERIMENTS["table1"]
    return Grid(
        experiment=experiment,
        world=world,
        regime=regime,
        cells=tuple(cell(experiment, row, task) for row in experiment.rows for task in tasks),
        oracles=tuple(
            cell(source, row, task)
            for source in {each.name: each for each in (experiment, table1)}.values()
            if experiment.measure == "agent" and world in source.worlds
            for row in source.rows
            if row.method == ORACLE
            for task in tasks
            if task in source.tasks(world)
        ),
    )


def _others(selected: Selection) -> list[TableCell]:
    """Results of tables that are not in the paper, one cell per metric."""
    return [
        TableCell(
            row=Row(
                name=key.method + (f"@{key.variant}" if key.variant else ""), method=key.method
            ),
            task=key.task,
            metric=metric,
            key=key,
            results=results,
            timings=selected.timings[key],
            published=None,
        )
        for key, results in selected.results.items()
        if key.table not in EXPERIMENTS
        for metric in results[0].metrics
        if all(mean_of(result, metric) is not None for result in results)
    ]
