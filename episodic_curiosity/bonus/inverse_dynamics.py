"""An embedding of what the agent controls, learnt by predicting its actions.

Pathak et al. 2017; used by NGU and E3B. Shapes: N environments, B observations, D embedding,
S steps.
"""

import math
from dataclasses import dataclass
from typing import Any, Self

import torch
from torch import Tensor, nn

from episodic_curiosity.bonus.base import Bonus, BonusConfig, BonusContext, Sight
from episodic_curiosity.bonus.features import (
    NUM_FEATURES,
    action_error,
    feature_network,
    prediction_model,
    see,
)
from episodic_curiosity.bonus.own_adam import OwnAdam
from episodic_curiosity.bonus.recent import (
    RecentBatch,
    Trail,
    like_actions,
    like_observations,
    newest_transitions,
)
from episodic_curiosity.support.checks import (
    check_at_least,
    check_number,
    check_seed,
    check_taken,
    check_type,
)
from episodic_curiosity.worlds.base import Rollout, WorldSpec


class InverseDynamics(nn.Module):
    """Embeds observations so that the action between two of them can be predicted."""

    def __init__(
        self,
        observation_shape: tuple[int, ...],
        num_actions: int,
        action_shape: tuple[int, ...],
        *,
        embedding_size: int,
        learning_rate: float,
        seed: int,
        device: torch.device | str,
    ) -> None:
        super().__init__()
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(check_seed(seed))
            self.features = feature_network(observation_shape)
            self.embedding = nn.Linear(NUM_FEATURES, embedding_size)
            action_size = num_actions or math.prod(action_shape)
            self.guess = prediction_model(2 * embedding_size, action_size)
        self.to(device, memory_format=torch.channels_last)  # type: ignore[call-overload]
        self.adam = OwnAdam(self, learning_rate, seed)

    def embed(self, observation: Tensor) -> Tensor:
        """Returns the embeddings (B, D)."""
        embedding: Tensor = self.embedding(see(self.features, observation))
        return embedding

    def learn(self, batch: RecentBatch) -> dict[str, float]:
        """Learns from transitions within episodes; synchronises."""
        connected = batch.connected.nonzero().squeeze(1)
        loss = self.adam.fit(
            len(connected), lambda index: self.loss(batch.select(connected[index]))
        )
        return {} if loss is None else {"inverse_loss": loss}

    def loss(self, batch: RecentBatch) -> Tensor:
        """The mean error () in predicting the actions."""
        both = [self.embed(batch.observation), self.embed(batch.next_observation)]
        return action_error(self.guess(torch.cat(both, dim=1)), batch.action).mean()


@dataclass(frozen=True, kw_only=True)
class EmbeddingConfig(BonusConfig):
    """The settings of the embedding; ours, not searched."""

    embedding_size: int = 128  # D
    learning_rate: float = 5e-4  # of its own Adam

    def __post_init__(self) -> None:
        check_at_least("embedding_size", self.embedding_size, 1)
        check_number("learning_rate", self.learning_rate, above=0)


class EmbeddingBonus(Bonus):
    """A bonus over such embeddings; a subclass implements `pay`, which begins with `embed`.

    Args:
        observation_shape: of one environment, (channels, height, width) or (features,).
        num_envs: N, the number of environments.
        num_actions: number of discrete actions; 0 if actions are continuous.
        action_shape: of one continuous action.
        config: the settings; None: the defaults.
        observation_dtype: torch.uint8 or torch.float32; None: bytes for frames, else floats.
        num_steps: S, the newest steps that `learn` takes in: 2 * S * N times the bytes of an
            observation; 0: `learn` is given rollouts.
        seed: of the weights and the order of learning.
        device: of all tensors.
    """

    _like_action: Tensor  # (N, ...), zeros
    sees = "observation"
    defaults: type[EmbeddingConfig] = EmbeddingConfig

    def __init__(
        self,
        observation_shape: tuple[int, ...],
        num_envs: int,
        *,
        num_actions: int = 0,
        action_shape: tuple[int, ...] = (),
        config: EmbeddingConfig | None = None,
        observation_dtype: torch.dtype | None = None,
        num_steps: int = 128,
        seed: int = 0,
        device: torch.device | str = "cpu",
    ) -> None:
        super().__init__(num_envs, observation_shape, device)
        self.config = config or self.defaults()
        check_type("config", self.config, self.defaults)
        observation = like_observations(num_envs, observation_shape, observation_dtype, device)
        action = like_actions(num_envs, num_actions, action_shape, device)
        self._num_actions = num_actions
        self.register_buffer("_like_action", action, persistent=False)
        self.trail = Trail(num_steps, observation, action) if num_steps else None
        self.needs_action = self.trail is not None
        self.inverse = InverseDynamics(
            observation_shape,
            num_actions,
            action_shape,
            embedding_size=self.config.embedding_size,
            learning_rate=self.config.learning_rate,
            seed=seed,
            device=device,
        )

    @classmethod
    def for_run(cls, config: Any, spec: WorldSpec, context: BonusContext) -> Self:
        return cls(
            spec.observation_shape,
            spec.num_envs,
            num_actions=spec.num_actions,
            action_shape=spec.action_shape,
            config=config,
            num_steps=0,
            seed=context.seed,
            device=spec.device,
        )

    def embed(self, now: Sight) -> Tensor:
        """Returns the embeddings (N, D) of what is seen; keeps what `learn` needs."""
        self.record(now)
        return self.inverse.embed(now.seen)

    def record(self, now: Sight) -> None:
        if self.trail is not None:
            if now.action is not None:
                check_taken(now.action, self._like_action, self._num_actions, now.stepped)
            self.trail.add(now)

    def learn(self, rollout: Rollout | None = None) -> dict[str, float]:
        """Fits the embedding to the newest steps."""
        self.raise_if_not_finite()
        return self.learn_from(newest_transitions(self.trail, rollout))

    def learn_from(self, batch: RecentBatch) -> dict[str, float]:
        """Fits the embedding to transitions; a subclass may fit more."""
        return self.inverse.learn(batch)
