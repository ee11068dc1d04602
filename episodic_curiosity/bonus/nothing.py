"""No bonus, for plain PPO."""

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
        """Returns zeros (N,)."""
        return torch.zeros_like(step.reward)

    def learn(self, rollout: Rollout) -> dict[str, float]:  # noqa: ARG002
        """Does nothing."""
        return {}

    def metrics(self) -> dict[str, float]:
        """Returns no metrics."""
        return {}

    def state_dict(self) -> dict[str, Any]:
        """Returns an empty state."""
        return {}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Raises unless the state is empty."""
        check_parts(state, set())
