"""Never give up (NGU): an episodic bonus times a lifelong factor.

Badia et al. 2020. Shapes: N environments, K memory slots, D embedding, S steps.
"""

from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np
import torch
from torch import Tensor

from episodic_curiosity.bonus.aggregates import nearest
from episodic_curiosity.bonus.base import Sight
from episodic_curiosity.bonus.diagnosis import Advice
from episodic_curiosity.bonus.distillation import RandomDistillation
from episodic_curiosity.bonus.inverse_dynamics import EmbeddingBonus, EmbeddingConfig
from episodic_curiosity.bonus.lifelong import Lifelong
from episodic_curiosity.bonus.memory import EpisodicMemory
from episodic_curiosity.bonus.method import Method
from episodic_curiosity.bonus.recent import RecentBatch
from episodic_curiosity.bonus.summary import SIZE
from episodic_curiosity.support.checks import (
    check_at_least,
    check_mask,
    check_number,
    check_share,
    check_tensor,
)

# Weight of the newest distances in their moving average, once as many were averaged plainly;
# the paper does not say.
RATE = 0.01
HAS_NUMBA = find_spec("numba") is not None


@dataclass(frozen=True, kw_only=True)
class NGUConfig(EmbeddingConfig):
    """The published settings, but for those that say otherwise."""

    scale: float = 0.003  # of the bonus; ours, not searched: without it a step pays 1 to 30
    k: int = 10  # nearest neighbours
    kernel_epsilon: float = 1e-3  # of the kernel K
    cluster_distance: float = 8e-3  # neighbours closer than this, squared, are the same
    c: float = 1e-3  # added to the similarity
    most_similar: float = 8.0  # nothing is paid above this similarity
    most_lifelong: float = 5.0  # L, bound on the lifelong factor
    memory_capacity: int = 1000  # K; ours
    embedding_size: int = 32  # D; ours
    learning_rate: float = 5e-4  # of the embedding and of RND; ours
    share: float = 0.25  # of the newest steps, for RND's predictor; RND's

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("scale", "kernel_epsilon", "c", "most_similar"):
            check_number(name, getattr(self, name), above=0)
        check_share("share", self.share)
        check_number("cluster_distance", self.cluster_distance)
        check_number("most_lifelong", self.most_lifelong, above=1)
        for name in ("k", "memory_capacity"):
            check_at_least(name, getattr(self, name), 1)
        if self.k > self.memory_capacity:
            raise ValueError(
                f"k must be at most memory_capacity {self.memory_capacity}, got {self.k}"
            )


class NGU(EmbeddingBonus):
    """b = scale * lifelong factor / (sqrt(sum over the k nearest of K(d^2)) + c).

    d^2 is the squared distance of embeddings over its moving average. Embeddings are learnt by
    inverse dynamics, and those in memory stay as they were when they were stored. The memory
    takes N * K * D * 4 bytes and forgets its oldest.

    Args:
        observation_shape: of one environment, (channels, height, width) or (features,).
        num_envs: N, the number of environments.
        options: num_actions or action_shape, config, observation_dtype, num_steps, seed and
            device, as of EmbeddingBonus.
    """

    defaults = NGUConfig
    learnt = ("inverse", "lifelong")
    summary_size = SIZE
    advice = Advice(
        is_bounded=False, if_full="try a bonus.memory_capacity above {config.memory_capacity}"
    )
    config: NGUConfig
    distance: Tensor  # (N,) float32, moving average of the squared distances of neighbours
    averaged: Tensor  # (N,) int64, steps in that average

    def __init__(
        self, observation_shape: tuple[int, ...], num_envs: int, **options: Any
    ) -> None:
        super().__init__(observation_shape, num_envs, **options)
        config = self.config
        distillation = RandomDistillation(
            observation_shape,
            learning_rate=config.learning_rate,
            share=config.share,
            seed=options.get("seed", 0),
            device=self.device,
        )
        self.lifelong = Lifelong(distillation, config.most_lifelong, self.device)
        self.memory = EpisodicMemory(
            num_envs,
            config.memory_capacity,
            config.embedding_size,
            replacement="fifo",
            device=self.device,
        )
        self.register_buffer("distance", torch.zeros(num_envs, device=self.device))
        self.register_buffer("averaged", torch.zeros_like(self.memory.added))
        self._constants = np.array(
            (
                RATE,
                config.cluster_distance,
                config.kernel_epsilon,
                config.c,
                config.most_similar,
            ),
            np.float32,
        )

    def pay(self, now: Sight) -> Tensor:
        episodic = self.rate(self.embed(now), now.opens, now.rows)
        factor = self.lifelong.factor(now.seen, where=now.stepped)
        return self.config.scale * episodic * factor

    def rate(self, embedding: Tensor, opens: Tensor, rows: Tensor) -> Tensor:
        """Returns the episodic part (N,) for (N, D) embeddings, and stores those of `rows`.

        Where `opens`, the memory is emptied first.
        """
        memory = self.memory
        size = (memory.num_envs, memory.embedding_size)
        check_tensor("embedding", embedding, size, memory.device)
        check_mask("opens", opens, memory.num_envs, memory.device)
        check_mask("rows", rows, memory.num_envs, memory.device)
        # The kernel keeps no summary.
        if HAS_NUMBA and self.device.type == "cpu" and memory.summary is None:
            return self.rate_at_once(embedding, opens, rows)
        return self.rate_in_torch(embedding, opens, rows)

    def rate_at_once(self, embedding: Tensor, opens: Tensor, rows: Tensor) -> Tensor:
        """Same as `rate`, by one Numba kernel on a CPU."""
        from episodic_curiosity.bonus import ngu_numba

        kernel: Any = ngu_numba.rate
        memory = self.memory
        paid = torch.empty_like(self.distance)
        tensors = (
            memory.embeddings,
            memory.added,
            memory.draws,
            self.distance,
            self.averaged,
            embedding.detach().contiguous(),
            opens.contiguous(),
            rows.contiguous(),
        )
        arrays = (tensor.numpy() for tensor in tensors)
        kernel(*arrays, self.config.k, self._constants, paid.numpy())
        return paid

    def rate_in_torch(self, embedding: Tensor, opens: Tensor, rows: Tensor) -> Tensor:
        """Same as `rate`, by operations that a CUDA graph can capture."""
        config, memory = self.config, self.memory
        memory.clear(where=opens)
        # Not by a product of matrices, whose rounding would hide small distances.
        distance = torch.cdist(
            memory.slots, embedding[:, None], compute_mode="donot_use_mm_for_euclid_dist"
        ).squeeze(2)  # (N, K)
        squared = nearest(distance, memory.count, config.k).square()  # (N, k)
        self._average(squared, where=rows & (memory.added > 0))

        relative = squared / self.distance.clamp(min=1e-12)[:, None]
        apart = (relative - config.cluster_distance).clamp(min=0)
        kernel = config.kernel_epsilon / (apart + config.kernel_epsilon)  # 0 if not there
        likeness = kernel.sum(dim=1).sqrt()
        memory.summarise(likeness / config.k**0.5, -distance, where=rows)
        memory.add(embedding, where=rows)
        similarity = likeness + config.c
        return torch.where(similarity > config.most_similar, 0.0, 1 / similarity)

    def learn_from(self, batch: RecentBatch) -> dict[str, float]:
        """Fits the embedding and RND's predictor."""
        return super().learn_from(batch) | self.lifelong.learn(batch.next_observation)

    def statistics(self) -> dict[str, float]:
        return super().statistics() | self.memory.statistics()

    def _average(self, squared: Tensor, where: Tensor) -> None:
        """Adds the valid ones of (N, k) squared distances to the moving average."""
        there = squared.isfinite()
        mean = squared.masked_fill(~there, 0.0).sum(dim=1) / there.sum(dim=1).clamp(min=1)
        self.averaged += where
        weight = (1 / self.averaged.clamp(min=1)).clamp(min=RATE)
        average = torch.lerp(self.distance, mean, weight)
        self.distance.copy_(torch.where(where, average, self.distance))


METHOD = Method(
    name="ppo+ngu",
    line="never give up: far from the episode's memory, more so where RND errs",
    config=NGUConfig,
    bonus=NGU,
    ppo={},
)
