"""A cell of a table with one seed: which run it is, where its result lies, what counts as it.

A variant changes a run by dotted paths into its config, the same that `curiosity train` takes.
"""

from dataclasses import dataclass
from typing import Any, Literal

from episodic_curiosity.experiments.results import Key, Result
from episodic_curiosity.runs.config import Run
from episodic_curiosity.runs.presets import resolve
from episodic_curiosity.runs.record import differences, shown
from episodic_curiosity.runs.settings import BUDGETS
from episodic_curiosity.support.checks import check_choice

# What is measured of a cell: the trained agent on the test levels; the R-network alone, on
# held-out pairs; or how fast it trains and how many parameters it has.
Measure = Literal["agent", "r-network", "speed"]
PAPER_STEPS = 20_000_000  # of DeepMind Lab's runs, section 4.2
# Of the test, unless somebody asks for others, and on the command line at least.
EPISODES, LEAST_EPISODES = 512, 100
PLAY = "r_network.random_play"
FORBIDDEN = (":", "__", "@", "/")  # in a variant's name: they part those of a cell


@dataclass(frozen=True, kw_only=True)
class Variant:
    """A method with something changed."""

    name: str
    changes: tuple[tuple[str, Any], ...] = ()  # a dotted path and its value each
    # Of what an R-network is fitted to: steps of random play where the paper's R-networks have
    # theirs, with presets and runs that have less, less in proportion; and tasks, without the
    # family, which is the run's.
    play_steps: int | None = None
    play_tasks: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.name or any(mark in self.name for mark in FORBIDDEN):
            raise ValueError(
                f"a variant's name must not be empty or hold any of {' '.join(FORBIDDEN)}, "
                f"got {self.name!r}"
            )

    def apply(self, run: Run) -> Run:
        """The run with the changes; a ValueError names a field that is not there."""
        plain = run.to_dict()
        for path, value in self.changes:
            _set(plain, path, value)
        family = run.task.partition("/")[0]
        if self.play_steps is not None:
            share = run.random_play_steps / BUDGETS[family].steps
            _set(plain, f"{PLAY}.steps", max(1, round(self.play_steps * share)))
        if self.play_tasks:
            _set(plain, f"{PLAY}.tasks", [f"{family}/{task}" for task in self.play_tasks])
        return Run.from_dict(plain)


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One run to measure."""

    table: str
    task: str
    method: str
    preset: str
    steps: int
    seed: int
    variant: Variant | None = None
    measure: Measure = "agent"

    def __post_init__(self) -> None:
        check_choice("measure", self.measure, ("agent", "r-network", "speed"))

    @property
    def key(self) -> Key:
        variant = self.variant.name if self.variant else None
        return Key(
            self.table,
            self.task,
            self.method,
            variant,
            self.preset,
            self.steps,
            self.seed,
        )

    def run(self) -> Run:
        """Everything that decides how it goes; raises where it cannot be run at all."""
        run = self._resolve()
        _ = run.num_updates  # raises where the steps are not enough for one
        return run

    def is_same_run(self, other: "Cell") -> bool:
        """Whether the same is trained for both, whatever is measured of it."""
        return self._resolve() == other._resolve()

    def _resolve(self) -> Run:
        run = resolve(self.task, self.method, self.preset, self.steps, self.seed)
        return self.variant.apply(run) if self.variant else run


def why_stale(result: Result, cell: Cell, episodes: int = 0) -> str | None:
    """Why a result does not count for the cell as it is today; None where it does.

    The words go on from the name of the result's file. `episodes` of the test are wanted. A
    cell that cannot be run at all raises, as its `run` does.
    """
    if changes := list(differences(result.config, cell.run().to_dict())):
        name, was, now = changes[0]
        return f"was measured with another config ({name} was {shown(was)}, now {shown(now)})"
    if result.episodes is not None and result.episodes < episodes:
        return f"was measured on {result.episodes} test episodes, {episodes} are wanted"
    return None


def _set(plain: dict[str, Any], path: str, value: Any) -> None:
    *above, name = path.split(".")
    for part in above:
        plain = _inside(plain, part, path)
    _inside(plain, name, path)
    plain[name] = value


def _inside(plain: Any, name: str, path: str) -> Any:
    if not isinstance(plain, dict) or name not in plain:
        raise ValueError(f"a run of this method has no {path}")
    return plain[name]
