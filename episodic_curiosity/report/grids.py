"""Results laid out as the paper's tables: what may stand beside what.

A place is a row of an experiment on one task, with all its seeds; a grid is all places of an
experiment in one world, trained with one preset for one number of steps. No mean reaches beyond
its place, so that 1M steps can never be taken for 20M.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from episodic_curiosity.cells import PAPER_STEPS
from episodic_curiosity.experiments import EXPERIMENTS, Experiment, Row
from episodic_curiosity.published import Published
from episodic_curiosity.record import differences
from episodic_curiosity.results import Damage, Key, Result, load_results, read_timing
from episodic_curiosity.saving import LoadError
from episodic_curiosity.statistics import Estimate, Summary, interquartile_mean, summarise

ORACLE = "ppo+oracle"


class Setting(NamedTuple):
    """What everything in a grid was trained with."""

    preset: str
    steps: int

    def __str__(self) -> str:
        return f"preset {self.preset}, {self.steps:,} steps"


PUBLISHED_WITH = Setting("paper", PAPER_STEPS)


@dataclass(frozen=True, kw_only=True)
class Place:
    """A row on a task: what was measured there and what was published."""

    row: Row
    task: str
    metric: str
    key: Key  # of seed 0
    results: tuple[Result, ...]  # one for each seed, in their order; none: missing
    timings: tuple[Mapping[str, Any], ...]  # of those seeds whose time was written down
    published: Published | None

    @property
    def seeds(self) -> list[int]:
        return [result.seed for result in self.results]

    @cached_property
    def values(self) -> list[float]:
        """The mean over the test's episodes of each seed."""
        means = (_mean(result, self.metric) for result in self.results)
        return [mean for mean in means if mean is not None]  # all: the others were left out

    @cached_property
    def summary(self) -> Summary | None:
        """Over the seeds; None where there is none."""
        return summarise(self.values) if self.results else None

    @property
    def random_play_steps(self) -> int:
        """Those that an R-network was fitted to before the first update."""
        r_network = self.results[0].config.get("r_network") if self.results else None
        if r_network is None or r_network["source"] or r_network["random_play"] is None:
            return 0
        return int(r_network["random_play"]["steps"])

    @cached_property
    def middle(self) -> Estimate | None:
        """The interquartile mean over the seeds."""
        return interquartile_mean([self.values]) if self.results else None


@dataclass(frozen=True, kw_only=True)
class Grid:
    """An experiment in one world with one setting."""

    experiment: Experiment
    world: str
    setting: Setting
    places: tuple[Place, ...]  # row by row
    oracles: tuple[Place, ...]  # the Grid Oracle's with the same setting; none: no such thing

    @property
    def tasks(self) -> tuple[str, ...]:
        return self.experiment.tasks(self.world)

    def place(self, row: Row, task: str) -> Place:
        return next(each for each in self.places if (each.row, each.task) == (row, task))

    def oracle(self, task: str) -> Place | None:
        return next((each for each in self.oracles if each.task == task), None)

    @property
    def measured(self) -> list[Place]:
        return [place for place in self.places if place.results]

    @property
    def is_begun(self) -> bool:
        """Whether more was measured than the rows that it borrows from Table 1."""
        return any(place.key.table == self.experiment.name for place in self.measured)


class Layout(NamedTuple):
    """Everything there is to show."""

    grids: list[Grid]  # in the order of the paper, each experiment at least once
    problems: list[Damage]  # files that were not counted, and why


def lay_out(folder: Path) -> Layout:
    """Sorts a folder's results into grids; what can stand in none is left out and named."""
    loaded = load_results(folder)
    if not loaded.results and not loaded.damaged:
        raise ValueError(f"{folder} holds no results; `curiosity table` writes some")
    kept, problems = _alike(loaded.results)
    timings, without = _timings(folder, kept)
    problems += without
    settings = sorted({Setting(key.preset, key.steps) for key in kept}, reverse=True)
    grids = []
    for experiment in EXPERIMENTS.values():
        found = [
            grid
            for world in experiment.worlds
            for setting in settings
            if (grid := _grid(experiment, world, setting, kept, timings)).is_begun
        ]
        if not found:
            world = experiment.worlds[0]
            found = [_grid(experiment, world, PUBLISHED_WITH, kept, timings)]
        grids += found
    shown = {place.key for grid in grids for place in grid.places}
    for key in kept.keys() - shown:
        for result in kept[key]:
            problems.append(_problem(result, f"stands in no row and column of {key.table}"))
    return Layout(grids, [*loaded.damaged, *sorted(problems)])


def _grid(
    experiment: Experiment,
    world: str,
    setting: Setting,
    results: Mapping[Key, tuple[Result, ...]],
    timings: Mapping[Key, tuple[Mapping[str, Any], ...]],
) -> Grid:
    def place(source: Experiment, row: Row, task: str) -> Place:
        key = source.key(row, task, *setting, seed=0)
        return Place(
            row=row,
            task=task,
            metric=source.metric(task),
            key=key,
            results=results.get(key, ()),
            timings=timings.get(key, ()),
            published=source.published(row, task),
        )

    tasks, table1 = experiment.tasks(world), EXPERIMENTS["table1"]
    return Grid(
        experiment=experiment,
        world=world,
        setting=setting,
        places=tuple(place(experiment, row, task) for row in experiment.rows for task in tasks),
        oracles=tuple(
            place(source, row, task)
            for source in {each.name: each for each in (experiment, table1)}.values()
            if experiment.measure == "agent" and world in source.worlds
            for row in source.rows
            if row.method == ORACLE
            for task in tasks
            if task in source.tasks(world)
        ),
    )


def _alike(
    results: Iterable[Result],
) -> tuple[dict[Key, tuple[Result, ...]], list[Damage]]:
    """The seeds of each place, under the key of seed 0, without those of another config."""
    by_place: dict[Key, list[Result]] = {}
    problems = []
    for result in results:
        if result.table not in EXPERIMENTS:
            problems.append(_problem(result, f"is of no experiment: {result.table!r}"))
        elif _mean(result, metric := EXPERIMENTS[result.table].metric(result.task)) is None:
            problems.append(
                _problem(result, f"lacks the number that its table shows: {metric}")
            )
        else:
            by_place.setdefault(result.key._replace(seed=0), []).append(result)
    kept = {}
    for key, group in by_place.items():
        first, *others = sorted(group, key=lambda result: result.seed)
        alike = [first]
        for other in others:
            paths = [path for path, *_ in differences(first.config, other.config)]
            if another := [path for path in paths if path != "seed"]:
                reason = f"has another {another[0]} than seed {first.seed}"
                problems.append(_problem(other, reason))
            else:
                alike.append(other)
        kept[key] = tuple(alike)
    return kept, problems


def _timings(
    folder: Path, results: Mapping[Key, tuple[Result, ...]]
) -> tuple[dict[Key, tuple[Mapping[str, Any], ...]], list[Damage]]:
    """How long the seeds of each place took; a file that cannot be read is a problem."""
    found: dict[Key, tuple[Mapping[str, Any], ...]] = {}
    problems = []
    for key, group in results.items():
        known = []
        for result in group:
            try:
                timing = read_timing(folder, result.key)
            except LoadError as error:
                problems.append(Damage(result.key.path, str(error)))
            else:
                known += [timing] if timing else []
        found[key] = tuple(known)
    return found, problems


def _problem(result: Result, reason: str) -> Damage:
    return Damage(result.key.path, f"{result.key.path} {reason}")


def _mean(result: Result, metric: str) -> float | None:
    return result.metrics.get(metric, {}).get("mean")
