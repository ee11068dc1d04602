"""A learnt distance in time, which is not symmetric.

Jiang et al. 2025 (ETD), with a metric residual network. Shapes: B pairs, D size of each of the
two parts of an embedding, N environments, K memory slots.
"""

from importlib.util import find_spec
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from episodic_curiosity.bonus.aggregates import minimum
from episodic_curiosity.bonus.features import NUM_FEATURES, feature_network, see
from episodic_curiosity.bonus.memory import EpisodicMemory

HAS_NUMBA = find_spec("numba") is not None


def quasimetric(origin: Tensor, goal: Tensor) -> Tensor:
    """d(x, y) = max over i of max(f_i(x) - f_i(y), 0) + |g(x) - g(y)|, of [f, g] embeddings.

    (..., 2 * D) embeddings of shapes that broadcast. d(x, x) = 0, and d(x, z) is at most
    d(x, y) + d(y, z); only the first part depends on the direction.
    """
    one_way, both_ways = (origin - goal).chunk(2, dim=-1)
    symmetric: Tensor = torch.linalg.vector_norm(both_ways, dim=-1)
    return one_way.amax(dim=-1).clamp(min=0) + symmetric


def all_distances(origin: Tensor, goal: Tensor) -> Tensor:
    """The distances (B, C) from each of (B, 2 * D) embeddings to each of (C, 2 * D)."""
    if HAS_NUMBA and origin.is_cpu:
        distance: Tensor = _AllDistances.apply(origin, goal)  # type: ignore[no-untyped-call]
        return distance
    return quasimetric(origin[:, None], goal[None])


def distance_from_memory(memory: EpisodicMemory, embedding: Tensor) -> Tensor:
    """The distances (N,) from the nearest slot to (N, 2 * D) embeddings; 0 if all are empty."""
    if not (HAS_NUMBA and memory.device.type == "cpu"):
        return minimum(quasimetric(memory.slots, embedding[:, None]), memory.count)
    from episodic_curiosity.bonus import quasimetric_numba

    distance = embedding.new_empty(len(embedding))
    arrays = _arrays(memory.embeddings, memory.count, embedding, distance)
    quasimetric_numba.nearest(*arrays)
    return distance


class _AllDistances(torch.autograd.Function):
    """`quasimetric` by Numba kernels, which keep (B, C) numbers instead of (B, C, 2 * D)."""

    @staticmethod
    def forward(ctx: Any, origin: Tensor, goal: Tensor) -> Tensor:
        from episodic_curiosity.bonus import quasimetric_numba

        parts = [origin.new_empty(len(origin), len(goal)) for _ in range(3)]
        quasimetric_numba.compare_all(*_arrays(origin, goal, *parts))
        ctx.save_for_backward(origin, goal, *parts)
        largest, _, length = parts
        return largest.clamp(min=0) + length

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor]:
        origin, goal, largest, equal, length = ctx.saved_tensors
        # As torch does it: equal maxima share their gradient, and a length of 0 has none.
        one_way = (gradient / equal).masked_fill(largest < 0, 0)
        both_ways = (gradient / length).masked_fill(length == 0, 0)
        return (
            _sum_of_gradients(origin, goal, largest, one_way, both_ways),
            _sum_of_gradients(goal, origin, -largest.T, -one_way.T, both_ways.T),
        )


def _sum_of_gradients(origin: Tensor, goal: Tensor, *weights: Tensor) -> Tensor:
    from episodic_curiosity.bonus import quasimetric_numba

    gradient = torch.empty_like(origin, memory_format=torch.contiguous_format)
    quasimetric_numba.differentiate(*_arrays(origin, goal.T, *weights, gradient))
    return gradient


def _arrays(*tensors: Tensor) -> list[np.ndarray]:
    return [tensor.detach().contiguous().numpy() for tensor in tensors]


def info_nce(distance: Tensor, potential: Tensor) -> Tensor:
    """The loss () of (B, B) distances d(x_i, y_j) and (B,) potentials c(y_j).

    The energy of a pair is c(y) - d(x, y); y_i is what follows x_i, the others do not.
    """
    energy = potential - distance
    return cross_entropy(energy, torch.arange(len(energy), device=energy.device))


class TemporalDistance(nn.Module):
    """Embeddings for `quasimetric`, and the potential c of `info_nce`."""

    def __init__(self, observation_shape: tuple[int, ...], size: int) -> None:
        """`size` is D."""
        super().__init__()
        self.features = feature_network(observation_shape)
        self.embedding = nn.Linear(NUM_FEATURES, 2 * size)
        self.potential = nn.Linear(NUM_FEATURES, 1)
        self.to(memory_format=torch.channels_last)  # type: ignore[call-overload]

    def embed(self, observation: Tensor) -> Tensor:
        """Returns the embeddings (B, 2 * D)."""
        embedding: Tensor = self.embedding(see(self.features, observation))
        return embedding

    def loss(self, before: Tensor, after: Tensor) -> Tensor:
        """The loss () of B observations and of what followed each of them."""
        features = see(self.features, after)
        origin, goal = self.embed(before), self.embedding(features)
        return info_nce(all_distances(origin, goal), self.potential(features).squeeze(1))
