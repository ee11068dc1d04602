"""PPO+1: the same pay for every step, which is to say for staying alive."""

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
    """What a step pays."""

    scale: float = 1.0

    def __post_init__(self) -> None:
        check_number("scale", self.scale, above=0)


class ConstantBonus:
    """b = scale at every step.

    The step that ends an episode is unpaid, as with every bonus. An early end costs all the pay
    that would have followed, as long as no value is bootstrapped where the task ended.
    """

    needs_views = False

    def __init__(self, spec: WorldSpec, config: ConstantConfig) -> None:
        self.num_envs = spec.num_envs
        self.config = config
        self._paid = BonusStatistics(spec.device)

    def bonus(self, step: Step, action: Tensor | None = None) -> Tensor:  # noqa: ARG002
        """Pays (N,) the same wherever an episode goes on."""
        check_mask("first", step.first, self.num_envs, self._paid.sums.device)
        bonus = ~step.first * self.config.scale
        self._paid.add(bonus, where=~step.first)
        return bonus

    def learn(self, rollout: Rollout) -> dict[str, float]:  # noqa: ARG002
        """Nothing: there is nothing to learn."""
        return {}

    def metrics(self) -> dict[str, float]:
        """The bonus since this was last asked; waits for the device."""
        return self._paid.metrics()

    def state_dict(self) -> dict[str, Any]:
        """A copy of what was paid since metrics were last asked for."""
        return {"paid": self._paid.sums.clone()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Goes on from such a state."""
        check_parts(state, {"paid"})
        check_part(state, "paid", self._paid.sums)
        self._paid.sums.copy_(state["paid"])
