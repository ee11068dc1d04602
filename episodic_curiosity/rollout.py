"""What N environments lived through in T steps: what PPO and the bonuses learn from.

Shapes: T steps, N environments, H value heads.
"""

from typing import NamedTuple

from torch import Tensor


class Rollout(NamedTuple):
    """T x N steps with actions, values and bonuses, all on one device.

    `reward[t]`, `bonus[t]` and `terminated[t]` are for `action[t]`, taken at `observation[t]`.
    Where `first[t + 1]`, that action ended an episode: by the task where `terminated[t]`, by
    the clock elsewhere. `observation[t + 1]` then already belongs to the next episode.
    """

    observation: Tensor  # (T + 1, N, ...)
    action: Tensor  # (T, N) int64, or (T, N, A) float32
    log_prob: Tensor  # (T, N) float32, of the action when it was taken
    value: Tensor  # (T + 1, N, H) float32
    reward: Tensor  # (T, N) float32, as the world pays it
    bonus: Tensor  # (T, N) float32, as curiosity pays it
    first: Tensor  # (T + 1, N) bool
    terminated: Tensor  # (T, N) bool
    # The value of the last observation of an episode that the clock cut off; 0 elsewhere.
    final_value: Tensor  # (T, N, H) float32
    # Where a bonus asks for them, what the views of `observation[:-1]` can be had from again:
    snapshot: Tensor | None = None  # (T, N, bytes) uint8, for `World.redraw`
    view: Tensor | None = None  # (T, N, ...), of worlds that cannot redraw

    @property
    def num_steps(self) -> int:
        """T."""
        return self.reward.shape[0]

    @property
    def num_envs(self) -> int:
        """N."""
        return self.reward.shape[1]

    @property
    def truncated(self) -> Tensor:
        """(T, N) bool, where the clock ended an episode."""
        return self.first[1:] & ~self.terminated
