"""The Grid Oracle: pays for every cell of the floor that an episode enters for the first time.

Unlike the other bonuses it reads positions: it is a reference. Shapes: N environments.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from episodic_curiosity.bonus.coverage import VisitedCells
from episodic_curiosity.bonus.state import check_part, check_parts, copied
from episodic_curiosity.bonus.statistics import BonusStatistics
from episodic_curiosity.support.checks import check_number
from episodic_curiosity.worlds.base import Rollout, Step, WorldSpec


@dataclass(frozen=True, kw_only=True)
class OracleConfig:
    """The pay for a new cell, and the size of a cell."""

    alpha: float = 0.0524691  # the authors' launcher_script.py; 0.052 in the paper
    cell: float | None = None  # side, in units of the world's positions; None: the world's own

    def __post_init__(self) -> None:
        check_number("alpha", self.alpha, above=0)
        if self.cell is not None:
            check_number("cell", self.cell, above=0)


class OracleBonus:
    """b = alpha where the cell is new in this episode, else 0.

    The cell an episode opens in is not paid for: no action led there. Neither is its last
    place, which the authors' convention never shows to a bonus.
    """

    needs_views = False

    def __init__(self, spec: WorldSpec, config: OracleConfig) -> None:
        self.config = config
        self.cells = VisitedCells.of(spec, config.cell)
        self._paid = BonusStatistics(spec.device)

    def bonus(self, step: Step, action: Tensor | None = None) -> Tensor:  # noqa: ARG002
        """Returns (N,) the pay for the cells entered, and remembers them."""
        if step.position is None:
            raise ValueError("the Grid Oracle needs positions, got a step without them")
        new = self.cells.visit(step.position, step.first)
        bonus = (new & ~step.first) * self.config.alpha
        self._paid.add(bonus, where=~step.first)
        return bonus

    def learn(self, rollout: Rollout) -> dict[str, float]:  # noqa: ARG002
        """Does nothing: there is nothing to learn."""
        return {}

    def metrics(self) -> dict[str, float]:
        """Bonus statistics since the last call; synchronises with the GPU."""
        return self._paid.metrics()

    def state_dict(self) -> dict[str, Any]:
        """A copy of the cells visited and of the statistics."""
        return {"cells": copied(self.cells.state_dict()), "paid": self._paid.sums.clone()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continues from a state of equally many environments and equally long episodes."""
        check_parts(state, {"cells", "paid"})
        check_part(state, "cells", self.cells.state_dict())
        check_part(state, "paid", self._paid.sums)
        self.cells.load_state_dict(state["cells"])
        self._paid.sums.copy_(state["paid"])
