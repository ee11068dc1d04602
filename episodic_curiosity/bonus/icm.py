"""The intrinsic curiosity module (ICM): the bonus is the error of a forward model.

Pathak et al. 2017, with the settings of the paper's baseline. Shapes: N environments,
B transitions, A action size, D = 288 features.
"""

import math
from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor, nn

from episodic_curiosity.bonus.auxiliary import Auxiliary, Transitions
from episodic_curiosity.bonus.base import Bonus, BonusConfig, BonusContext, Sight
from episodic_curiosity.bonus.diagnosis import Advice
from episodic_curiosity.bonus.features import (
    NUM_FEATURES,
    action_error,
    feature_network,
    prediction_model,
    see,
)
from episodic_curiosity.bonus.method import Method
from episodic_curiosity.bonus.own_adam import OwnAdam, finite
from episodic_curiosity.bonus.recent import RecentTransitions, like_actions, like_observations
from episodic_curiosity.support.checks import check_number, check_seed, check_taken, check_type
from episodic_curiosity.support.compiling import compiles, fused, fused_in_training
from episodic_curiosity.worlds.base import Rollout, WorldSpec

MOST = 1.0  # the bonus is clipped at this value
BATCH = 256  # transitions of a step of its own Adam
CPU_PART = 128  # frames that a CPU embeds at a time


@dataclass(frozen=True, kw_only=True)
class ICMConfig(BonusConfig):
    """The paper's ICM settings; the defaults are those for DMLab."""

    scale: float = 0.55  # of the bonus
    ratio: float = 0.96  # weight of the forward loss; the inverse loss has 1 - ratio
    strength: float = 64.0  # weight of the ICM loss, added to PPO's

    def __post_init__(self) -> None:
        check_number("scale", self.scale, above=0)
        check_number("strength", self.strength, above=0)
        check_number("ratio", self.ratio)
        if not 0 <= self.ratio <= 1:
            raise ValueError(f"ratio must be in [0, 1], got {self.ratio!r}")


class ICM(Bonus):
    """b = scale * |predicted features - features|^2 / 2, clipped at 1.

    The previous observation is kept rather than its features, because the weights may change
    between two steps. In our trainer it sees the policy's observation and learns with PPO's
    optimiser, as the paper's did; in other loops `learn` takes a pass over the newest steps
    with an Adam of its own, where `strength` matters little.

    Args:
        observation_shape: of one environment, (channels, height, width) or (features,).
        num_envs: N, the number of environments.
        num_actions: number of discrete actions; 0 if actions are continuous.
        action_shape: of one continuous action.
        observation_dtype: None: torch.uint8 for frames, torch.float32 for vectors.
        config: scale, ratio and strength.
        learning_rate: of its own Adam; None: PPO trains it, through `auxiliary`.
        num_steps: S, the newest steps that `learn` takes in; 2 * S * N times the bytes of an
            observation.
        seed: of the first weights and the order of learning.
        device: of all tensors.
    """

    sees = "observation"
    learnt = ("model",)
    needs_action = True
    # A prediction error: its maximum is unknown.
    advice = Advice(
        is_bounded=False, if_constant=f"it is clipped at {MOST:g}: try a lower bonus.scale"
    )
    config: ICMConfig
    previous: Tensor  # (N, ...)
    _like_action: Tensor  # (N, ...), zeros

    def __init__(
        self,
        observation_shape: tuple[int, ...],
        num_envs: int,
        *,
        num_actions: int = 0,
        action_shape: tuple[int, ...] = (),
        observation_dtype: torch.dtype | None = None,
        config: ICMConfig | None = None,
        learning_rate: float | None = 1e-3,
        num_steps: int = 128,
        seed: int = 0,
        device: torch.device | str = "cpu",
    ) -> None:
        super().__init__(num_envs, observation_shape, device)
        if not (num_actions or action_shape):
            raise ValueError("ICM needs num_actions or action_shape, got neither")
        self.config = config or ICMConfig()
        check_type("config", self.config, ICMConfig)
        self.action_shape = action_shape
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(check_seed(seed))
            model = ICMModel(observation_shape, num_actions, action_shape, self.config)
        self.model = model.to(device)
        previous = like_observations(num_envs, observation_shape, observation_dtype, device)
        self.register_buffer("previous", previous)
        like = like_actions(num_envs, num_actions, action_shape, device)
        self._num_actions = num_actions
        self.register_buffer("_like_action", like, persistent=False)
        self.recent: RecentTransitions | None = None
        self.adam: OwnAdam | None = None
        if learning_rate is not None:
            self.recent = RecentTransitions(num_steps, previous, like)
            self.adam = OwnAdam(self.model, learning_rate, seed)

    @classmethod
    def for_run(cls, config: ICMConfig, spec: WorldSpec, context: BonusContext) -> Self:
        return cls(
            spec.observation_shape,
            spec.num_envs,
            num_actions=spec.num_actions,
            action_shape=spec.action_shape,
            observation_dtype=spec.observation_dtype,
            config=config,
            learning_rate=None,
            seed=context.seed,
            device=spec.device,
        )

    def pay(self, now: Sight) -> Tensor:
        seen, action = now.seen, now.action
        if seen.dtype != self.previous.dtype:  # the two are concatenated
            raise ValueError(
                f"observation must be of dtype {self.previous.dtype}, got {seen.dtype}; for "
                f"that give observation_dtype={seen.dtype}"
            )
        bonus = torch.zeros_like(now.stepped, dtype=torch.float32)
        if action is not None:  # else episodes only begin
            check_taken(action, self._like_action, self._num_actions, now.stepped)
            taken = action.to(self._like_action.dtype)
            surprise = self.model.surprise(self.previous, seen, taken)
            # The scaled bonus is clipped, not the error. It is never negative.
            bonus = (self.config.scale * surprise).clamp(max=MOST)
        self.record(now)
        return bonus

    def record(self, now: Sight) -> None:
        if self.recent is not None and now.action is not None:
            self.recent.add(
                now.stepped,
                observation=self.previous,
                next_observation=now.seen,
                action=now.action,
            )
        rows = now.rows.view(-1, *(1,) * (now.seen.dim() - 1))
        self.previous.copy_(torch.where(rows, now.seen, self.previous))

    def learn(self, rollout: Rollout | None = None) -> dict[str, float]:  # noqa: ARG002
        """Takes a pass over the newest steps, unless PPO's update trains the model."""
        if self.recent is None or self.adam is None:
            return {}
        self.raise_if_not_finite()
        batch = self.recent.take()
        if not len(batch.connected):
            return {}
        generator = self.adam.new_generator()
        order = torch.randperm(len(batch.connected), generator=generator).to(self.device)
        told = []
        for index in order.split(BATCH):
            loss, metrics = self.model.loss(batch.select(index))
            self.adam.descend(loss)
            told.append(metrics)
        return {
            name: finite(float(sum(each[name] for each in told)) / len(told))
            for name in told[0]
        }

    def auxiliary(self) -> Auxiliary | None:
        return self.model if self.adam is None else None


class ICMModel(nn.Module):
    """A feature network, an inverse model and a forward model.

    PPO's optimiser trains it together with the policy, through its parameters and `loss`.
    """

    _choices: Tensor  # (A,) int64, 0 .. A - 1, kept on the device to avoid copies

    def __init__(
        self,
        observation_shape: tuple[int, ...],
        num_actions: int,
        action_shape: tuple[int, ...],
        config: ICMConfig,
    ) -> None:
        super().__init__()
        self.config = config
        self.is_discrete = num_actions > 0
        action_size = num_actions or math.prod(action_shape)
        self.features = feature_network(observation_shape)
        self.inverse_model = prediction_model(2 * NUM_FEATURES, action_size)
        self.forward_model = prediction_model(NUM_FEATURES + action_size, NUM_FEATURES)
        self.register_buffer("_choices", torch.arange(action_size), persistent=False)
        self.to(memory_format=torch.channels_last)  # type: ignore[call-overload]

    def loss(self, batch: Transitions) -> tuple[Tensor, dict[str, Tensor]]:
        """Returns the loss () over a minibatch's connected transitions, and its two parts.

        As in the original code, both parts train the features: nothing is detached. The
        inverse model keeps the features from collapsing to zero, which would be easy to
        predict.
        """
        if batch.observation is None or batch.next_observation is None:
            raise ValueError("ICM needs next_observation, got a minibatch without it")
        observations = batch.observation, batch.next_observation
        forward, inverse = _errors(
            self, *observations, batch.frame, batch.action, batch.connected
        )
        ratio = self.config.ratio
        loss = self.config.strength * (ratio * forward + (1 - ratio) * inverse)
        return loss, {
            "icm_forward_loss": forward.detach(),
            "icm_inverse_loss": inverse.detach(),
        }

    def surprise(self, previous: Tensor, current: Tensor, action: Tensor) -> Tensor:
        """The error (B,) of the forward model."""
        return _surprise(self, previous, current, action)

    def _features_of(
        self, observation: Tensor, following: Tensor, frame: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """Returns the features of both observations, (B, D) each.

        On a CPU an observation that is in both is embedded once; a GPU needs fixed shapes.
        """
        if frame is None or compiles(observation.device):
            return see(self.features, observation), see(self.features, following)
        different, place = frame.t().unique(return_inverse=True)  # (U,), (2, B)
        place = place.flatten()
        # For each of the U frames one of the rows that show it.
        row = torch.zeros_like(different).scatter_(0, place, torch.arange(len(place)))
        frames = torch.cat([observation, following]).index_select(0, row)
        # In parts, whose activations stay in the cache.
        features = torch.cat([see(self.features, part) for part in frames.split(CPU_PART)])
        now, after = features.index_select(0, place).chunk(2)
        return now, after

    def _forward_error(self, now: Tensor, after: Tensor, action: Tensor) -> Tensor:
        inputs = torch.cat([now, self._described(action)], dim=1)
        predicted: Tensor = self.forward_model(inputs)  # (B, D)
        return 0.5 * (predicted - after).square().sum(dim=1)

    def _inverse_error(self, now: Tensor, after: Tensor, action: Tensor) -> Tensor:
        guess: Tensor = self.inverse_model(torch.cat([now, after], dim=1))  # (B, A)
        return action_error(guess, action)

    def _described(self, action: Tensor) -> Tensor:
        """Actions as (B, A) inputs: one-hot, or clipped to [-1, 1] as in the world."""
        if self.is_discrete:
            return (action[:, None] == self._choices).float()
        return action.flatten(1).clamp(-1.0, 1.0)


@fused_in_training
def _errors(
    model: ICMModel,
    observation: Tensor,
    following: Tensor,
    frame: Tensor | None,
    action: Tensor,
    connected: Tensor,
) -> tuple[Tensor, Tensor]:
    """The mean errors of the forward and the inverse model over connected transitions."""
    now, after = model._features_of(observation, following, frame)
    forward = model._forward_error(now, after, action)
    inverse = model._inverse_error(now, after, action)
    share = connected / connected.sum().clamp(min=1)  # (B,)
    return (share * forward).sum(), (share * inverse).sum()


@fused
def _surprise(model: ICMModel, previous: Tensor, current: Tensor, action: Tensor) -> Tensor:
    now, after = see(model.features, torch.cat([previous, current])).chunk(2)  # (B, D) each
    return model._forward_error(now, after, action)


METHOD = Method(
    name="ppo+icm",
    line="intrinsic curiosity module: the prediction error of a forward model",
    config=ICMConfig,
    bonus=ICM,
)
