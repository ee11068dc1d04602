"""A part of a bonus that PPO's optimiser trains.

Shapes: B transitions of a minibatch.
"""

from collections.abc import Iterator
from typing import Protocol

from torch import Tensor, nn


class Transitions(Protocol):
    """The part of a minibatch that an auxiliary loss uses."""

    @property
    def observation(self) -> Tensor | None: ...  # (B, ...)
    @property
    def next_observation(self) -> Tensor | None: ...  # (B, ...)
    @property
    def frame(self) -> Tensor | None: ...  # (B, 2) int64, numbers of both; equal: the same
    @property
    def action(self) -> Tensor: ...  # (B,) int64, or (B, ...) float32
    @property
    def connected(self) -> Tensor: ...  # (B,) bool, both observations are of one episode


class Auxiliary(Protocol):
    """A loss on PPO's minibatches, with the same Adam and gradient clipping (ICM)."""

    def named_parameters(self) -> Iterator[tuple[str, nn.Parameter]]: ...

    def loss(self, batch: Transitions) -> tuple[Tensor, dict[str, Tensor]]:
        """Returns a term of PPO's loss and 0-dim metrics; must not synchronise."""
