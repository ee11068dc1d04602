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


@dataclass(frozen=True)
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


EC, ICM = "ppo+ec", "ppo+icm"
SOONER = "always finds the goal at least 2 times sooner than ICM"
GOALS = "reaches goals at least 2 times more often than ICM"
AREA = "covers at least 4 times more area than ICM without reward"
HARMLESS, SLOWER = "does not hurt dense tasks", "trains slower than ppo"
SECONDS: Metric = "seconds_per_step"
CLAIMS = (
    *(
        Claim("faster on ViZDoom", SOONER, "vizdoom", column, EC, ICM, "steps_to_success")
        for column in EXPERIMENTS["vizdoom"].columns
    ),
    Claim("more goals", GOALS, "table1", "very-sparse", EC, ICM, "reward"),
    Claim("more area", AREA, "table1", "no-reward", EC, ICM, "coverage"),
    Claim("more area", AREA, "table1", "no-reward-no-fire", EC, ICM, "coverage"),
    *(
        Claim("dense tasks", f"{ours} {HARMLESS}", "table1", column, ours, "ppo", "reward")
        for column in ("dense-1", "dense-2")
        for ours in (EC, "ppo+eco")
    ),
    Claim("slower with ICM", f"{ICM} {SLOWER}", "speed", "sparse", "ppo", ICM, SECONDS),
    Claim("slower with EC", f"{EC} {SLOWER}", "speed", "sparse", "ppo", EC, SECONDS),
)
