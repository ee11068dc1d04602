"""No bonus: what plain PPO is paid besides the task's reward."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from episodic_curiosity.bonus.state import check_parts
from episodic_curiosity.worlds.base import Rollout, Step


class NoBonus:
    """b = 0."""

    needs_views = False

    def bonus(self, step: Step, action: Tensor | None = None) -> Tensor:  # noqa: ARG002
        """Pays (N,) nothing."""
        return torch.zeros_like(step.reward)

    def learn(self, rollout: Rollout) -> dict[str, float]:  # noqa: ARG002
        """Nothing."""
        return {}

    def metrics(self) -> dict[str, float]:
        """None."""
        return {}

    def state_dict(self) -> dict[str, Any]:
        """Empty."""
        return {}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Goes on from nothing."""
        check_parts(state, set())
