"""The intrinsic curiosity module (ICM): the bonus is the error of a forward model.

Pathak et al. 2017, with the settings of the paper's baseline. Shapes: N environments,
B transitions, A action size, D = 288 features.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor, nn
from torch.nn.functional import adaptive_avg_pool2d, cross_entropy, normalize

from episodic_curiosity.bonus.state import check_part, check_parts, copied
from episodic_curiosity.bonus.statistics import BonusStatistics
from episodic_curiosity.support.checks import (
    check_at_least,
    check_mask,
    check_number,
    check_tensor,
    check_views,
)
from episodic_curiosity.support.compiling import run_network
from episodic_curiosity.support.convolutions import Halving
from episodic_curiosity.support.pixels import autocast, computing_in, to_input
from episodic_curiosity.worlds.base import Rollout, Step, WorldSpec

SIDE = 42  # of its input frames, in pixels
NUM_FEATURES = 288  # output of the four convolutions: 32 filters x 3 x 3
HIDDEN = 256
MOST = 1.0  # the bonus is clipped at this value


@dataclass(frozen=True, kw_only=True)
class ICMConfig:
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


class Transitions(Protocol):
    """The part of a minibatch that the loss uses."""

    @property
    def observation(self) -> Tensor: ...  # (B, ...)
    @property
    def next_observation(self) -> Tensor | None: ...  # (B, ...)
    @property
    def action(self) -> Tensor: ...  # (B,) int64, or (B, ...) float32
    @property
    def connected(self) -> Tensor: ...  # (B,) bool, both observations are of one episode


class ICM(nn.Module):
    """A feature network, an inverse model and a forward model.

    PPO's optimiser trains it together with the policy, through its parameters and `loss`.
    """

    _choices: Tensor  # (A,) int64, 0 .. A - 1, kept on the device to avoid copies

    def __init__(self, spec: WorldSpec, config: ICMConfig) -> None:
        super().__init__()
        self.config = config
        self.is_discrete = spec.num_actions > 0
        action_size = spec.num_actions or math.prod(spec.action_shape)
        self.features = _features(spec.observation_shape)
        self.inverse_model = _model(2 * NUM_FEATURES, action_size)
        self.forward_model = _model(NUM_FEATURES + action_size, NUM_FEATURES)
        self.register_buffer("_choices", torch.arange(action_size), persistent=False)
        self.to(memory_format=torch.channels_last)  # type: ignore[call-overload]

    def loss(self, batch: Transitions) -> tuple[Tensor, dict[str, Tensor]]:
        """Returns the loss () over a minibatch's connected transitions, and its two parts.

        As in the original code, both parts train the features: nothing is detached. The
        inverse model keeps the features from collapsing to zero, which would be easy to
        predict.
        """
        if batch.next_observation is None:
            raise ValueError("ICM needs next_observation, got a minibatch without it")
        # Two calls are 20% faster on a CPU than one of 512 pairs: malloc returns buffers above
        # 32 MB to the system, and the activations would page-fault again at every call.
        now, after = self._see(batch.observation), self._see(batch.next_observation)  # (B, D)
        forward = self._forward_error(now, after, batch.action)
        inverse = self._inverse_error(now, after, batch.action)
        share = batch.connected / batch.connected.sum().clamp(min=1)  # (B,)
        forward, inverse = (share * forward).sum(), (share * inverse).sum()
        ratio = self.config.ratio
        loss = self.config.strength * (ratio * forward + (1 - ratio) * inverse)
        return loss, {
            "icm_forward_loss": forward.detach(),
            "icm_inverse_loss": inverse.detach(),
        }

    def surprise(self, previous: Tensor, current: Tensor, action: Tensor) -> Tensor:
        """The error (B,) of the forward model."""
        now, after = self._see(torch.cat([previous, current])).chunk(2)  # (B, D) each
        return self._forward_error(now, after, action)

    def _see(self, observation: Tensor) -> Tensor:
        """Returns the features (B, D) of observations."""
        if observation.dim() == 2:
            features: Tensor = self.features(to_input(observation))
            return features
        device = observation.device
        with autocast(device, computing_in(device, (SIDE, SIDE))):
            features = run_network(self.features, observation)
        return features.float()

    def _forward_error(self, now: Tensor, after: Tensor, action: Tensor) -> Tensor:
        inputs = torch.cat([now, self._described(action)], dim=1)
        predicted: Tensor = self.forward_model(inputs)  # (B, D)
        return 0.5 * (predicted - after).square().sum(dim=1)

    def _inverse_error(self, now: Tensor, after: Tensor, action: Tensor) -> Tensor:
        guess: Tensor = self.inverse_model(torch.cat([now, after], dim=1))  # (B, A)
        if self.is_discrete:
            return cross_entropy(guess, action, reduction="none")
        return (guess - self._described(action)).square().mean(dim=1)

    def _described(self, action: Tensor) -> Tensor:
        """Actions as (B, A) inputs: one-hot, or clipped to [-1, 1] as in the world."""
        if self.is_discrete:
            return (action[:, None] == self._choices).float()
        return action.flatten(1).clamp(-1.0, 1.0)


class ICMBonus:
    """b = scale * |predicted features - features|^2 / 2, clipped at 1.

    The input is the policy's observation. The previous observation is kept rather than its
    features, because the weights may change between two steps.
    """

    needs_views = False

    def __init__(self, spec: WorldSpec, config: ICMConfig, *, seed: int = 0) -> None:
        check_at_least("seed", seed, 0)
        self.spec = spec
        self.config = config
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(seed)
            self.model = ICM(spec, config).to(spec.device)
        self.previous = torch.zeros(
            (spec.num_envs, *spec.observation_shape),
            dtype=spec.observation_dtype,
            device=spec.device,
        )
        self._paid = BonusStatistics(spec.device)

    @torch.no_grad()
    def bonus(self, step: Step, action: Tensor | None = None) -> Tensor:
        """Returns the bonus (N,); zero if there is no action, as after a reset."""
        self._check(step, action)
        if action is None:
            bonus = torch.zeros_like(step.reward)
        else:
            surprise = self.model.surprise(self.previous, step.observation, action)
            # The scaled bonus is clipped, not the error. It is never negative.
            bonus = (self.config.scale * surprise).clamp(max=MOST).masked_fill(step.first, 0.0)
        self.previous.copy_(step.observation)
        self._paid.add(bonus, where=~step.first)
        return bonus

    def _check(self, step: Step, action: Tensor | None) -> None:
        num_envs, device = self.spec.num_envs, self.spec.device
        shape = self.spec.observation_shape
        check_views("observation", step.observation, shape, device, num_envs)
        if step.observation.dtype != self.previous.dtype:  # the two are concatenated
            given, wanted = step.observation.dtype, self.previous.dtype
            raise ValueError(f"observation must be of dtype {wanted}, got {given}")
        check_mask("first", step.first, num_envs, device)
        if action is not None:
            check_tensor("action", action, (num_envs, *self.spec.action_shape), device)
        elif device.type == "cpu" and not step.first.all():
            raise ValueError("action must be given in mid-episode, got None")

    def learn(self, rollout: Rollout) -> dict[str, float]:  # noqa: ARG002
        """Does nothing: PPO's update trains `model`."""
        return {}

    def metrics(self) -> dict[str, float]:
        """Bonus statistics since the last call; synchronises with the GPU."""
        return self._paid.metrics()

    def state_dict(self) -> dict[str, Any]:
        """A copy of the weights, the previous observations and the bonus statistics."""
        return {
            "model": copied(self.model.state_dict()),
            "previous": self.previous.clone(),
            "paid": self._paid.sums.clone(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restores a state of the same world with the same number of environments."""
        check_parts(state, {"model", "previous", "paid"})
        check_part(state, "model", self.model.state_dict())
        check_part(state, "previous", self.previous)
        check_part(state, "paid", self._paid.sums)
        self.model.load_state_dict(state["model"])
        self.previous.copy_(state["previous"])
        self._paid.sums.copy_(state["paid"])


class Shrunk(nn.Module):
    """Shrinks frames to 42 x 42 by area averaging, with values in [0, 1]."""

    def forward(self, frames: Tensor) -> Tensor:
        inputs = to_input(frames)
        if inputs.shape[2:] == (SIDE, SIDE):
            return inputs
        return adaptive_avg_pool2d(inputs, SIDE)


def _features(observation_shape: tuple[int, ...]) -> nn.Sequential:
    layers: list[nn.Module] = []
    if len(observation_shape) == 3:
        for num_inputs in (observation_shape[0], 32, 32, 32):
            layers += [_glorot(Halving(num_inputs, 32, 3)), nn.ELU(inplace=True)]
        return nn.Sequential(Shrunk(), *layers, nn.Flatten())
    for num_inputs, num_outputs in ((observation_shape[0], HIDDEN), (HIDDEN, NUM_FEATURES)):
        layers += [_glorot(nn.Linear(num_inputs, num_outputs)), nn.ELU(inplace=True)]
    return nn.Sequential(*layers)


def _model(num_inputs: int, num_outputs: int) -> nn.Sequential:
    hidden, output = nn.Linear(num_inputs, HIDDEN), nn.Linear(HIDDEN, num_outputs)
    return nn.Sequential(_faint(hidden), nn.ReLU(), _faint(output))


def _glorot(layer: nn.Linear | nn.Conv2d) -> nn.Module:
    nn.init.xavier_uniform_(layer.weight)
    assert layer.bias is not None
    nn.init.zeros_(layer.bias)
    return layer


def _faint(layer: nn.Linear) -> nn.Linear:
    """Scales each output's weights to norm 0.01, so that first predictions are near zero."""
    with torch.no_grad():
        layer.weight.copy_(0.01 * normalize(torch.randn_like(layer.weight), dim=1))
        layer.bias.zero_()
    return layer
