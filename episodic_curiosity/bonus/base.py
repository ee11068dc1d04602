"""The interface of all bonuses."""

from collections.abc import Mapping
from typing import Any, Protocol

from torch import Tensor

from episodic_curiosity.worlds.base import Rollout, Step


class Bonus(Protocol):
    """Computes a bonus for each step of N environments and learns from rollouts.

    `bonus` updates its state in place and does not synchronise with the GPU, so that it can be
    captured in a CUDA graph. `learn` may synchronise.
    """

    needs_views: bool  # `learn` needs `snapshot` or `view` in the rollout

    def bonus(self, step: Step, action: Tensor | None = None) -> Tensor:
        """Returns the bonus (N,) float32 for the action that led to this step.

        It is zero at the first step of an episode, which no action led to.
        """

    def learn(self, rollout: Rollout) -> dict[str, float]:
        """Learns from a rollout and returns training metrics, if any."""

    def metrics(self) -> dict[str, float]:
        """Returns metrics since the last call; synchronises with the GPU."""

    def state_dict(self) -> dict[str, Any]:
        """Returns a copy of the complete state, for an exact resume."""

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restores a state of `state_dict`."""
