"""A learnt distance in time, which may differ between there and back.

Jiang et al. 2025 (ETD), with a metric residual network. Shapes: B pairs, D size of each of the
two parts of an embedding.
"""

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from episodic_curiosity.bonus.features import NUM_FEATURES, feature_network, see


def quasimetric(origin: Tensor, goal: Tensor) -> Tensor:
    """d(x, y) = max over i of max(f_i(x) - f_i(y), 0) + |g(x) - g(y)|, of [f, g] embeddings.

    (..., 2 * D) embeddings of shapes that broadcast. d(x, x) = 0, and d(x, z) is at most
    d(x, y) + d(y, z); only the first part depends on the direction.
    """
    one_way, both_ways = (origin - goal).chunk(2, dim=-1)
    symmetric: Tensor = torch.linalg.vector_norm(both_ways, dim=-1)
    return one_way.amax(dim=-1).clamp(min=0) + symmetric


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
        distance = quasimetric(origin[:, None], goal[None])  # (B, B)
        return info_nce(distance, self.potential(features).squeeze(1))
