"""Episodic curiosity times a lifelong factor, as NGU multiplies its two parts.

Not in a paper: Savinov et al. 2019 for the bonus, Badia et al. 2020 for the factor. Shapes:
N environments, D slot size of the R-network, S steps.
"""

from dataclasses import dataclass
from typing import Any, Self

import torch
from torch import Tensor, nn

from episodic_curiosity.bonus.base import BonusContext, Sight
from episodic_curiosity.bonus.distillation import RandomDistillation
from episodic_curiosity.bonus.episodic import EpisodicBonus, EpisodicConfig, Reachability
from episodic_curiosity.bonus.lifelong import Lifelong
from episodic_curiosity.bonus.method import Method
from episodic_curiosity.bonus.recent import NO_STEPS, Recent
from episodic_curiosity.reachability.network import Embeddings
from episodic_curiosity.support.checks import check_number, check_share, check_type
from episodic_curiosity.worlds.base import Rollout, WorldSpec

NUM_STEPS, MOST_STEPS = 64, 1024  # S, unless named; at most, for rollouts of our trainer


@dataclass(frozen=True, kw_only=True)
class ECRNDConfig(EpisodicConfig):
    """EC's settings, where alpha is the scale, and those of NGU's factor."""

    most_lifelong: float = 5.0  # L, bound on the lifelong factor; NGU's
    learning_rate: float = 1e-4  # of RND's predictor; RND's
    share: float = 0.25  # of the newest steps, in each of four passes; RND's

    def __post_init__(self) -> None:
        super().__post_init__()
        check_number("most_lifelong", self.most_lifelong, above=1)
        check_number("learning_rate", self.learning_rate, above=0)
        check_share("share", self.share)


class ECRND(EpisodicBonus):
    """EC's bonus; where it is above zero, times clip(1 + (e - mean of e) / deviation, 1, L).

    e is RND's error on the R-network's embedding of the observation instead of its pixels: the
    embedding is at hand, and fixed because the R-network was fitted beforehand.

    Args:
        r_network: judges whether one observation can be reached from another; fitted.
        num_envs: N, the number of environments.
        config: the settings.
        num_steps: S, the newest steps that `learn` takes in: S * N * D * 4 bytes.
        seed: of all random numbers.
    """

    learnt = ("r_network", "lifelong")
    config: ECRNDConfig

    def __init__(
        self,
        r_network: Reachability,
        num_envs: int,
        config: ECRNDConfig | None = None,
        *,
        num_steps: int = NUM_STEPS,
        seed: int = 0,
    ) -> None:
        check_type("r_network", r_network, nn.Module)
        config = config or ECRNDConfig()
        check_type("config", config, ECRNDConfig)
        super().__init__(r_network, num_envs, config, seed=seed)
        self.learns = True  # RND's predictor
        size, device = r_network.slot_size, self.device
        distillation = RandomDistillation(
            (size,),
            learning_rate=config.learning_rate,
            share=config.share,
            seed=seed,
            device=device,
        )
        self.lifelong = Lifelong(distillation, config.most_lifelong, device)
        like = torch.zeros(num_envs, size, device=device)
        self.recent: Recent | None = Recent(num_steps, embedding=like)

    @classmethod
    def for_run(cls, config: Any, spec: WorldSpec, context: BonusContext) -> Self:
        assert context.r_network is not None
        num_steps = min(context.num_steps or NUM_STEPS, MOST_STEPS)
        return cls(
            context.r_network, spec.num_envs, config, num_steps=num_steps, seed=context.seed
        )

    def rate(self, embeddings: Embeddings, opens: Tensor, rows: Tensor) -> Tensor:
        """As EC's, times the lifelong factor where it is above zero."""
        bonus = super().rate(embeddings, opens, rows)
        known = self._keep(embeddings, rows)
        factor = self.lifelong.factor(embeddings.stored, where=known & ~opens)
        return torch.where(bonus > 0, bonus * factor, bonus)

    def record(self, now: Sight) -> None:
        self._keep(self.r_network.embed(now.seen, where=now.rows), now.rows)

    @property
    def learns_from_steps(self) -> bool:
        return True

    def learn(self, rollout: Rollout | None = None) -> dict[str, float]:  # noqa: ARG002
        """Fits RND's predictor to the newest steps."""
        self.raise_if_not_finite()
        if self.recent is None:
            raise ValueError(NO_STEPS)
        (embedding,) = self.recent.take_fields("embedding")
        return self.lifelong.learn(embedding)

    def _keep(self, embeddings: Embeddings, rows: Tensor) -> Tensor:
        """Keeps the embeddings of `rows` once the R-network is fitted; returns which."""
        known = rows & self.r_network.fitted  # other embeddings would mean something else
        if self.recent is not None:
            self.recent.add(known, embedding=embeddings.stored)
        return known


METHOD = Method(
    name="ppo+ec-rnd",
    line="episodic curiosity, more where RND errs; R-network fitted to random play",
    config=ECRNDConfig,
    bonus=ECRND,
    r_network="random_play",
    ppo={},
)
