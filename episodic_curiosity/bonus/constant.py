"""PPO+1: a constant bonus at every step, which rewards staying alive."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from episodic_curiosity.bonus.state import check_part, check_parts
from episodic_curiosity.bonus.statistics import BonusStatistics
from episodic_curiosity.support.checks import check_mask, check_number
from episodic_curiosity.worlds.base import Rollout, Step, WorldSpec


@dataclass(frozen=True, kw_only=True)
class ConstantConfig:
    """Config of the constant bonus."""

    scale: float = 1.0

    def __post_init__(self) -> None:
        check_number("scale", self.scale, above=0)


class ConstantBonus:
    """b = scale at every step.

    As with every bonus, the step that ends an episode pays nothing. Ending early forfeits the
    remaining bonus, provided that no value is bootstrapped at a terminal state.
    """

    needs_views = False

    def __init__(self, spec: WorldSpec, config: ConstantConfig) -> None:
        self.num_envs = spec.num_envs
        self.config = config
        self._paid = BonusStatistics(spec.device)

    def bonus(self, step: Step, action: Tensor | None = None) -> Tensor:  # noqa: ARG002
        """Returns `scale` (N,), or zero at the first step of an episode."""
        check_mask("first", step.first, self.num_envs, self._paid.sums.device)
        bonus = ~step.first * self.config.scale
        self._paid.add(bonus, where=~step.first)
        return bonus

    def learn(self, rollout: Rollout) -> dict[str, float]:  # noqa: ARG002
        """Does nothing."""
        return {}

    def metrics(self) -> dict[str, float]:
        """Bonus statistics since the last call; synchronises with the GPU."""
        return self._paid.metrics()

    def state_dict(self) -> dict[str, Any]:
        """A copy of the bonus statistics."""
        return {"paid": self._paid.sums.clone()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restores a state of `state_dict`."""
        check_parts(state, {"paid"})
        check_part(state, "paid", self._paid.sums)
        self._paid.sums.copy_(state["paid"])
