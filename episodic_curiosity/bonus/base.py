"""What every bonus is, whatever it pays for."""

from collections.abc import Mapping
from typing import Any, Protocol

from torch import Tensor

from episodic_curiosity.worlds.base import Rollout, Step


class Bonus(Protocol):
    """Rates what N environments have just emitted, and learns from what they lived through.

    `bonus` changes its state in place and asks the device for no value, so that a CUDA graph
    can hold it; `learn` may wait.
    """

    needs_views: bool  # rollouts must carry `snapshot` or `view` for `learn`

    def bonus(self, step: Step, action: Tensor | None = None) -> Tensor:
        """(N,) float32, for the action that led to this step; updates what is remembered.

        Zero where the step opens an episode: no action of that episode led there.
        """

    def learn(self, rollout: Rollout) -> dict[str, float]:
        """Learns from a rollout; says how well, where there is something to say."""

    def metrics(self) -> dict[str, float]:
        """How it is doing since this was last asked; waits for the device."""

    def state_dict(self) -> dict[str, Any]:
        """A copy of all that is needed to go on as if nothing had happened."""

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Goes on from such a state."""
