"""Exploration by elliptical episodic bonuses (E3B).

Henaff et al. 2022. Shapes: N environments, D embedding, S steps.
"""

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from episodic_curiosity.bonus.base import Sight
from episodic_curiosity.bonus.diagnosis import Advice
from episodic_curiosity.bonus.inverse_dynamics import EmbeddingBonus, EmbeddingConfig
from episodic_curiosity.bonus.method import Method
from episodic_curiosity.support.checks import check_number
from episodic_curiosity.support.machine import check_memory

MOST = (
    1e8  # bound on phi^T phi / lambda: float64 has eight more digits for the rounding of C^-1
)


@dataclass(frozen=True, kw_only=True)
class E3BConfig(EmbeddingConfig):
    """The published lambda; the rest is ours and not searched."""

    scale: float = 0.01  # of the bonus
    ridge: float = 0.1  # lambda, as published

    def __post_init__(self) -> None:
        super().__post_init__()
        check_number("scale", self.scale, above=0)
        check_number("ridge", self.ridge, above=0)


class E3B(EmbeddingBonus):
    """b = scale * phi^T C^-1 phi, C = lambda I + the sum of phi phi^T in this episode.

    phi is the embedding, learnt by inverse dynamics. C^-1 is kept for every environment, by
    rank-one updates: N * D * D * 8 bytes. A longer phi than sqrt(1e8 * lambda) is shortened to
    that length.

    Args:
        observation_shape: of one environment, (channels, height, width) or (features,).
        num_envs: N, the number of environments.
        options: num_actions or action_shape, config, observation_dtype, num_steps, seed and
            device, as of EmbeddingBonus.
    """

    defaults = E3BConfig
    learnt = ("inverse",)
    advice = Advice(is_bounded=False)
    config: E3BConfig
    inverted: Tensor  # (N, D, D) float64, C^-1
    _empty: Tensor  # (D, D) float64, C^-1 when an episode begins

    def __init__(
        self, observation_shape: tuple[int, ...], num_envs: int, **options: Any
    ) -> None:
        super().__init__(observation_shape, num_envs, **options)
        size, device = self.config.embedding_size, self.device
        what = f"E3B of {num_envs} environments"
        advice = "lower `num_envs` or `embedding_size`"
        check_memory(what, 8 * num_envs * size**2, device, advice)
        empty = torch.eye(size, dtype=torch.float64, device=device) / self.config.ridge
        self.register_buffer("inverted", empty.repeat(num_envs, 1, 1))
        self.register_buffer("_empty", empty, persistent=False)

    def pay(self, now: Sight) -> Tensor:
        embedding = self.embed(now)
        return self.config.scale * self.rate(embedding, now.opens, now.rows)

    def rate(self, embedding: Tensor, opens: Tensor, rows: Tensor) -> Tensor:
        """Returns phi^T C^-1 phi (N,) for (N, D) embeddings, and adds those of `rows` to C.

        Where `opens`, C begins anew.
        """
        inverted = self.inverted
        if self.device.type != "cpu" or opens.any():  # a CPU can ask, and saves a pass over all
            inverted.copy_(torch.where(opens[:, None, None], self._empty, inverted))
        embedding = embedding.masked_fill(~rows[:, None], 0.0)  # which adds nothing
        longest = math.sqrt(MOST * self.config.ridge)
        embedding = embedding.to(inverted.dtype).renorm(2, 0, longest)
        across = torch.bmm(embedding[:, None], inverted)  # (N, 1, D), as C^-1 is symmetric
        length = (embedding * across.squeeze(1)).sum(dim=1).clamp(min=0)  # (N,)
        # Sherman and Morrison; both factors the same, so that C^-1 stays symmetric.
        across = across / (1 + length).sqrt()[:, None, None]
        inverted.addcmul_(across.transpose(1, 2), across, value=-1)
        return length.float()


METHOD = Method(
    name="ppo+e3b",
    line="elliptical episodic bonus: embeddings unlike the others of the episode",
    config=E3BConfig,
    bonus=E3B,
    ppo={},
)
