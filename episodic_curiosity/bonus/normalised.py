"""Normalises a bonus by the spread of its return, so that one scale suits every task.

Not in the paper.

Burda et al. 2019 (RND), section 2.4. Shapes: N environments.
"""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from episodic_curiosity.bonus.base import Bonus
from episodic_curiosity.bonus.state import check_part, check_parts
from episodic_curiosity.bonus.statistics import BonusStatistics
from episodic_curiosity.support.checks import check_number
from episodic_curiosity.worlds.base import Rollout, Step, WorldSpec


class NormalisedBonus:
    """Divides a bonus by the running standard deviation of its discounted sum.

    The sum continues across episodes and counts from an environment's first non-zero bonus,
    so that the zeros before the first fit have no weight. The divisor is 1 at first and is
    updated only in `learn`, so that it is constant within a rollout.
    """

    def __init__(self, inner: Bonus, spec: WorldSpec, *, gamma: float = 0.99) -> None:
        check_number("gamma", gamma)
        if not 0 <= gamma < 1:
            raise ValueError(f"gamma must be at least 0 and below 1, got {gamma!r}")
        self.inner = inner
        self.needs_views = inner.needs_views
        self.gamma = gamma
        self.divisor = torch.ones((), device=spec.device)  # () float32
        self._discounted = torch.zeros(spec.num_envs, device=spec.device)  # (N,) float32
        self._past = BonusStatistics(spec.device)  # of all past discounted sums

    @torch.no_grad()
    def bonus(self, step: Step, action: Tensor | None = None) -> Tensor:
        """Returns the inner bonus (N,) over the divisor."""
        bonus = self.inner.bonus(step, action)
        self._discounted.mul_(self.gamma).add_(bonus)
        self._past.add(self._discounted, where=self._discounted != 0)
        return bonus / self.divisor

    def learn(self, rollout: Rollout) -> dict[str, float]:
        """Updates the divisor and calls the inner bonus's `learn`."""
        _, spread = self._past.mean_and_spread()
        self.divisor.copy_(torch.where(spread > 0, spread, 1.0))
        return self.inner.learn(rollout)

    def metrics(self) -> dict[str, float]:
        """Metrics of the inner bonus, undivided, and the divisor; synchronises with the GPU."""
        return {**self.inner.metrics(), "bonus_divisor": self.divisor.item()}

    def state_dict(self) -> dict[str, Any]:
        """A copy of the inner bonus's state and of the return statistics."""
        return {
            "inner": self.inner.state_dict(),
            "divisor": self.divisor.clone(),
            "discounted": self._discounted.clone(),
            "past": self._past.sums.clone(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restores a state with the same inner bonus and number of environments."""
        check_parts(state, {"inner", "divisor", "discounted", "past"})
        own = {"divisor": self.divisor, "discounted": self._discounted, "past": self._past.sums}
        for name, tensor in own.items():
            check_part(state, name, tensor)
        self.inner.load_state_dict(state["inner"])
        for name, tensor in own.items():
            tensor.copy_(state[name])
