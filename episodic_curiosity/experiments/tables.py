"""Every experiment of the paper as data: its rows, its tasks, the numbers printed there.

A row is a method, or a variant of one; a column is a task. What two tables of the paper share
is measured once, for Table 1: with some presets a variant is what the plain method is.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from episodic_curiosity.experiments.cells import PAPER_STEPS, Cell, Measure, Variant
from episodic_curiosity.experiments.published import Published, find_published
from episodic_curiosity.experiments.results import Key
from episodic_curiosity.runs.presets import PRESETS
from episodic_curiosity.runs.settings import TASKS
from episodic_curiosity.support.checks import check_choice
from episodic_curiosity.worlds.dmlab.levels import DMLAB_30
from episodic_curiosity.worlds.television import PROGRAMMES

MAZES = ("maze", "dmlab")  # our simulator, and the one that it mirrors
TABLE1_TASKS = tuple(task.removeprefix("maze/") for task in TASKS if task.startswith("maze/"))
ABLATION_TASKS = ("no-reward", "very-sparse")
NEAR, SLOTS = "r_network.random_play.fit.pairs.k", "bonus.memory_capacity"


@dataclass(frozen=True, kw_only=True)
class Row:
    """A method, or a variant of one, as a table's first column names it."""

    name: str
    method: str
    variant: Variant | None = None
    in_dmlab: Variant | None = None  # of the same name, where DeepMind Lab can do more

    def find_variant(self, task: str) -> Variant | None:
        """What differs from the plain method on that task."""
        return self.in_dmlab if self.in_dmlab and task.startswith("dmlab/") else self.variant


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """A table or a figure of the paper."""

    name: str  # as `curiosity table` takes it
    title: str
    source: str  # where it stands in the paper
    worlds: tuple[str, ...] = MAZES  # families of tasks that can be its columns
    columns: tuple[str, ...] = ABLATION_TASKS  # tasks without their family
    rows: tuple[Row, ...]
    measure: Measure = "agent"
    steps: int = PAPER_STEPS  # of the paper's runs
    seeds: int | None = None  # of the paper's; None: it does not say
    note: str = ""  # what is not as in the paper

    def tasks(self, world: str) -> tuple[str, ...]:
        """Its columns, as tasks of that family."""
        check_choice(f"the world of {self.name}", world, self.worlds)
        return tuple(f"{world}/{column}" for column in self.columns)

    def cell(self, row: Row, task: str, preset: str, steps: int, seed: int) -> Cell:
        """What is run for one place of the table; what is as in Table 1 is its cell."""
        variant = row.find_variant(task)
        name = variant.name if variant else None
        key = Key(self.name, task, row.method, name, preset, steps, seed)
        own = Cell(key=key, variant=variant, measure=self.measure)
        shared_key = key._replace(table="table1", variant=None)
        shared = Cell(key=shared_key, measure=self.measure)
        return shared if self._is_in_table1(own, shared) else own

    def key(self, row: Row, task: str, preset: str, steps: int, seed: int) -> Key:
        """Where the result of one place of the table lies."""
        return self.cell(row, task, preset, steps, seed).key

    def cells(self, world: str, preset: str, steps: int, num_seeds: int) -> Iterator[Cell]:
        """The whole table, seed by seed, so that what is stopped early is a whole table."""
        for seed in range(num_seeds):
            for task in self.tasks(world):
                for row in self.rows:
                    yield self.cell(row, task, preset, steps, seed)

    def metric(self, task: str) -> str:
        """What of a result the table shows."""
        if self.measure == "r-network":
            return "accuracy"
        if self.measure == "speed":
            return "parameters"
        return "coverage" if "/no-reward" in task else "reward"

    def published(self, row: Row, task: str) -> Published | None:
        """What the paper prints at that place; None where it prints no number."""
        return find_published(self.name, task.partition("/")[2], row.name)

    def _is_in_table1(self, own: Cell, shared: Cell) -> bool:
        family, _, column = own.key.task.partition("/")
        if self.measure != "agent" or family not in MAZES or column not in TABLE1_TASKS:
            return False
        if own.variant is None:
            return True
        return own.key.preset in PRESETS and own.is_same_run(shared)


def find_trained(cell: Cell) -> Cell | None:
    """The cell of Table 1 whose run a cell of another table only times; None where none is."""
    key = cell.key
    family, _, column = key.task.partition("/")
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


def _values(
    row: str, variant: str, path: str, values: tuple[int, ...], *, usual: int
) -> tuple[Row, ...]:
    """A row of EC for each value of one field; with the usual one it is Table 1's."""
    return tuple(
        _ec(
            row.format(value),
            None
            if value == usual
            else Variant(name=variant.format(value), changes=((path, value),)),
        )
        for value in values
    )


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
        title=f"A randomised television in the mazes of {column}",
        source=source,
        columns=(*(f"{column}+{programme}" for programme in PROGRAMMES), column),
        rows=TABLE1_METHODS,
        seeds=30,
        note="the images are made here: the paper's photographs were not published",
    )


EXPERIMENTS = {
    experiment.name: experiment
    for experiment in (
        Experiment(
            name="table1",
            title="Reward, or coverage where there is no reward, in the mazes",
            source="Table 1",
            columns=TABLE1_TASKS,
            rows=TABLE1_METHODS,
            seeds=30,
        ),
        Experiment(
            name="vizdoom",
            title="Finding the goal of one maze of ViZDoom",
            source="Figure 6",
            worlds=("vizdoom",),
            columns=("dense", "sparse", "very-sparse"),
            rows=_methods("ppo", "ppo+icm", "ppo+ec"),
            seeds=3,
            note="the paper prints curves; its text says that ICM and EC reach 1 everywhere",
        ),
        Experiment(
            name="ant",
            title="An ant that walks because it is curious",
            source="Table S1",
            worlds=("ant",),
            columns=("no-reward", "escape-circle"),
            rows=_methods("ppo", "ppo+1", "ppo+ec"),
            steps=10_000_000,
            seeds=30,
            note="the paper has 30 seeds of no-reward and 10 of escape-circle",
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
            note="fitted in the mazes to the seven tasks of Table 1 alike, with the steps of "
            "one; in DeepMind Lab as the paper's, to DMLab-30, with four times as many",
        ),
        Experiment(
            name="transfer",
            title="R-networks of other tasks",
            source="Table S7",
            rows=(*map(_transferred, ("dense-1", "dense-2", "sparse-doors")), _ec("matching")),
        ),
        Experiment(
            name="threshold",
            title="How many steps are near: the threshold k",
            source="Table S8",
            rows=_values("k = {}", "k-{}", NEAR, (2, 3, 4, 5, 7, 10), usual=5),
        ),
        Experiment(
            name="memory",
            title="The size of the memory",
            source="Table S9",
            rows=_values("{} slots", "memory-{}", SLOTS, (100, 200, 350, 500), usual=200),
        ),
        Experiment(
            name="budget",
            title="The steps of random play that an R-network is fitted to",
            source="Table S10",
            rows=(
                _budget("100K", 100_000),
                _budget("300K", 300_000),
                _budget("1M", 1_000_000),
                _ec("2.5M"),
                _budget("5M", 5_000_000),
            ),
            note="where the usual one is 2.5M; where that is less, less in proportion",
        ),
        Experiment(
            name="parts",
            title="What an R-network needs",
            source="Table S11",
            rows=(
                *_methods("ppo"),
                _parts("complete", "mlp", "mlp", "shared"),
                _parts("random embedding", "random-embedding", "mlp", "shared", frozen=True),
                _parts("no comparator", "shared-dot", "dot", "shared"),
                UNSHARED_DOT,
            ),
            note="the un-shared dot product is of section S5.5, which prints no reward for it",
        ),
        Experiment(
            name="accuracy",
            title="Held-out pairs that an R-network tells right",
            source="section S5.5",
            columns=("sparse",),
            rows=(MLP, SHARED_DOT, UNSHARED_DOT),
            measure="r-network",
        ),
        _television("sparse", "Table S12"),
        _television("very-sparse", "Table S13"),
        Experiment(
            name="speed",
            title="Parameters that are trained, and speed",
            source="section S7",
            columns=("sparse",),
            rows=_methods("ppo", "ppo+icm", "ppo+ec"),
            measure="speed",
        ),
    )
}
