"""The paper's experiments as data: rows, tasks and published numbers.

A row is a method or a variant of one; a column is a task. A cell that a table shares with
Table 1 is measured once, as Table 1's. With some presets, a variant equals the plain method.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from episodic_curiosity.experiments.cells import PAPER_STEPS, Cell, Measure, Variant
from episodic_curiosity.experiments.published import Published, find_published
from episodic_curiosity.experiments.results import Key
from episodic_curiosity.runs.presets import PRESETS
from episodic_curiosity.support.checks import check_choice
from episodic_curiosity.worlds.dmlab.levels import DMLAB_30
from episodic_curiosity.worlds.family import split_task
from episodic_curiosity.worlds.lab.tasks import LAB_TASKS
from episodic_curiosity.worlds.television import PROGRAMMES

MAZES = ("maze", "dmlab")  # our simulator and DeepMind Lab
TABLE1_TASKS = tuple(LAB_TASKS)
ABLATION_TASKS = ("no-reward", "very-sparse")
PAIRS = "r_network.random_play.fit.pairs"


@dataclass(frozen=True, kw_only=True)
class Row:
    """A row of a table: a method or a variant of one."""

    name: str
    method: str
    variant: Variant | None = None
    in_dmlab: Variant | None = None  # replaces `variant` in DeepMind Lab, under the same name

    def find_variant(self, task: str) -> Variant | None:
        """The variant on a task, or None for the plain method."""
        is_in_dmlab = split_task(task)[0] == "dmlab"
        return self.in_dmlab if self.in_dmlab and is_in_dmlab else self.variant


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """A table or a figure of the paper."""

    name: str  # for `curiosity table`
    title: str
    source: str  # table, figure or section of the paper
    worlds: tuple[str, ...] = MAZES  # families that have the tasks
    columns: tuple[str, ...] = ABLATION_TASKS  # tasks without their family
    rows: tuple[Row, ...]
    measure: Measure = "agent"
    steps: int = PAPER_STEPS  # of the paper's runs
    seeds: int | None = None  # of the paper; None: not stated
    note: str = ""  # differences from the paper

    def tasks(self, world: str) -> tuple[str, ...]:
        """The columns as tasks of a family."""
        check_choice(f"the world of {self.name}", world, self.worlds)
        return tuple(f"{world}/{column}" for column in self.columns)

    def cell(self, row: Row, task: str, preset: str, steps: int, seed: int) -> Cell:
        """The cell at one place of the table; Table 1's cell if the run is the same."""
        variant = row.find_variant(task)
        name = variant.name if variant else None
        key = Key(self.name, task, row.method, name, preset, steps, seed)
        own = Cell(key=key, variant=variant, measure=self.measure)
        shared_key = key._replace(table="table1", variant=None)
        shared = Cell(key=shared_key, measure=self.measure)
        return shared if self._is_in_table1(own, shared) else own

    def cells(self, world: str, preset: str, steps: int, num_seeds: int) -> Iterator[Cell]:
        """All cells, seed by seed, so that stopping early leaves complete tables."""
        for seed in range(num_seeds):
            for task in self.tasks(world):
                for row in self.rows:
                    yield self.cell(row, task, preset, steps, seed)

    def metric(self, task: str) -> str:
        """The name of the metric that the table shows."""
        if self.measure == "r-network":
            return "accuracy"
        if self.measure == "speed":
            return "parameters"
        return "coverage" if "/no-reward" in task else "reward"

    def published(self, row: Row, task: str) -> Published | None:
        """The published number at one place, or None if the paper prints none."""
        return find_published(self.name, split_task(task)[1], row.name)

    def _is_in_table1(self, own: Cell, shared: Cell) -> bool:
        family, column = split_task(own.key.task)
        if self.measure != "agent" or family not in MAZES or column not in TABLE1_TASKS:
            return False
        if own.variant is None:
            return True
        return own.key.preset in PRESETS and own.is_same_run(shared)


def find_trained(cell: Cell) -> Cell | None:
    """The cell of Table 1 whose run a cell of the speed table reuses, or None."""
    key = cell.key
    family, column = split_task(key.task)
    is_shared = (
        cell.measure == "speed"
        and key.table == "speed"
        and key.variant is None
        and family in MAZES
        and column in TABLE1_TASKS
    )
    return Cell(key=key._replace(table="table1")) if is_shared else None


def _methods(*names: str) -> tuple[Row, ...]:
    return tuple(Row(name=name, method=name) for name in names)


def _ec(name: str, variant: Variant | None = None) -> Row:
    return Row(name=name, method="ppo+ec", variant=variant)


def _threshold(k: int) -> Row:
    """The online walk: as in the release, k does not change its stride and number of pairs.

    At k = 5 the offline walk has as many, and the row is Table 1's.
    """
    changes = ((f"{PAIRS}.k", k), (f"{PAIRS}.sampler", "online"))
    return _ec(f"k = {k}", None if k == 5 else Variant(name=f"k-{k}", changes=changes))


def _capacity(slots: int) -> Row:
    """The row of 200 slots is Table 1's."""
    changes = (("bonus.memory_capacity", slots),)
    variant = Variant(name=f"memory-{slots}", changes=changes)
    return _ec(f"{slots} slots", None if slots == 200 else variant)


def _parts(
    name: str, variant: str, comparator: str, branches: str, *, frozen: bool = False
) -> Row:
    changes = (
        ("r_network.comparator", comparator),
        ("r_network.branches", branches),
        ("r_network.frozen_embedding", frozen),
    )
    return _ec(name, Variant(name=variant, changes=changes))


def _budget(name: str, steps: int) -> Row:
    return _ec(name, Variant(name=f"budget-{name}", play_steps=steps))


def _transferred(column: str) -> Row:
    return _ec(f"from {column}", Variant(name=f"from-{column}", play_tasks=(column,)))


TABLE1_METHODS = _methods("ppo", "ppo+icm", "ppo+ec", "ppo+eco", "ppo+oracle")
MLP = _parts("mlp", "mlp", "mlp", "shared")
SHARED_DOT = _parts("shared dot", "shared-dot", "dot", "shared")
UNSHARED_DOT = _parts("un-shared dot", "unshared-dot", "dot", "unshared")


def _television(column: str, source: str) -> Experiment:
    return Experiment(
        name=f"television-{column}",
        title=f"A randomised television in the {column} mazes",
        source=source,
        columns=(*(f"{column}+{programme}" for programme in PROGRAMMES), column),
        rows=TABLE1_METHODS,
        seeds=30,
        note="the images are generated: the paper's photographs were not published",
    )


EXPERIMENTS = {
    experiment.name: experiment
    for experiment in (
        Experiment(
            name="table1",
            title="Reward, or coverage in tasks without reward, in the mazes",
            source="Table 1",
            columns=TABLE1_TASKS,
            rows=TABLE1_METHODS,
            seeds=30,
        ),
        Experiment(
            name="vizdoom",
            title="Reaching the goal of one ViZDoom maze",
            source="Figure 6",
            worlds=("vizdoom",),
            columns=("dense", "sparse", "very-sparse"),
            rows=_methods("ppo", "ppo+icm", "ppo+ec"),
            seeds=3,
            note="the paper shows curves; its text says that ICM and EC reach 1 on every task",
        ),
        Experiment(
            name="ant",
            title="Ant locomotion out of curiosity",
            source="Table S1",
            worlds=("ant",),
            columns=("no-reward", "escape-circle"),
            rows=_methods("ppo", "ppo+1", "ppo+ec"),
            steps=10_000_000,
            seeds=30,
            note="the paper has 30 seeds for no-reward and 10 for escape-circle",
        ),
        Experiment(
            name="universal",
            title="One R-network for all tasks",
            source="Table S6",
            rows=(
                *_methods("ppo"),
                _ec("specialised"),
                Row(
                    name="universal",
                    method="ppo+ec",
                    variant=Variant(name="universal", play_tasks=TABLE1_TASKS),
                    in_dmlab=Variant(
                        name="universal", play_tasks=DMLAB_30, play_steps=10_000_000
                    ),
                ),
            ),
            note="in the mazes, fitted to equal shares of the seven tasks of Table 1, with the "
            "steps of one; in DeepMind Lab, to DMLab-30 with four times those, as published",
        ),
        Experiment(
            name="transfer",
            title="R-networks fitted to other tasks",
            source="Table S7",
            rows=(*map(_transferred, ("dense-1", "dense-2", "sparse-doors")), _ec("matching")),
        ),
        Experiment(
            name="threshold",
            title="The reachability threshold k",
            source="Table S8",
            rows=tuple(map(_threshold, (2, 3, 4, 5, 7, 10))),
        ),
        Experiment(
            name="memory",
            title="Memory capacity",
            source="Table S9",
            rows=tuple(map(_capacity, (100, 200, 350, 500))),
        ),
        Experiment(
            name="budget",
            title="Steps of random play for fitting the R-network",
            source="Table S10",
            rows=(
                _budget("100K", 100_000),
                _budget("300K", 300_000),
                _budget("1M", 1_000_000),
                _ec("2.5M"),
                _budget("5M", 5_000_000),
            ),
            note="scaled in proportion where the default budget is below 2.5M",
        ),
        Experiment(
            name="parts",
            title="Ablation of the R-network",
            source="Table S11",
            rows=(
                *_methods("ppo"),
                _parts("complete", "mlp", "mlp", "shared"),
                _parts("random embedding", "random-embedding", "mlp", "shared", frozen=True),
                _parts("no comparator", "shared-dot", "dot", "shared"),
                UNSHARED_DOT,
            ),
            note="the un-shared dot product is from section S5.5, which prints no reward",
        ),
        Experiment(
            name="accuracy",
            title="Held-out accuracy of R-networks",
            source="section S5.5",
            columns=("sparse",),
            rows=(MLP, SHARED_DOT, UNSHARED_DOT),
            measure="r-network",
        ),
        _television("sparse", "Table S12"),
        _television("very-sparse", "Table S13"),
        Experiment(
            name="speed",
            title="Trained parameters, and speed",
            source="section S7",
            columns=("sparse",),
            rows=_methods("ppo", "ppo+icm", "ppo+ec"),
            measure="speed",
        ),
    )
}
