"""The agent's network: what to do, and what it will be worth.

Shapes: B observations, A actions (discrete) or the length of an action (continuous).
"""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple, Self, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.distributions import Categorical, Independent, Normal

from episodic_curiosity import saving
from episodic_curiosity.checks import check_at_least, check_views
from episodic_curiosity.reachability.network import to_input

Layer = TypeVar("Layer", nn.Linear, nn.Conv2d)

NATURE_SIDE = 36  # the smallest frame that the three convolutions leave something of


@dataclass(frozen=True, kw_only=True)
class AgentConfig:
    """What the agent sees and does."""

    observation_shape: tuple[int, ...]  # (C, H, W) of a frame or (F,) of a vector
    num_actions: int  # discrete ones, or the length of a continuous action
    continuous: bool = False

    def __post_init__(self) -> None:
        check_at_least("num_actions", self.num_actions, 1)
        shape = self.observation_shape
        if len(shape) not in (1, 3) or min(shape) < 1:
            raise ValueError(
                f"observation_shape must be (channels, height, width) or (features,), "
                f"got {shape}"
            )
        if len(shape) == 3 and min(shape[1:]) < NATURE_SIDE:
            raise ValueError(
                f"frames must be at least {NATURE_SIDE} x {NATURE_SIDE}, got {shape}"
            )


class Output(NamedTuple):
    """The policy and the value at B observations."""

    policy: Categorical | Independent[Normal]
    value: Tensor  # (B,)


class Agent(nn.Module):
    """The Nature CNN for frames, two layers of 64 for vectors; policy and value heads."""

    def __init__(
        self, observation_shape: tuple[int, ...], num_actions: int, *, continuous: bool = False
    ) -> None:
        super().__init__()
        self.config = AgentConfig(
            observation_shape=tuple(observation_shape),
            num_actions=num_actions,
            continuous=continuous,
        )
        if len(observation_shape) == 3:
            self.body, num_features = _nature_cnn(self.config.observation_shape)
        else:
            self.body, num_features = _mlp(self.config.observation_shape[0])
        self.policy_head = _orthogonal(nn.Linear(num_features, num_actions), gain=0.01)
        self.value_head = _orthogonal(nn.Linear(num_features, 1), gain=1.0)
        if continuous:
            self.log_std = nn.Parameter(torch.zeros(num_actions))
        self.to(memory_format=torch.channels_last)  # type: ignore[call-overload]

    @property
    def device(self) -> torch.device:
        return self.value_head.weight.device

    def forward(self, observation: Tensor) -> Output:
        features = self.body(to_input(observation))
        policy: Categorical | Independent[Normal]
        if self.config.continuous:
            normal = Normal(self.policy_head(features), self.log_std.exp(), validate_args=False)
            policy = Independent(normal, 1, validate_args=False)
        else:
            policy = Categorical(logits=self.policy_head(features), validate_args=False)
        return Output(policy, self.value_head(features).squeeze(1))

    @torch.no_grad()
    def act(
        self, observation: Tensor | NDArray[Any], *, deterministic: bool = False
    ) -> Tensor | NDArray[Any]:
        """Actions for (B, *observation_shape) observations, or for one without B.

        An array in, an array out: int64 actions, or float32 where actions are continuous.
        """
        is_array = isinstance(observation, np.ndarray)
        batch = torch.as_tensor(observation, device=self.device)
        is_one = batch.dim() == len(self.config.observation_shape)
        batch = batch.unsqueeze(0) if is_one else batch
        check_views("observation", batch, self.config.observation_shape, self.device)
        policy = self(batch).policy
        action: Tensor = policy.mode if deterministic else policy.sample()
        action = action.squeeze(0) if is_one else action
        return action.cpu().numpy() if is_array else action

    def save(self, folder: str | Path) -> None:
        """Writes agent.safetensors and agent.json into the folder."""
        saving.save(Path(folder), "agent", self.state_dict(), asdict(self.config))

    @classmethod
    def load(cls, folder: str | Path, device: torch.device | str = "cpu") -> Self:
        """Reads what `save` wrote; anything else is refused with `saving.LoadError`."""
        return saving.load(Path(folder), "agent", cls, device)


def load(folder: str | Path, device: torch.device | str = "cpu") -> Agent:
    """The trained agent of a run's folder."""
    return Agent.load(folder, device)


def _nature_cnn(observation_shape: tuple[int, ...]) -> tuple[nn.Module, int]:
    gain = nn.init.calculate_gain("relu")
    convolutions = nn.Sequential(
        _orthogonal(nn.Conv2d(observation_shape[0], 32, 8, stride=4), gain),
        nn.ReLU(inplace=True),
        _orthogonal(nn.Conv2d(32, 64, 4, stride=2), gain),
        nn.ReLU(inplace=True),
        _orthogonal(nn.Conv2d(64, 64, 3), gain),
        nn.ReLU(inplace=True),
        nn.Flatten(),
    )
    num_features = convolutions(torch.zeros(1, *observation_shape)).shape[1]
    last = _orthogonal(nn.Linear(num_features, 512), gain)
    return nn.Sequential(*convolutions, last, nn.ReLU(inplace=True)), 512


def _mlp(num_inputs: int) -> tuple[nn.Module, int]:
    gain = nn.init.calculate_gain("tanh")
    first = _orthogonal(nn.Linear(num_inputs, 64), gain)
    second = _orthogonal(nn.Linear(64, 64), gain)
    return nn.Sequential(first, nn.Tanh(), second, nn.Tanh()), 64


def _orthogonal(layer: Layer, gain: float) -> Layer:
    nn.init.orthogonal_(layer.weight, gain)
    assert layer.bias is not None
    nn.init.zeros_(layer.bias)
    return layer
