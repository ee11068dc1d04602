"""A rollout as samples, learnt from in minibatches.

Shapes: T steps, N environments, B samples in a minibatch, H value heads.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from episodic_curiosity.support.cuda_graphs import Captured, graph_device
from episodic_curiosity.worlds.base import Rollout


class Minibatch(NamedTuple):
    """B samples of a rollout, from any step and environment."""

    observation: Tensor  # (B, ...)
    next_observation: Tensor | None  # (B, ...), gathered for an auxiliary only
    action: Tensor  # (B,) int64, or (B, A) float32
    connected: Tensor  # (B,) bool, next_observation is of the same episode
    log_prob: Tensor  # (B,) of the action when it was taken
    advantage: Tensor  # (B,) of all heads together
    target: Tensor  # (B, H) what the values should have been
    value: Tensor  # (B, H) what they were

    def select(self, index: Tensor) -> "Minibatch":
        """The samples of these numbers."""
        # Several times faster than x[index] on a CPU: rows are copied whole.
        following = self.next_observation
        return Minibatch(
            observation=self.observation.index_select(0, index),
            next_observation=None if following is None else following.index_select(0, index),
            action=self.action.index_select(0, index),
            connected=self.connected.index_select(0, index),
            log_prob=self.log_prob.index_select(0, index),
            advantage=self.advantage.index_select(0, index),
            target=self.target.index_select(0, index),
            value=self.value.index_select(0, index),
        )


class Minibatches:
    """Goes through the samples of a rollout; on a GPU every minibatch replays a CUDA graph.

    The graph holds on to the rollout's tensors, which a collector fills again and again, and to
    the rest of the samples, which `refill` puts in the same places.
    """

    def __init__(
        self,
        rollout: Rollout,
        samples: Minibatch,
        improve: Callable[[Minibatch], dict[str, Tensor]],
        num_samples: int,
    ) -> None:
        """`improve` learns from `num_samples` at a time and gives back 0-dim tensors."""
        device = samples.advantage.device
        self.rollout, self.samples = rollout, samples
        self.names: list[str] = []  # of what `improve` gives back
        self._improve = improve
        self._index = torch.zeros(num_samples, dtype=torch.int64, device=device)
        self._metrics = torch.zeros(0, device=device)
        self._learn = Captured(self._learn_once, graph_device(device))

    def refill(self, samples: Minibatch) -> None:
        """Goes on with the samples of the rollout's new content."""
        for held, new in zip(self.samples, samples, strict=True):
            if held is None or new is None or held.data_ptr() == new.data_ptr():
                continue
            held.copy_(new)

    def learn(self, index: Tensor) -> Tensor:
        """Learns from the samples of these numbers; what `improve` gave back, as one tensor."""
        self._index.copy_(index)
        self._learn()
        return self._metrics.clone()

    def _learn_once(self) -> None:
        metrics = self._improve(self.samples.select(self._index))
        if not self.names:  # the first call; a graph has to find the tensor there
            self.names = list(metrics)
            self._metrics = torch.zeros(len(metrics), device=self._index.device)
        self._metrics.copy_(torch.stack(list(metrics.values())))
