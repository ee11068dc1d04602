"""The episodic memory: embeddings of the observations of each environment's episode.

Shapes: N environments, K slots, D embedding.
"""

from typing import Literal

import torch
from torch import Tensor, nn

from episodic_curiosity.bonus.summary import MemorySummary
from episodic_curiosity.support.checks import (
    check_at_least,
    check_choice,
    check_mask,
    check_tensor,
)
from episodic_curiosity.support.compiling import fused
from episodic_curiosity.support.machine import check_memory
from episodic_curiosity.support.randomness import random_below


class EpisodicMemory(nn.Module):
    """K embeddings per environment in one (N, K, D) tensor of N * K * D * 4 bytes.

    When all K slots of an environment are full, a new embedding replaces a random one or the
    oldest. The random slot depends only on (seed, environment, number of additions), so that
    results are the same alone and in a batch. Nothing here synchronises with the GPU.

    Args:
        num_envs: N, the number of environments.
        capacity: K, the embeddings kept per environment.
        embedding_size: D.
        replacement: which embedding a full memory forgets, a random one or the oldest.
        seed: of the random slots.
        device: of all tensors.
    """

    embeddings: Tensor  # (N, K, D) float32
    added: Tensor  # (N,) int64, embeddings added in this episode
    draws: Tensor  # (N,) int64, embeddings ever added: the counter of the random generator
    streams: Tensor  # (N,) int64, random stream of each environment
    seed: Tensor  # () int64
    _rows: Tensor  # (N,) int64, 0 .. N - 1, kept on the device to avoid copies

    def __init__(
        self,
        num_envs: int,
        capacity: int,
        embedding_size: int,
        *,
        replacement: Literal["random", "fifo"] = "random",
        seed: int = 0,
        device: torch.device | str = "cpu",
    ) -> None:
        super().__init__()
        check_at_least("num_envs", num_envs, 1)
        check_at_least("memory_capacity", capacity, 1)
        check_at_least("embedding_size", embedding_size, 1)
        check_at_least("seed", seed, 0)
        check_choice("replacement", replacement, ("random", "fifo"))
        self.replacement = replacement
        check_memory(
            f"a memory of {num_envs} environments x {capacity} x {embedding_size}",
            num_envs * capacity * embedding_size * 4,
            torch.device(device),
            "lower `num_envs` or `memory_capacity`",
        )
        buffers = {
            "embeddings": torch.zeros(num_envs, capacity, embedding_size, device=device),
            "added": torch.zeros(num_envs, dtype=torch.int64, device=device),
            "draws": torch.zeros(num_envs, dtype=torch.int64, device=device),
            "streams": torch.arange(num_envs, device=device),
            "seed": torch.tensor(seed, device=device),
        }
        for name, buffer in buffers.items():
            self.register_buffer(name, buffer)
        self.register_buffer("_rows", torch.arange(num_envs, device=device), persistent=False)
        self.summary: MemorySummary | None = None

    def keep_summary(self) -> None:
        """Makes the summary, part of the state from now on; `summarise` keeps it."""
        if self.summary is None:
            if not self.added.is_meta and self.added.any():
                raise ValueError(
                    "call keep_summary() before the first begin(): the memory holds views"
                )
            self.summary = MemorySummary(self.num_envs, self.capacity, self.device)

    @property
    def num_envs(self) -> int:
        return self.embeddings.shape[0]

    @property
    def capacity(self) -> int:
        return self.embeddings.shape[1]

    @property
    def embedding_size(self) -> int:
        return self.embeddings.shape[2]

    @property
    def device(self) -> torch.device:
        return self.embeddings.device

    @property
    def count(self) -> Tensor:
        """(N,) int64, number of filled slots; these come first."""
        return self.added.clamp(max=self.capacity)

    @property
    def slots(self) -> Tensor:
        """(N, K, D), of which the first `count` of each row are filled.

        On a CPU without the slots that are empty in every row; on a GPU this would synchronise.
        """
        if self.device.type != "cpu":
            return self.embeddings
        return self.embeddings[:, : max(1, int(self.count.max()))]

    def statistics(self) -> dict[str, float]:
        """Metrics of its use; synchronises with the GPU."""
        count = self.count.double()
        return {
            "memory_fill": count.mean().item() / self.capacity,
            "memory_full": (count == self.capacity).double().mean().item(),  # of environments
        }

    def clear(self, where: Tensor) -> None:
        """Clears the memory of the environments where the (N,) mask is true."""
        check_mask("where", where, self.num_envs, self.device)
        self.added.masked_fill_(where, 0)
        if self.summary is not None:
            self.summary.clear(where)

    def summarise(self, familiarity: Tensor, closeness: Tensor, where: Tensor) -> None:
        """Updates the summary, if it is kept; to be called between `clear` and `add`.

        The arguments are those of MemorySummary.update, with a `closeness` to `slots`.
        """
        if self.summary is not None:
            self.summary.update(familiarity, closeness, self.count, where)

    def add(self, embedding: Tensor, where: Tensor) -> None:
        """Stores (N, D) embeddings in the environments where the (N,) mask is true."""
        size = (self.num_envs, self.embedding_size)
        check_tensor("embedding", embedding, size, self.device)
        check_mask("where", where, self.num_envs, self.device)
        counters = self.added, self.draws, self.streams, self.seed
        slot = _take_slot(*counters, where, self.capacity, self.replacement)
        kept = self.embeddings[self._rows, slot]
        self.embeddings[self._rows, slot] = torch.where(where[:, None], embedding, kept)
        if self.summary is not None:
            self.summary.store(slot, where)


@fused
def _take_slot(
    added: Tensor,
    draws: Tensor,
    streams: Tensor,
    seed: Tensor,
    where: Tensor,
    capacity: int,
    replacement: str,
) -> Tensor:
    """The slots (N,) for new embeddings, which are counted `where` they are stored."""
    slot = added % capacity  # the next free slot, or the oldest
    if replacement == "random":
        slot = torch.where(added < capacity, slot, random_below(capacity, seed, streams, draws))
    added += where
    draws += where
    return slot
