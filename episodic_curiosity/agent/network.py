"""The agent's network: policy and value heads.

Shapes: B observations, N of them per step while acting, A actions (discrete) or entries of an
action (continuous), H value heads.
"""

import math
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple, Self, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.distributions import Categorical, Independent, Normal

from episodic_curiosity.support import saving
from episodic_curiosity.support.checks import check_at_least, check_views
from episodic_curiosity.support.compiling import fused, run_network
from episodic_curiosity.support.convolutions import Unpadded, tiny_strides
from episodic_curiosity.support.pixels import (
    BLOCK,
    autocast,
    blocks_to_input,
    computing_in,
    separate_blocks,
    separate_blocks_to_input,
    to_blocks,
    to_input,
)
from episodic_curiosity.support.randomness import random_unit
from episodic_curiosity.support.shared import find_folder

Layer = TypeVar("Layer", nn.Linear, nn.Conv2d)

NATURE_SIDE = 36  # the smallest frame that the Nature CNN accepts


@dataclass(frozen=True, kw_only=True)
class AgentConfig:
    """The agent's inputs and outputs."""

    observation_shape: tuple[int, ...]  # (C, H, W) of a frame or (F,) of a vector
    num_actions: int  # number of discrete actions, or length of a continuous one
    continuous: bool = False
    num_values: int = 1  # value heads; 2: one for the reward, one for the bonus
    separate_networks: bool = False  # of policy and values, for vectors

    def __post_init__(self) -> None:
        check_at_least("num_actions", self.num_actions, 1)
        check_at_least("num_values", self.num_values, 1)
        shape = self.observation_shape
        if len(shape) not in (1, 3) or min(shape) < 1:
            raise ValueError(
                f"observation_shape must be (channels, height, width) or (features,), "
                f"got {shape}"
            )
        if len(shape) == 3 and self.separate_networks:
            raise ValueError(f"separate_networks are for vectors, got frames of {shape}")

    @property
    def is_tiny(self) -> bool:
        """True for frames that the Nature CNN is too large for."""
        return (
            len(self.observation_shape) == 3 and min(self.observation_shape[1:]) < NATURE_SIDE
        )


class Output(NamedTuple):
    """The policy and the values at B observations."""

    policy: Categorical | Independent[Normal]
    value: Tensor  # (B, H)


class Decision(NamedTuple):
    """Actions at N observations, with their log-probabilities and values."""

    action: Tensor  # (N,) int64, or (N, A) float32
    log_prob: Tensor  # (N,) of that action
    value: Tensor  # (N, H)


class Agent(nn.Module):
    """The Nature CNN for frames, two layers of 64 for vectors; policy and value heads.

    Frames under 36 pixels have a CNN with smaller kernels and strides. The CNNs compute in
    bfloat16 where that is faster; weights and heads are float32.

    Args:
        observation_shape: of one observation, (channels, height, width) or (features,).
        num_actions: number of discrete actions, or length of a continuous one.
        continuous: actions are continuous.
        num_values: value heads; 2: one for the reward, one for the bonus.
        separate_networks: values of vectors have two layers of their own, as in the authors'
            release.
    """

    entries: Tensor  # (A,) int64, 0 to A - 1

    def __init__(
        self,
        observation_shape: tuple[int, ...],
        num_actions: int,
        *,
        continuous: bool = False,
        num_values: int = 1,
        separate_networks: bool = False,
    ) -> None:
        super().__init__()
        self.config = AgentConfig(
            observation_shape=tuple(observation_shape),
            num_actions=num_actions,
            continuous=continuous,
            num_values=num_values,
            separate_networks=separate_networks,
        )
        self.value_body: nn.Module | None = None
        if self.config.is_tiny:
            self.body, num_features = _tiny_cnn(self.config.observation_shape)
        elif len(observation_shape) == 3:
            self.body, num_features = _nature_cnn(self.config.observation_shape)
        else:
            # The release's gain; torch's for tanh is 5/3.
            gain = math.sqrt(2) if separate_networks else nn.init.calculate_gain("tanh")
            self.body, num_features = _mlp(observation_shape[0], gain)
            if separate_networks:
                self.value_body, _ = _mlp(observation_shape[0], gain)
        self.policy_head = _orthogonal(nn.Linear(num_features, num_actions), gain=0.01)
        self.value_head = _orthogonal(nn.Linear(num_features, num_values), gain=1.0)
        if continuous:
            self.log_std = nn.Parameter(torch.zeros(num_actions))
        self.register_buffer("entries", torch.arange(num_actions), persistent=False)
        self.to(memory_format=torch.channels_last)  # type: ignore[call-overload]

    @property
    def device(self) -> torch.device:
        return self.value_head.weight.device

    def prepare(self, observation: Tensor) -> Tensor:
        """Rearranges (B, ...) observations for several calls of `forward`, if that saves time.

        On a CPU, frames become blocks of pixels, (B, H / 4, W / 4, C, 16), still as bytes.
        `forward` accepts both.
        """
        if observation.dim() != 4 or self.config.is_tiny or not observation.is_cpu:
            return observation
        return separate_blocks(observation)

    def forward(self, observation: Tensor) -> Output:
        features = self._features(observation)
        policy: Categorical | Independent[Normal]
        if self.config.continuous:
            normal = Normal(self.policy_head(features), self.log_std.exp(), validate_args=False)
            policy = Independent(normal, 1, validate_args=False)
        else:
            policy = Categorical(logits=self.policy_head(features), validate_args=False)
        if self.value_body is not None:
            features = self.value_body(to_input(observation))
        return Output(policy, self.value_head(features))

    @torch.no_grad()
    def decide(self, observation: Tensor, draw: Tensor) -> Decision:
        """Samples an action for each of N observations from (N,) random bits, as int64.

        The same bits give the same action. Continuous actions and their log-probabilities are
        not clipped: the caller clips actions to the world's range.
        """
        return Decision(*_decide(self, observation, draw))

    @torch.no_grad()
    def act(
        self, observation: Tensor | NDArray[Any], *, deterministic: bool = False
    ) -> Tensor | NDArray[Any]:
        """Returns actions for (B, *observation_shape) observations, or for one without B.

        An array gives an array. Actions are int64, or float32 if continuous. Continuous actions
        are not clipped: clip them to [-1, 1] and scale them to the world's range.
        """
        is_array = isinstance(observation, np.ndarray)
        batch = torch.as_tensor(observation, device=self.device)
        is_one = batch.dim() == len(self.config.observation_shape)
        batch = batch.unsqueeze(0) if is_one else batch
        shape = self.config.observation_shape
        check_views("observation", batch, shape, self.device, is_scaled=False)
        policy = self(batch).policy
        action: Tensor = policy.mode if deterministic else policy.sample()
        action = action.squeeze(0) if is_one else action
        return action.cpu().numpy() if is_array else action

    def _features(self, observation: Tensor) -> Tensor:
        if observation.dim() == 2:
            features: Tensor = self.body(to_input(observation))
            return features
        dtype = computing_in(self.device, self.config.observation_shape)
        if observation.dim() == 5:  # of `prepare`
            inputs = separate_blocks_to_input(observation, dtype)
        elif self.config.is_tiny:
            inputs = to_input(observation, dtype)
        else:
            inputs = blocks_to_input(observation, dtype)
        with autocast(self.device, dtype):
            features = run_network(self.body, inputs)
        return features.float()

    def save(self, folder: str | Path) -> None:
        """Writes agent.safetensors into the folder."""
        saving.save(Path(folder), "agent", self.state_dict(), asdict(self.config))

    @classmethod
    def load(cls, folder: str | Path, device: torch.device | str = "cpu") -> Self:
        """Reads what `save` wrote; raises `saving.LoadError` for anything else."""
        return saving.load(find_folder(folder, "agent"), "agent", cls, device)


def load_agent(folder: str | Path, device: torch.device | str = "cpu") -> Agent:
    """Loads a trained agent.

    Args:
        folder: of a run, or a name: `pretrained:NAME` for an agent that this package ships,
            `hf:OWNER/NAME` for one in a repository of the Hugging Face Hub.
        device: of the network.
    """
    return Agent.load(folder, device)


@fused
def _decide(agent: Agent, observation: Tensor, draw: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    policy, value = agent(observation)
    action: Tensor
    if isinstance(policy, Categorical):
        action = _choose(policy.logits, draw, agent.entries)
    else:
        action = policy.mean + policy.stddev * _normal_noise(draw, agent.entries)
    return action, policy.log_prob(action), value


def _choose(logits: Tensor, draw: Tensor, entries: Tensor) -> Tensor:
    """Samples (N,) actions by the Gumbel-max trick."""
    return (logits + _gumbel_noise(draw, entries)).argmax(dim=1)


def _gumbel_noise(draw: Tensor, entries: Tensor) -> Tensor:
    """Standard Gumbel noise, (N, A)."""
    # A unit of 0 correctly gives -inf: that action is not drawn.
    return -(-random_unit(draw[:, None], entries).log()).log()


def _normal_noise(draw: Tensor, entries: Tensor) -> Tensor:
    """Standard normal noise, (N, A), by the Box-Muller transform."""
    unit = 1.0 - random_unit(draw[:, None], entries, 0)  # in (0, 1]: its logarithm is finite
    angle = 2.0 * math.pi * random_unit(draw[:, None], entries, 1)
    return (-2.0 * unit.log()).sqrt() * angle.cos()


def _nature_cnn(observation_shape: tuple[int, ...]) -> tuple[nn.Module, int]:
    """The Nature CNN over blocks: the first layer, kernel 8 and stride 4, is 2 x 2 blocks."""
    gain = nn.init.calculate_gain("relu")
    channels = observation_shape[0] * BLOCK**2
    convolutions = nn.Sequential(
        _orthogonal(nn.Conv2d(channels, 32, 2), gain),
        nn.ReLU(inplace=True),
        _orthogonal(nn.Conv2d(32, 64, 4, stride=2), gain),
        nn.ReLU(inplace=True),
        _orthogonal(Unpadded(64, 64, 3), gain),
        nn.ReLU(inplace=True),
        nn.Flatten(),
    )
    num_features = convolutions(to_blocks(torch.zeros(1, *observation_shape))).shape[1]
    last = _orthogonal(nn.Linear(num_features, 512), gain)
    return nn.Sequential(*convolutions, last, nn.ReLU(inplace=True)), 512


def _tiny_cnn(observation_shape: tuple[int, ...]) -> tuple[nn.Module, int]:
    """The Nature CNN's channels with 3 x 3 kernels, and strides that leave small frames."""
    gain = nn.init.calculate_gain("relu")
    channels = (observation_shape[0], 32, 64, 64)
    layers: list[nn.Module] = []
    for number, stride in enumerate(tiny_strides(observation_shape[1:], 3)):
        convolution = nn.Conv2d(channels[number], channels[number + 1], 3, stride, padding=1)
        layers += [_orthogonal(convolution, gain), nn.ReLU(inplace=True)]
    convolutions = nn.Sequential(*layers, nn.Flatten())
    num_features = convolutions(torch.zeros(1, *observation_shape)).shape[1]
    last = _orthogonal(nn.Linear(num_features, 512), gain)
    return nn.Sequential(*convolutions, last, nn.ReLU(inplace=True)), 512


def _mlp(num_inputs: int, gain: float) -> tuple[nn.Module, int]:
    first = _orthogonal(nn.Linear(num_inputs, 64), gain)
    second = _orthogonal(nn.Linear(64, 64), gain)
    return nn.Sequential(first, nn.Tanh(), second, nn.Tanh()), 64


def _orthogonal(layer: Layer, gain: float) -> Layer:
    nn.init.orthogonal_(layer.weight, gain)
    assert layer.bias is not None
    nn.init.zeros_(layer.bias)
    return layer
