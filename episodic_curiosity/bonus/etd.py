"""Episodic novelty through temporal distance (ETD): far in time from all of memory.

Jiang et al. 2025. Shapes: N environments, K memory slots, D size of each of the two parts of an
embedding, T steps, B pairs.
"""

import math
from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor

from episodic_curiosity.bonus.aggregates import minimum
from episodic_curiosity.bonus.base import Bonus, BonusConfig, BonusContext, Sight
from episodic_curiosity.bonus.diagnosis import Advice
from episodic_curiosity.bonus.memory import EpisodicMemory
from episodic_curiosity.bonus.method import Method
from episodic_curiosity.bonus.own_adam import OwnAdam
from episodic_curiosity.bonus.quasimetric import (
    TemporalDistance,
    distance_from_memory,
    quasimetric,
)
from episodic_curiosity.bonus.recent import NO_STEPS
from episodic_curiosity.bonus.summary import SIZE
from episodic_curiosity.reachability.experience import Experience, Frames
from episodic_curiosity.reachability.recorded import RecordedSteps
from episodic_curiosity.support.checks import (
    check_at_least,
    check_number,
    check_seed,
    check_type,
)
from episodic_curiosity.support.randomness import random_unit, seed_words
from episodic_curiosity.worlds.base import Rollout, WorldSpec

BATCH = 256  # B at most: each observation is compared with what followed all the others


@dataclass(frozen=True, kw_only=True)
class ETDConfig(BonusConfig):
    """All ours, not searched."""

    scale: float = 0.01  # of the bonus
    gamma: float = 0.99  # pairs are j steps apart with probability (1 - gamma) gamma^(j - 1)
    memory_capacity: int = 1000  # K
    embedding_size: int = 64  # D
    learning_rate: float = 3e-4  # of its own Adam

    def __post_init__(self) -> None:
        check_number("scale", self.scale, above=0)
        check_number("gamma", self.gamma, above=0)
        if self.gamma >= 1:
            raise ValueError(f"gamma must be above 0 and below 1, got {self.gamma!r}")
        check_at_least("memory_capacity", self.memory_capacity, 1)
        check_at_least("embedding_size", self.embedding_size, 1)
        check_number("learning_rate", self.learning_rate, above=0)


class ETD(Bonus):
    """b = scale * min over memory of d(m, o), a learnt distance in time from m to o.

    The distance is a quasi-metric, learnt by distinguishing what followed an observation from
    what did not (InfoNCE). The memory holds every observation of the episode as it was embedded
    when it was stored, 2 * N * K * D * 4 bytes; a full one replaces a random one.

    Args:
        observation_shape: of one environment, (channels, height, width) or (features,).
        num_envs: N, the number of environments.
        config: the settings.
        observation_dtype: torch.uint8 or torch.float32; None: bytes for frames, else floats.
        num_steps: the newest steps of each environment that `learn` takes in, and so the
            farthest pairs: num_steps * N times the bytes of an observation; 0: `learn` is given
            rollouts.
        seed: of all random numbers.
        device: of all tensors.
    """

    sees = "observation"
    learnt = ("model",)
    summary_size = SIZE
    advice = Advice(
        is_bounded=False, if_full="try a bonus.memory_capacity above {config.memory_capacity}"
    )
    config: ETDConfig

    def __init__(
        self,
        observation_shape: tuple[int, ...],
        num_envs: int,
        config: ETDConfig | None = None,
        *,
        observation_dtype: torch.dtype | None = None,
        num_steps: int = 128,
        seed: int = 0,
        device: torch.device | str = "cpu",
    ) -> None:
        super().__init__(num_envs, observation_shape, device)
        self.config = config = config or ETDConfig()
        check_type("config", config, ETDConfig)
        self._seed = seed_words(seed)
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(check_seed(seed))
            model = TemporalDistance(observation_shape, config.embedding_size)
        self.model = model.to(device)
        self.adam = OwnAdam(self.model, config.learning_rate, seed)
        self.memory = EpisodicMemory(
            num_envs,
            config.memory_capacity,
            2 * config.embedding_size,
            seed=seed,
            device=device,
        )
        check_at_least("num_steps", num_steps, 0)
        self.recorded: RecordedSteps | None = None
        if num_steps:
            self.recorded = RecordedSteps(
                num_steps, num_envs, observation_shape, observation_dtype, torch.device(device)
            )

    @classmethod
    def for_run(cls, config: ETDConfig, spec: WorldSpec, context: BonusContext) -> Self:
        return cls(
            spec.observation_shape,
            spec.num_envs,
            config,
            num_steps=0,
            seed=context.seed,
            device=spec.device,
        )

    def pay(self, now: Sight) -> Tensor:
        self.record(now)
        embedding = self.model.embed(now.seen)
        return self.config.scale * self.rate(embedding, now.opens, now.rows)

    def record(self, now: Sight) -> None:
        if self.recorded is not None:
            self.recorded.add(now.seen, now.opens, where=now.rows)

    def rate(self, embedding: Tensor, opens: Tensor, rows: Tensor) -> Tensor:
        """Returns the distances (N,) of (N, 2 * D) embeddings, and stores those of `rows`.

        Where `opens`, the memory is emptied first.
        """
        self.memory.clear(where=opens)
        if self.memory.summary is None:
            nearest = distance_from_memory(self.memory, embedding)
        else:  # it needs the distances from all slots
            distance = quasimetric(self.memory.slots, embedding[:, None])  # (N, K)
            nearest = minimum(distance, self.memory.count)
            self.memory.summarise(1 / (1 + nearest), -distance, where=rows)
        self.memory.add(embedding, where=rows)
        return nearest

    def learn(self, rollout: Rollout | None = None) -> dict[str, float]:
        """Fits the distance to the newest steps."""
        self.raise_if_not_finite()
        if rollout is not None:
            check_type("rollout", rollout, Rollout)
            newest: Experience = Frames(rollout.observation, rollout.first)
        elif self.recorded is None:
            raise ValueError(NO_STEPS)
        else:
            newest = self.recorded.newest()
        left = steps_left(newest.first)  # (T, N)
        time, env = left.nonzero(as_tuple=True)
        number = torch.arange(len(time), device=left.device)
        draw = random_unit(*self._seed, self.adam.passes, number)
        later = time + steps_ahead(draw, left[time, env], self.config.gamma)

        def loss(index: Tensor) -> Tensor:
            before = newest.views(time[index], env[index])
            return self.model.loss(before, newest.views(later[index], env[index]))

        mean = self.adam.fit(len(time), loss, most=BATCH)
        return {} if mean is None else {"etd_loss": mean}

    def statistics(self) -> dict[str, float]:
        return super().statistics() | self.memory.statistics()


def steps_left(first: Tensor) -> Tensor:
    """(T, N) int64, the later steps of the same episode, given where episodes begin."""
    num_steps = len(first)
    time = torch.arange(num_steps + 1, device=first.device)[:, None]
    border = torch.where(first, time[:-1], num_steps)
    border = torch.cat([border[1:], torch.full_like(border[:1], num_steps)])
    following = border.flip(0).cummin(dim=0).values.flip(0)  # the next border
    return following - time[:-1] - 1


def steps_ahead(draw: Tensor, most: Tensor, gamma: float) -> Tensor:
    """(B,) int64 from 1 to `most`, geometric, for (B,) draws in [0, 1) and bounds."""
    within = 1 - gamma ** most.double()  # the probability of at most so many
    ahead = torch.log1p(-draw.double() * within) / math.log(gamma)
    return torch.minimum(ahead.long() + 1, most)


METHOD = Method(
    name="ppo+etd",
    line="temporal distance: far in time from all of the episode's memory",
    config=ETDConfig,
    bonus=ETD,
    ppo={},
)
