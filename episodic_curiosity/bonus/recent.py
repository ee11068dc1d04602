"""The newest transitions, for bonuses that learn with an optimiser of their own.

Shapes: S steps are kept, N environments, B transitions.
"""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from episodic_curiosity.support.checks import check_at_least


class RecentBatch(NamedTuple):
    """B transitions, each within an episode."""

    observation: Tensor  # (B, ...)
    next_observation: Tensor  # (B, ...)
    action: Tensor  # (B,) int64, or (B, ...) float32
    connected: Tensor  # (B,) bool, all true

    def select(self, index: Tensor) -> "RecentBatch":
        return RecentBatch(*(field[index] for field in self))


class RecentTransitions(nn.Module):
    """A ring of the newest S steps of each environment.

    2 * S * N times the bytes of an observation.
    """

    observation: Tensor  # (S, N, ...)
    next_observation: Tensor  # (S, N, ...)
    action: Tensor  # (S, N) int64, or (S, N, ...) float32
    connected: Tensor  # (S, N) bool, a transition is here, and was not taken yet
    added: Tensor  # (N,) int64, ever
    _env: Tensor  # (N,) int64, 0 .. N - 1

    def __init__(self, num_steps: int, observation: Tensor, action: Tensor) -> None:
        """Makes room for steps like this (N, ...) observation and action."""
        super().__init__()
        check_at_least("num_steps", num_steps, 1)
        env = torch.arange(len(observation), device=observation.device)
        for name, like in (
            ("observation", observation),
            ("next_observation", observation),
            ("action", action),
            ("connected", env.bool()),
        ):
            self.register_buffer(name, like.new_zeros((num_steps, *like.shape)))
        self.register_buffer("added", torch.zeros_like(env))
        self.register_buffer("_env", env, persistent=False)

    def add(self, observation: Tensor, after: Tensor, action: Tensor, where: Tensor) -> None:
        """Adds one step of the rows where the (N,) mask is true; never synchronises."""
        place = (self.added % len(self.connected), self._env)
        for name, value in (
            ("observation", observation),
            ("next_observation", after),
            ("action", action),
            ("connected", where),
        ):
            ring: Tensor = getattr(self, name)
            rows = where.view(-1, *(1,) * (value.dim() - 1))
            ring[place] = torch.where(rows, value.to(ring.dtype), ring[place])
        self.added += where

    def take(self) -> RecentBatch:
        """Returns the transitions that were added since the last call; synchronises."""
        step, env = self.connected.nonzero(as_tuple=True)
        batch = RecentBatch(*(getattr(self, name)[step, env] for name in RecentBatch._fields))
        self.connected.zero_()
        return batch
