"""Random network distillation (RND): a bonus for observations seldom seen in the run.

Burda et al. 2019. Shapes: N environments, S steps.
"""

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import torch
from torch import Tensor

from episodic_curiosity.bonus.base import Bonus, BonusConfig, BonusContext, Sight
from episodic_curiosity.bonus.deviation import ReturnDeviation
from episodic_curiosity.bonus.diagnosis import Advice
from episodic_curiosity.bonus.distillation import Distilled, RandomDistillation
from episodic_curiosity.bonus.method import Method
from episodic_curiosity.bonus.recent import Recent, like_observations, newest_observations
from episodic_curiosity.support.checks import (
    check_discount,
    check_number,
    check_share,
    check_type,
)
from episodic_curiosity.worlds.base import Rollout, WorldSpec


@dataclass(frozen=True, kw_only=True)
class RNDConfig(BonusConfig):
    """The published settings, but for those that say otherwise."""

    scale: float = 0.5  # of the bonus; ours, not searched
    gamma: float = 0.99  # of the return whose deviation the bonus is divided by
    learning_rate: float = 1e-4  # of the predictor
    share: float = 0.25  # of the newest steps, in each of four passes; for many environments

    def __post_init__(self) -> None:
        check_number("scale", self.scale, above=0)
        check_number("learning_rate", self.learning_rate, above=0)
        check_discount("gamma", self.gamma)
        check_share("share", self.share)


class RND(Bonus):
    """b = scale * |predicted - target|^2 / (running deviation of its discounted sum).

    The target is a fixed random network of the observation. The deviation and the whitening of
    observations are updated in `learn`. Nothing is paid before its second call: the first
    starts the whitening, the second computes the deviation of whitened errors.

    Args:
        observation_shape: of one environment, (channels, height, width) or (features,).
        num_envs: N, the number of environments.
        config: scale, discount, learning rate and share.
        observation_dtype: torch.uint8 or torch.float32; None: bytes for frames, else floats.
        num_steps: S, the newest steps that `learn` takes in: S * N times the bytes of an
            observation; 0: `learn` is given rollouts.
        seed: of the weights and the order of learning.
        device: of all tensors.
    """

    sees = "observation"
    learnt = ("distillation", "deviation.divisor")
    advice = Advice(is_bounded=False, if_constant="the predictor knows all that is seen")
    defaults: ClassVar[type[RNDConfig]] = RNDConfig
    config: RNDConfig

    def __init__(
        self,
        observation_shape: tuple[int, ...],
        num_envs: int,
        config: RNDConfig | None = None,
        *,
        observation_dtype: torch.dtype | None = None,
        num_steps: int = 128,
        seed: int = 0,
        device: torch.device | str = "cpu",
    ) -> None:
        super().__init__(num_envs, observation_shape, device)
        self.config = config or self.defaults()
        check_type("config", self.config, self.defaults)
        self.distillation = RandomDistillation(
            observation_shape,
            learning_rate=self.config.learning_rate,
            share=self.config.share,
            seed=seed,
            device=device,
        )
        self.deviation = ReturnDeviation(num_envs, self.config.gamma, device, unknown=math.inf)
        like = like_observations(num_envs, observation_shape, observation_dtype, device)
        self.recent = Recent(num_steps, observation=like) if num_steps else None

    @classmethod
    def for_run(cls, config: Any, spec: WorldSpec, context: BonusContext) -> Self:
        return cls(
            spec.observation_shape,
            spec.num_envs,
            config,
            num_steps=0,
            seed=context.seed,
            device=spec.device,
        )

    def pay(self, now: Sight) -> Tensor:
        return self.config.scale * self.distil(now).error / self.deviation.divisor

    def distil(self, now: Sight) -> Distilled:
        """Returns RND's errors and targets of what is seen; keeps what `learn` needs."""
        self.record(now)
        distilled = self.distillation(now.seen)
        counted = now.rows & self.distillation.is_ready
        self.deviation.add(distilled.error.masked_fill(~now.stepped, 0.0), where=counted)
        return distilled

    def record(self, now: Sight) -> None:
        if self.recent is not None:
            self.recent.add(now.rows, observation=now.seen)

    def learn(self, rollout: Rollout | None = None) -> dict[str, float]:
        """Fits the predictor to the newest steps, then updates the deviation."""
        self.raise_if_not_finite()
        told = self.distillation.learn(newest_observations(self.recent, rollout))
        self.deviation.update()
        return told


METHOD = Method(
    name="ppo+rnd",
    line="random network distillation: the error in predicting a random network",
    config=RNDConfig,
    bonus=RND,
    ppo={},
)
