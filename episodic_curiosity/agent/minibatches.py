"""A rollout as samples, split into minibatches.

Shapes: T steps, N environments, B samples in a minibatch, H value heads, S numbers of a
summary.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from episodic_curiosity.support.compiling import fused
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
    summary: Tensor | None = None  # (B, S), only for an agent that sees its memory

    def select(self, index: Tensor) -> "Minibatch":
        """Returns the samples at these indices; fields that are one tensor stay one."""
        parts = {name: part for name, part in self._asdict().items() if part is not None}
        different = {id(part): part for part in parts.values()}
        selected = _select(tuple(different.values()), index)
        by_id = dict(zip(different, selected, strict=True))
        return self._replace(**{name: by_id[id(part)] for name, part in parts.items()})


@fused
def _select(parts: tuple[Tensor, ...], index: Tensor) -> tuple[Tensor, ...]:
    # index_select is several times faster than x[index] on a CPU.
    return tuple(part.index_select(0, index) for part in parts)


class Minibatches:
    """Learns from the samples of a rollout; on a GPU every minibatch replays a CUDA graph.

    The graphs refer to the rollout's tensors, which the collector overwrites.
    """

    def __init__(
        self,
        rollout: Rollout,
        draw: Callable[[Rollout], tuple[Minibatch, Tensor]],
        improve: Callable[[Minibatch], dict[str, Tensor]],
    ) -> None:
        """`draw` returns the rollout's samples and (M, B) indices, those of M minibatches.

        `improve` learns from B samples and returns 0-dim metrics. Neither synchronises.
        """
        device = rollout.reward.device
        self.rollout = rollout
        self.names: list[str] = []  # of the metrics that `improve` returns
        self._draw, self._improve = draw, improve
        self._drawn: tuple[Minibatch, Tensor] | None = None
        self._number = torch.zeros(1, dtype=torch.int64, device=device)  # of a minibatch
        self._metrics = torch.zeros(0, device=device)
        self._refill = Captured(self._refill_once, graph_device(device))
        self._learn = Captured(self._learn_once, graph_device(device))

    @property
    def samples(self) -> Minibatch:
        """Those of the latest call of `learn`."""
        assert self._drawn is not None, "call learn() first"
        return self._drawn[0]

    def learn(self) -> Tensor:
        """Learns from all minibatches of the rollout's new content; returns their metrics.

        These are (M, number of metrics), and valid until the next call.
        """
        self._refill()
        assert self._drawn is not None
        for _ in range(len(self._drawn[1])):
            self._learn()
        return self._metrics

    def _refill_once(self) -> None:
        """Overwrites the samples and the order in place."""
        self._number.zero_()
        if self._drawn is None or not self._learn.has_graph:
            self._drawn = None  # the frames of the last rollout may be most of the memory
            self._drawn = self._draw(self.rollout)
            return
        # The graphs refer to the tensors that are held.
        (samples, order), (new_samples, new_order) = self._drawn, self._draw(self.rollout)
        for held, new in zip((*samples, order), (*new_samples, new_order), strict=True):
            if held is None or new is None or held.data_ptr() == new.data_ptr():
                continue
            held.copy_(new)

    def _learn_once(self) -> None:
        assert self._drawn is not None
        order = self._drawn[1]
        index = order.index_select(0, self._number)[0]
        metrics = self._improve(self.samples.select(index))
        if not self.names:  # the first call; a graph needs an existing tensor
            self.names = list(metrics)
            self._metrics = torch.zeros(len(order), len(metrics), device=index.device)
        self._metrics.index_copy_(0, self._number, torch.stack(list(metrics.values()))[None])
        self._number += 1
