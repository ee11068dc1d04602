"""A cell of a table with one seed: its run, and which results count for it.

A variant changes a run by dotted paths into its config, as the options of `curiosity train` do.
"""

from dataclasses import dataclass
from typing import Any, Literal

from episodic_curiosity.experiments.results import Key, Result
from episodic_curiosity.runs.config import Run, in_full
from episodic_curiosity.runs.presets import resolve
from episodic_curiosity.runs.record import differences, shown
from episodic_curiosity.runs.settings import find_budget
from episodic_curiosity.support.checks import check_choice
from episodic_curiosity.worlds.family import split_task

# Measured of a cell: the trained agent on the test levels; the held-out accuracy of the
# R-network alone; or training speed and number of parameters.
Measure = Literal["agent", "r-network", "speed"]
PAPER_STEPS = 20_000_000  # of DeepMind Lab's runs, section 4.2
EPISODES, LEAST_EPISODES = 512, 100  # of the test: by default; at least, on the command line
PLAY = "r_network.random_play"
FORBIDDEN = (":", "__", "@", "/")  # in a variant's name: separators in the names of cells


@dataclass(frozen=True, kw_only=True)
class Variant:
    """A method with changed options."""

    name: str
    changes: tuple[tuple[str, Any], ...] = ()  # a dotted path and its value each
    # Random play that the R-network is fitted to: its steps at the paper's budget, reduced in
    # proportion for smaller runs; and its tasks, without the family, which is the run's.
    play_steps: int | None = None
    play_tasks: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.name or any(mark in self.name for mark in FORBIDDEN):
            raise ValueError(
                f"a variant's name must not be empty or hold any of {' '.join(FORBIDDEN)}, "
                f"got {self.name!r}"
            )

    def apply(self, run: Run) -> Run:
        """The run with the changes; a ValueError names a missing field."""
        plain = run.to_dict()
        for path, value in self.changes:
            _set(plain, path, value)
        if self.play_steps is not None:
            share = run.random_play_steps / find_budget(run.task).steps
            _set(plain, f"{PLAY}.steps", max(1, round(self.play_steps * share)))
        if self.play_tasks:
            family, _ = split_task(run.task)
            _set(plain, f"{PLAY}.tasks", [f"{family}/{task}" for task in self.play_tasks])
        return Run.from_dict(plain)


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One run to measure."""

    key: Key
    variant: Variant | None = None  # the one that the key names
    measure: Measure = "agent"

    def __post_init__(self) -> None:
        check_choice("measure", self.measure, ("agent", "r-network", "speed"))
        name = self.variant.name if self.variant else None
        if self.key.variant != name:
            raise ValueError(f"the key names variant {self.key.variant!r}, got {name!r}")

    def run(self) -> Run:
        """The resolved config; raises where it cannot be run."""
        run = self._resolve()
        _ = run.num_updates  # raises where the steps are not enough for one
        return run

    def is_same_run(self, other: "Cell") -> bool:
        """True if both train the same run, whatever is measured of it."""
        return self._resolve() == other._resolve()

    def _resolve(self) -> Run:
        _, task, method, _, preset, steps, seed = self.key
        run = resolve(task, method, preset, steps, seed)
        return self.variant.apply(run) if self.variant else run


def why_stale(result: Result, cell: Cell, episodes: int = 0) -> str | None:
    """The reason why a result does not count for the cell as it is today; None where it does.

    The words continue the name of the result's file. At least `episodes` of the test are
    wanted. Raises where the cell's `run` does.
    """
    today = cell.run().to_dict()
    try:
        stored = in_full(result.config)
    except ValueError as error:
        return f"was measured with another config ({error})"
    for name, was, now in differences(stored, today):
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
