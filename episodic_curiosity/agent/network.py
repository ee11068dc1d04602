"""The agent's network: policy and value heads.

Shapes: B observations, N of them per step while acting, A actions (discrete) or entries of an
action (continuous), H value heads, S numbers of a memory's summary.
"""

import math
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.distributions import Categorical, Independent, Normal

from episodic_curiosity.agent.bodies import (
    NUM_FEATURES,
    joining_layer,
    mlp,
    nature_convolutions,
    orthogonal,
    tiny_convolutions,
)
from episodic_curiosity.bonus.base import Bonus
from episodic_curiosity.bonus.registry import find_method
from episodic_curiosity.support import saving
from episodic_curiosity.support.checks import (
    check_at_least,
    check_tensor,
    check_type,
    check_views,
    to_tensor,
)
from episodic_curiosity.support.compiling import fused, run_network
from episodic_curiosity.support.pixels import (
    autocast,
    blocks_to_input,
    computing_in,
    separate_blocks,
    separate_blocks_to_input,
    to_input,
)
from episodic_curiosity.support.randomness import random_unit
from episodic_curiosity.support.shared import find_folder

NATURE_SIDE = 36  # the smallest frame that the Nature CNN accepts


@dataclass(frozen=True, kw_only=True)
class AgentConfig:
    """The agent's inputs and outputs."""

    observation_shape: tuple[int, ...]  # (C, H, W) of a frame or (F,) of a vector
    num_actions: int  # number of discrete actions, or length of a continuous one
    continuous: bool = False
    num_values: int = 1  # value heads; 2: one for the reward, one for the bonus
    separate_networks: bool = False  # of policy and values, for vectors
    summary_size: int = 0  # S, of the summary of its memory that it sees, too; 0: none
    summary_of: str | None = None  # the method whose bonus keeps that memory

    def __post_init__(self) -> None:
        check_at_least("num_actions", self.num_actions, 1)
        check_at_least("num_values", self.num_values, 1)
        check_at_least("summary_size", self.summary_size, 0)
        if self.summary_of is not None:
            check_type("summary_of", self.summary_of, str)
        if bool(self.summary_size) != (self.summary_of is not None):
            raise ValueError(
                f"summary_size and summary_of must be given together, got {self.summary_size} "
                f"and {self.summary_of!r}"
            )
        shape = self.observation_shape
        if len(shape) not in (1, 3) or min(shape) < 1:
            raise ValueError(
                f"observation_shape must be (channels, height, width) or (features,), "
                f"got {shape}"
            )
        if len(shape) == 3 and self.separate_networks:
            raise ValueError(f"separate_networks are for vectors, got frames of {shape}")

    def check_summary(self, summary: Tensor | None) -> None:
        """Raises unless this is what the agent sees of its memory: nothing, or S numbers."""
        found = 0 if summary is None else summary.shape[-1]
        if found != self.summary_size:
            wanted = "no summary of a memory"
            if self.summary_size:
                wanted = f"a summary of {self.summary_size} numbers of the memory of "
                wanted += str(self.summary_of)
            raise ValueError(f"the agent sees {wanted}, got {found or 'none'}")

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
        summary_size: S, of a bonus's `summary` that it sees beside the observation; 0: none.
        summary_of: the method of that bonus.
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
        summary_size: int = 0,
        summary_of: str | None = None,
    ) -> None:
        super().__init__()
        self.config = AgentConfig(
            observation_shape=tuple(observation_shape),
            num_actions=num_actions,
            continuous=continuous,
            num_values=num_values,
            separate_networks=separate_networks,
            summary_size=summary_size,
            summary_of=summary_of,
        )
        self.joining: nn.Module | None = None  # of features and summary, for frames
        self.value_body: nn.Module | None = None
        if len(observation_shape) == 3:
            make = tiny_convolutions if self.config.is_tiny else nature_convolutions
            convolutions, num_features = make(self.config.observation_shape)
            joining = joining_layer(num_features + summary_size)
            self.joining = joining if summary_size else None
            whole = nn.Sequential(*convolutions, *joining)
            self.body: nn.Module = convolutions if summary_size else whole
            num_features = NUM_FEATURES
        else:
            # The release's gain; torch's for tanh is 5/3.
            gain = math.sqrt(2) if separate_networks else nn.init.calculate_gain("tanh")
            num_inputs = observation_shape[0] + summary_size
            self.body, num_features = mlp(num_inputs, gain)
            if separate_networks:
                self.value_body, _ = mlp(num_inputs, gain)
        self.policy_head = orthogonal(nn.Linear(num_features, num_actions), gain=0.01)
        self.value_head = orthogonal(nn.Linear(num_features, num_values), gain=1.0)
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

    def forward(self, observation: Tensor, summary: Tensor | None = None) -> Output:
        """The policy and the values; (B, S) summaries are for an agent that sees its memory."""
        self.config.check_summary(summary)
        features = self._features(observation, summary)
        policy: Categorical | Independent[Normal]
        if self.config.continuous:
            normal = Normal(self.policy_head(features), self.log_std.exp(), validate_args=False)
            policy = Independent(normal, 1, validate_args=False)
        else:
            policy = Categorical(logits=self.policy_head(features), validate_args=False)
        if self.value_body is not None:
            features = self.value_body(_joined(to_input(observation), summary))
        return Output(policy, self.value_head(features))

    @torch.no_grad()
    def decide(
        self, observation: Tensor, draw: Tensor, summary: Tensor | None = None
    ) -> Decision:
        """Samples an action for each of N observations from (N,) random bits, as int64.

        The same bits give the same action. Continuous actions and their log-probabilities are
        not clipped: the caller clips actions to the world's range.
        """
        return Decision(*_decide(self, observation, draw, summary))

    @torch.no_grad()
    def act(
        self,
        observation: Tensor | NDArray[Any],
        *,
        deterministic: bool = False,
        summary: Tensor | NDArray[Any] | None = None,
    ) -> Tensor | NDArray[Any]:
        """Returns actions for (B, *observation_shape) observations, or for one without B.

        An array gives an array. Actions are int64, or float32 if continuous. Continuous actions
        are not clipped: clip them to [-1, 1] and scale them to the world's range. An agent that
        sees its memory needs the float32 (B, S) `summary` of a bonus that was shown the
        observations, (S,) for one.
        """
        is_array = isinstance(observation, np.ndarray)
        batch = (
            to_tensor("observation", observation, self.device)
            if is_array
            else torch.as_tensor(observation, device=self.device)
        )
        is_one = batch.dim() == len(self.config.observation_shape)
        batch = batch.unsqueeze(0) if is_one else batch
        shape = self.config.observation_shape
        check_views("observation", batch, shape, self.device, is_scaled=False)
        if is_one and isinstance(summary, Tensor | np.ndarray) and summary.ndim == 1:
            summary = summary[None]
        policy = self(batch, self._check_summary(summary, len(batch))).policy
        action: Tensor = policy.mode if deterministic else policy.sample()
        action = action.squeeze(0) if is_one else action
        return action.cpu().numpy() if is_array else action

    def _check_summary(
        self, summary: Tensor | NDArray[Any] | None, batch_size: int
    ) -> Tensor | None:
        """Returns the (B, S) summary as a tensor; raises if it is not what the agent sees."""
        if summary is None or not self.config.summary_size:
            self.config.check_summary(None if summary is None else torch.as_tensor(summary))
            return None
        if isinstance(summary, np.ndarray):
            summary = torch.as_tensor(summary, device=self.device)
        check_tensor("summary", summary, (batch_size, self.config.summary_size), self.device)
        if summary.dtype != torch.float32:
            raise TypeError(f"summary must be of dtype {torch.float32}, got {summary.dtype}")
        if summary.is_cpu and not bool(((summary >= 0) & (summary <= 1)).all()):
            raise ValueError("summary must be in [0, 1], got a number outside, or NaN")
        return summary

    def _features(self, observation: Tensor, summary: Tensor | None) -> Tensor:
        if observation.dim() == 2:
            features: Tensor = self.body(_joined(to_input(observation), summary))
            return features
        dtype = computing_in(self.device)
        if observation.dim() == 5:  # of `prepare`
            inputs = separate_blocks_to_input(observation, dtype)
        elif self.config.is_tiny:
            inputs = to_input(observation, dtype)
        else:
            inputs = blocks_to_input(observation, dtype)
        with autocast(self.device, dtype):
            features = run_network(self.body, inputs)
            if self.joining is not None:
                features = self.joining(_joined(features, summary))
        return features.float()

    def save(self, folder: str | Path) -> None:
        """Writes agent.safetensors into the folder."""
        config = asdict(self.config)
        if not self.config.summary_size:  # as it was written before there were summaries
            del config["summary_size"], config["summary_of"]
        saving.save(Path(folder), "agent", self.state_dict(), config)

    @classmethod
    def load(cls, folder: str | Path, device: torch.device | str = "cpu") -> Self:
        """Reads what `save` wrote; raises `saving.LoadError` for anything else."""
        return saving.load(find_folder(folder, "agent"), "agent", cls, device)


def load_agent(
    folder: str | Path, device: torch.device | str = "cpu", *, bonus: Bonus | None = None
) -> Agent:
    """Loads a trained agent.

    Args:
        folder: of a run, or a name: `pretrained:NAME` for an agent that this package ships,
            `hf:OWNER/NAME` for one in a repository of the Hugging Face Hub.
        device: of the network.
        bonus: whose `summary` the agent will be given, if it was trained to see its memory.
    """
    agent = Agent.load(folder, device)
    method = agent.config.summary_of
    inner = getattr(bonus, "inner", bonus)  # of a NormalisedBonus
    if method is not None and not isinstance(inner, find_method(method).bonus):
        raise ValueError(
            f"the agent in {folder} sees its memory: it needs bonus=, the bonus of {method} "
            f"with keep_summary() called, got {bonus and type(bonus).__name__}"
        )
    agent.config.check_summary(None if method is None or bonus is None else bonus.summary)
    return agent


def _joined(features: Tensor, summary: Tensor | None) -> Tensor:
    return features if summary is None else torch.cat([features, summary], dim=1)


@fused
def _decide(
    agent: Agent, observation: Tensor, draw: Tensor, summary: Tensor | None
) -> tuple[Tensor, Tensor, Tensor]:
    policy, value = agent(observation, summary)
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
