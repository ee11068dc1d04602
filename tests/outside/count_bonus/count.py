"""Pays for observations of which few alike were seen: everything about the method `ppo+count`.

Tang et al. 2017, section 2.2: an observation is known by the signs of random projections of
it. Shapes: N environments, B = 2 ** BITS buckets, F numbers of an observation.
"""

import math
from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor

from episodic_curiosity import (
    Bonus,
    BonusConfig,
    BonusContext,
    Method,
    Rollout,
    Sight,
    WorldSpec,
)

BITS = 8


@dataclass(frozen=True, kw_only=True)
class CountConfig(BonusConfig):
    """Config of the count-based bonus."""

    scale: float = 0.05  # of what was never seen before


class CountBonus(Bonus):
    """b = scale / sqrt(1 + count), with the counts of the last `learn`."""

    learnt = ("projection", "counts")
    config: CountConfig
    projection: Tensor  # (F, BITS) float32
    counts: Tensor  # (B,) int64, seen before the last `learn`
    fresh: Tensor  # (B,) int64, seen since
    _powers: Tensor  # (BITS,) int64

    def __init__(
        self,
        shape: tuple[int, ...],
        num_envs: int,
        config: CountConfig | None = None,
        *,
        seed: int = 0,
        device: torch.device | str = "cpu",
    ) -> None:
        super().__init__(num_envs, shape, device)
        self.config = config or CountConfig()
        generator = torch.Generator().manual_seed(seed)
        projection = torch.randn(math.prod(shape), BITS, generator=generator)
        projection -= projection.mean(dim=0)  # so that brightness alone decides nothing
        self.register_buffer("projection", projection.to(device))
        for name in ("counts", "fresh"):
            self.register_buffer(name, torch.zeros(2**BITS, dtype=torch.int64, device=device))
        self.register_buffer(
            "_powers", 2 ** torch.arange(BITS, device=device), persistent=False
        )

    @classmethod
    def for_run(cls, config: CountConfig, spec: WorldSpec, context: BonusContext) -> Self:
        shape, device = spec.view_shape, spec.device
        return cls(shape, spec.num_envs, config, seed=context.seed, device=device)

    def pay(self, now: Sight) -> Tensor:
        self.record(now)
        return self.config.scale / (1 + self.counts[self._bucket(now)]).sqrt()

    def record(self, now: Sight) -> None:
        self.fresh.index_add_(0, self._bucket(now), now.rows.long())

    def learn(self, rollout: Rollout | None = None) -> dict[str, float]:  # noqa: ARG002
        self.counts += self.fresh
        self.fresh.zero_()
        return {"count_buckets": float((self.counts > 0).sum())}

    def _bucket(self, now: Sight) -> Tensor:
        signs = now.seen.flatten(1).float() @ self.projection > 0  # (N, BITS)
        return (signs * self._powers).sum(dim=1)  # (N,)


METHOD = Method(
    name="ppo+count",
    line="pays for views of which few alike were seen",
    config=CountConfig,
    bonus=CountBonus,
    ppo={"entropy_coefficient": 0.015},
)
