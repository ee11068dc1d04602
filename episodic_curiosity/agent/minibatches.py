"""A rollout as samples, split into minibatches.

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

    inputs: Tensor  # (B, ...) observations, as `Agent.prepare` returns them
    observation: Tensor | None  # (B, ...), only for an auxiliary
    next_observation: Tensor | None  # (B, ...), only for an auxiliary
    frame: Tensor | None  # (B, 2) int64, see Transitions; only for an auxiliary
    action: Tensor  # (B,) int64, or (B, A) float32
    connected: Tensor  # (B,) bool, next_observation is of the same episode
    log_prob: Tensor  # (B,) under the policy that acted
    advantage: Tensor  # (B,) summed over heads
    target: Tensor  # (B, H) targets of the values
    value: Tensor  # (B, H) old values

    def select(self, index: Tensor) -> "Minibatch":
        """Returns the samples at these indices."""
        # index_select is several times faster than x[index] on a CPU.
        inputs = self.inputs.index_select(0, index)
        observation, following = self.observation, self.next_observation
        if observation is not None:
            is_same = observation is self.inputs
            observation = inputs if is_same else observation.index_select(0, index)
        return Minibatch(
            inputs=inputs,
            observation=observation,
            next_observation=None if following is None else following.index_select(0, index),
            frame=None if self.frame is None else self.frame.index_select(0, index),
            action=self.action.index_select(0, index),
            connected=self.connected.index_select(0, index),
            log_prob=self.log_prob.index_select(0, index),
            advantage=self.advantage.index_select(0, index),
            target=self.target.index_select(0, index),
            value=self.value.index_select(0, index),
        )


class Minibatches:
    """Learns from the samples of a rollout; on a GPU every minibatch replays a CUDA graph.

    The graph refers to the rollout's tensors, which the collector overwrites, and to the other
    tensors of the samples, which `refill` overwrites.
    """

    def __init__(
        self,
        rollout: Rollout,
        samples: Minibatch,
        improve: Callable[[Minibatch], dict[str, Tensor]],
        num_samples: int,
    ) -> None:
        """`improve` learns from `num_samples` samples at a time and returns 0-dim metrics."""
        device = samples.advantage.device
        self.rollout, self.samples = rollout, samples
        self.names: list[str] = []  # of the metrics that `improve` returns
        self._improve = improve
        self._index = torch.zeros(num_samples, dtype=torch.int64, device=device)
        self._metrics = torch.zeros(0, device=device)
        self._learn = Captured(self._learn_once, graph_device(device))

    def refill(self, make: Callable[[], Minibatch]) -> None:
        """Replaces the samples with those of the rollout's new content.

        A graph refers to those held, which are overwritten. Otherwise they are freed before
        others are made: frames of a rollout may be most of the memory.
        """
        if not self._learn.has_graph:
            vars(self).pop("samples", None)
            self.samples = make()
            return
        for held, new in zip(self.samples, make(), strict=True):
            if held is None or new is None or held.data_ptr() == new.data_ptr():
                continue
            held.copy_(new)

    def learn(self, index: Tensor) -> Tensor:
        """Learns from the samples at these indices; returns the metrics as one tensor."""
        self._index.copy_(index)
        self._learn()
        return self._metrics.clone()

    def _learn_once(self) -> None:
        metrics = self._improve(self.samples.select(self._index))
        if not self.names:  # the first call; a graph needs an existing tensor
            self.names = list(metrics)
            self._metrics = torch.zeros(len(metrics), device=self._index.device)
        self._metrics.copy_(torch.stack(list(metrics.values())))
