"""The claims of the paper's text, as ratios of measured numbers."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from episodic_curiosity.experiments.cells import Cell
from episodic_curiosity.experiments.published import published_claims
from episodic_curiosity.experiments.tables import EXPERIMENTS, Experiment, Row
from episodic_curiosity.support.checks import check_choice

# For the last two, lower is better: steps until an agent always succeeds, from the curve, and
# seconds per step, from the timing.
Metric = Literal["reward", "coverage", "steps_to_success", "seconds_per_step"]


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A claim on how many times better one method is than another.

    The ratio is better / worse of the means over seeds, or worse / better if lower is better.
    """

    name: str  # in published.json
    text: str
    experiment: str
    column: str  # a task without its family
    better: str
    worse: str
    metric: Metric

    @property
    def source(self) -> str:
        """The section of the paper."""
        return published_claims()[self.name].source

    @property
    def at_least(self) -> float | None:
        """The lower bound that the paper states, or None."""
        return published_claims()[self.name].at_least

    @property
    def published(self) -> float | None:
        """The ratio of the paper's numbers, or None if it does not print them."""
        if self.metric not in ("reward", "coverage"):
            return published_claims()[self.name].ratio
        experiment = EXPERIMENTS[self.experiment]
        task = f"{experiment.worlds[0]}/{self.column}"
        better, worse = (
            experiment.published(_row(experiment, method), task)
            for method in (self.better, self.worse)
        )
        if better is None or worse is None:
            return None
        return better.mean / worse.mean

    def cells(self, world: str, preset: str, steps: int, seed: int) -> tuple[Cell, Cell]:
        """The cells of the better and of the worse method."""
        experiment = EXPERIMENTS[self.experiment]
        check_choice(f"the world of {self.experiment}", world, experiment.worlds)
        better, worse = (
            experiment.cell(
                _row(experiment, method), f"{world}/{self.column}", preset, steps, seed
            )
            for method in (self.better, self.worse)
        )
        return better, worse


def claimed_cells(world: str, preset: str, steps: int, num_seeds: int) -> Iterator[Cell]:
    """All cells for the claims about a world, each once."""
    claims = [claim for claim in CLAIMS if world in EXPERIMENTS[claim.experiment].worlds]
    for seed in range(num_seeds):
        cells = [cell for claim in claims for cell in claim.cells(world, preset, steps, seed)]
        yield from {cell.key: cell for cell in cells}.values()


def _row(experiment: Experiment, method: str) -> Row:
    return next(row for row in experiment.rows if row.name == method)


def _table1(name: str, text: str, column: str, better: str, worse: str) -> Claim:
    return Claim(
        name=name,
        text=text,
        experiment="table1",
        column=column,
        better=better,
        worse=worse,
        metric="coverage" if column.startswith("no-reward") else "reward",
    )


def _slower(name: str, method: str) -> Claim:
    return Claim(
        name=name,
        text=f"{method} trains slower than ppo",
        experiment="speed",
        column="sparse",
        better="ppo",
        worse=method,
        metric="seconds_per_step",
    )


CLAIMS = (
    *(
        Claim(
            name="faster on ViZDoom",
            text="always finds the goal at least 2 times sooner than ICM",
            experiment="vizdoom",
            column=column,
            better="ppo+ec",
            worse="ppo+icm",
            metric="steps_to_success",
        )
        for column in EXPERIMENTS["vizdoom"].columns
    ),
    _table1(
        "more goals",
        "reaches goals at least 2 times more often than ICM",
        "very-sparse",
        "ppo+ec",
        "ppo+icm",
    ),
    *(
        _table1(
            "more area",
            "covers at least 4 times more area than ICM without reward",
            column,
            "ppo+ec",
            "ppo+icm",
        )
        for column in ("no-reward", "no-reward-no-fire")
    ),
    *(
        _table1("dense tasks", f"{method} does not hurt dense tasks", column, method, "ppo")
        for column in ("dense-1", "dense-2")
        for method in ("ppo+ec", "ppo+eco")
    ),
    _slower("slower with ICM", "ppo+icm"),
    _slower("slower with EC", "ppo+ec"),
)
