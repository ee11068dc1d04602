"""PPO (Schulman et al. 2017) in the form of OpenAI's baselines, which the paper used.

Shapes: T steps, N environments, B samples in a minibatch, H value heads.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import torch
from torch import Tensor

from episodic_curiosity.agent.advantages import advantages
from episodic_curiosity.agent.losses import clipped_gain, value_error
from episodic_curiosity.agent.minibatches import Minibatch, Minibatches
from episodic_curiosity.agent.network import Agent
from episodic_curiosity.bonus.auxiliary import Auxiliary
from episodic_curiosity.support.checks import check_at_least, check_choice, check_number
from episodic_curiosity.support.compiling import fused, fused_in_training
from episodic_curiosity.support.config_json import ADDED
from episodic_curiosity.support.optimiser import Optimiser
from episodic_curiosity.support.randomness import more_bits, random_bits, seed_words
from episodic_curiosity.worlds.base import Rollout

SHUFFLE = 0x5B0FF1E  # keeps the order of samples apart from other draws of the same seed


@dataclass(frozen=True, kw_only=True)
class PPOConfig:
    """PPO as the authors ran it on DMLab: their release, and the paper's table for PPO + EC."""

    num_steps: int = 256  # T, per environment and update
    num_minibatches: int = 4
    num_epochs: int = 4
    gamma: float = 0.99
    lam: float = 0.95  # of generalised advantage estimation
    learning_rate: float = 2.5e-4
    clip_range: float = 0.1
    decay: Literal["linear", "constant"] = "linear"  # of the learning rate and the clip range
    decay_horizon: float = 1.0  # times the run's updates until 0; 1.1 in the authors' release
    value_coefficient: float = 0.5
    entropy_coefficient: float = 0.0021
    max_gradient_norm: float = 0.5
    reward_scale: float = 1.0  # of the task's reward; the bonus is scaled separately
    timeouts_are_ends: bool = False  # True, as the authors: no bootstrapping after truncation
    clip_values: bool = True  # clip changes of the value to the clip range, too
    normalise_advantages: bool = True  # in every minibatch
    bonus_head: bool = False  # a separate value head for the bonus
    bonus_gamma: float | None = None  # of that head; None: gamma
    # For vectors, as in the authors' release: a network each for policy and values. Frames
    # have one for both.
    separate_networks: bool = field(default=False, metadata=ADDED)
    # Beside its observation the agent sees a summary of its bonus's memory; not in the paper.
    sees_memory: bool = field(default=False, metadata=ADDED)

    def __post_init__(self) -> None:
        for name in ("num_steps", "num_minibatches", "num_epochs"):
            check_at_least(name, getattr(self, name), 1)
        for name in ("learning_rate", "clip_range", "max_gradient_norm"):
            check_number(name, getattr(self, name), above=0)
        check_number("decay_horizon", self.decay_horizon)
        if self.decay_horizon < 1:
            raise ValueError(f"decay_horizon must be at least 1, got {self.decay_horizon!r}")
        for name in ("value_coefficient", "entropy_coefficient", "reward_scale"):
            check_number(name, getattr(self, name))
        for name in ("gamma", "lam", "bonus_gamma"):
            share = getattr(self, name)
            if name == "bonus_gamma" and share is None:
                continue
            check_number(name, share)
            if not 0 <= share <= 1:
                raise ValueError(f"{name} must be a number from 0 to 1, got {share!r}")
        check_choice("decay", self.decay, ("linear", "constant"))
        if self.bonus_gamma is not None and not self.bonus_head:
            raise ValueError(
                f"bonus_gamma must be None without bonus_head, got {self.bonus_gamma!r}"
            )

    @property
    def num_values(self) -> int:
        """H, the number of value heads that the agent must have."""
        return 2 if self.bonus_head else 1


class PPO:
    """Updates an agent in place, `num_updates` times in a run.

    An update depends only on the weights, Adam's moments, the rollout, the seed and the number
    of the update: there is no generator to save.
    """

    def __init__(
        self,
        agent: Agent,
        config: PPOConfig,
        *,
        num_updates: int,
        seed: int,
        auxiliary: Auxiliary | None = None,
    ) -> None:
        check_at_least("num_updates", num_updates, 1)
        if agent.config.num_values != config.num_values:
            raise ValueError(
                f"PPO with bonus_head={config.bonus_head} needs an agent with num_values="
                f"{config.num_values}, got {agent.config.num_values}"
            )
        self.agent = agent
        self.config = config
        self.num_updates = num_updates
        self.auxiliary = auxiliary
        device = agent.device
        low, high = seed_words(seed)
        self._stream = random_bits(torch.tensor(low), high, SHUFFLE).to(device)
        self._number = torch.zeros((), dtype=torch.int64, device=device)  # of the update
        gammas = (
            config.gamma,
            config.gamma if config.bonus_gamma is None else config.bonus_gamma,
        )
        self._gamma = torch.tensor(gammas[: config.num_values], device=device)  # (H,)
        # A tensor, so that a captured minibatch step follows its decay.
        self._clip_range = torch.tensor(config.clip_range, device=device)

        parameters = {f"agent.{name}": weight for name, weight in agent.named_parameters()}
        if auxiliary is not None:
            named = auxiliary.named_parameters()
            parameters |= {f"auxiliary.{name}": weight for name, weight in named}
        self._optimiser = Optimiser(parameters, config.max_gradient_norm)
        self._minibatches: Minibatches | None = None

    def update(self, rollout: Rollout, number: int) -> dict[str, float]:
        """Learns from a rollout and returns metrics; `number` counts updates from 0.

        Raises FloatingPointError if a loss is not finite: the weights are then unusable.
        """
        self._check(rollout, number)
        remaining = 1.0
        if self.config.decay == "linear":
            remaining -= number / (self.num_updates * self.config.decay_horizon)
        learning_rate = self.config.learning_rate * remaining
        self._optimiser.learning_rate.fill_(learning_rate)
        self._clip_range.fill_(self.config.clip_range * remaining)

        self._number.fill_(number)

        if self._minibatches is None or self._minibatches.rollout is not rollout:
            self._minibatches = Minibatches(rollout, self._draw_samples, self._improve)
        minibatches = self._minibatches
        history = minibatches.learn()
        return _finite_means(minibatches.names, history, number, rollout) | {
            "explained_variance": _explained_variance(minibatches.samples),
            "learning_rate": learning_rate,
        }

    def state_dict(self) -> dict[str, dict[str, Tensor]]:
        """Returns a copy of Adam's moments by parameter name, without the weights."""
        return self._optimiser.state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Resumes from a state of the same agent and auxiliary."""
        self._optimiser.load_state_dict(state)

    def _check(self, rollout: Rollout, number: int) -> None:
        check_at_least("the number of an update", number, 0)
        if number >= self.num_updates:
            raise ValueError(
                f"this run has {self.num_updates} updates, numbered from 0, got {number}"
            )
        if rollout.value.shape[2] != self.config.num_values:
            raise ValueError(
                f"the rollout's value must have {self.config.num_values} heads, "
                f"got {rollout.value.shape[2]}"
            )
        if rollout.num_steps * rollout.num_envs % self.config.num_minibatches:
            raise ValueError(
                f"{rollout.num_steps} steps of {rollout.num_envs} environments cannot be cut "
                f"into {self.config.num_minibatches} equal minibatches"
            )

    def _draw_samples(self, rollout: Rollout) -> tuple[Minibatch, Tensor]:
        """The rollout's samples, and (M, B) indices: every sample once per epoch, shuffled."""
        epoch = torch.arange(self.config.num_epochs, device=self._stream.device)
        sample = torch.arange(rollout.num_steps * rollout.num_envs, device=epoch.device)
        order = _shuffled(self._stream, self._number, epoch, sample)
        return self._samples(rollout), order.view(
            self.config.num_epochs * self.config.num_minibatches, -1
        )

    def _samples(self, rollout: Rollout) -> Minibatch:
        """The rollout as T * N samples, without copying where it is contiguous."""
        reward = self.config.reward_scale * rollout.reward
        if self.config.bonus_head:
            reward = torch.stack([reward, rollout.bonus], dim=2)  # (T, N, 2)
        else:
            reward = (reward + rollout.bonus).unsqueeze(2)  # (T, N, 1)
        advantage = advantages(
            rollout,
            reward,
            gamma=self._gamma,
            lam=self.config.lam,
            timeouts_are_ends=self.config.timeouts_are_ends,
        )
        observation = rollout.observation[:-1].flatten(0, 1)
        following = frame = None
        if self.auxiliary is not None:
            following = rollout.observation[1:].flatten(0, 1)
            frame = torch.arange(len(observation), device=observation.device)
            frame = torch.stack([frame, frame + rollout.num_envs], dim=1)
        return Minibatch(
            inputs=self.agent.prepare(observation),  # once for all epochs
            observation=None if self.auxiliary is None else observation,
            next_observation=following,
            frame=frame,
            action=rollout.action.flatten(0, 1),
            connected=~rollout.first[1:].flatten(),
            log_prob=rollout.log_prob.flatten(),
            advantage=advantage.sum(dim=2).flatten(),
            target=(advantage + rollout.value[:-1]).flatten(0, 1),
            value=rollout.value[:-1].flatten(0, 1),
            summary=None if rollout.summary is None else rollout.summary.flatten(0, 1),
        )

    def _improve(self, batch: Minibatch) -> dict[str, Tensor]:
        """Takes one step of Adam, with fixed shapes and without synchronising."""
        config = self.config
        loss, metrics, diagnostics = _losses(
            self.agent,
            self._clip_range,
            batch,
            config.normalise_advantages,
            config.clip_values,
            config.value_coefficient,
            config.entropy_coefficient,
        )
        if self.auxiliary is not None:
            auxiliary_loss, auxiliary_metrics = self.auxiliary.loss(batch)
            loss = loss + auxiliary_loss
            metrics |= auxiliary_metrics
        norm = self._optimiser.descend(loss)
        metrics |= diagnostics | {"gradient_norm": norm}
        return {name: metric.detach() for name, metric in metrics.items()}


def _shuffled(stream: Tensor, number: Tensor, epoch: Tensor, sample: Tensor) -> Tensor:
    """(E, S) indices of the S samples, in the order of random bits for each of E epochs."""
    return _order_bits(stream, number, epoch, sample).argsort(dim=1, stable=True)


@fused
def _order_bits(stream: Tensor, number: Tensor, epoch: Tensor, sample: Tensor) -> Tensor:
    return more_bits(more_bits(more_bits(stream, number), epoch)[:, None], sample)


@fused_in_training
def _losses(
    agent: Agent,
    clip_range: Tensor,
    batch: Minibatch,
    normalise_advantages: bool,
    clip_values: bool,
    value_coefficient: float,
    entropy_coefficient: float,
) -> tuple[Tensor, dict[str, Tensor], dict[str, Tensor]]:
    """Returns PPO's loss, its parts, and diagnostics of the policy's change."""
    policy, value = agent(batch.inputs, batch.summary)
    log_ratio = policy.log_prob(batch.action) - batch.log_prob
    advantage = batch.advantage
    if normalise_advantages:
        variance, mean = torch.var_mean(advantage, correction=0)
        advantage = (advantage - mean) / (variance.sqrt() + 1e-8)

    policy_loss = -clipped_gain(log_ratio, advantage, clip_range).mean()
    value_range = clip_range if clip_values else None
    errors = value_error(value, batch.value, batch.target, value_range)  # (B, H)
    value_loss = errors.sum(dim=1).mean()
    entropy = policy.entropy().mean()
    loss = policy_loss + value_coefficient * value_loss - entropy_coefficient * entropy

    log_ratio = log_ratio.detach()
    change = log_ratio.expm1()  # ratio - 1
    return (
        loss,
        {"policy_loss": policy_loss, "value_loss": value_loss, "entropy": entropy},
        {
            "clip_fraction": (change.abs() > clip_range).float().mean(),
            "approximate_kl": (change - log_ratio).mean(),
        },
    )


def _finite_means(
    names: list[str], history: Tensor, number: int, rollout: Rollout
) -> dict[str, float]:
    """The mean of each metric over all minibatches; raises at the first NaN or infinity.

    Synchronises with the GPU, once per update.
    """
    table = history.cpu()
    wrong = (~table.isfinite()).nonzero()
    if len(wrong):
        _check_paid(rollout, number)
        row, column = wrong[0].tolist()
        raise FloatingPointError(
            f"the {names[column]} of update {number} is {table[row, column].item()}, "
            f"in minibatch {row + 1} of {len(history)}"
        )
    return dict(zip(names, table.double().mean(dim=0).tolist(), strict=True))


def _check_paid(rollout: Rollout, number: int) -> None:
    """Raises where a reward or bonus is not finite: such a rollout spoils every loss."""
    for name, paid in (("reward", rollout.reward), ("bonus", rollout.bonus)):  # (T, N)
        wrong = (~paid.isfinite()).nonzero()
        if len(wrong):
            time, env = wrong[0].tolist()
            raise FloatingPointError(
                f"the {name} of update {number} is {paid[time, env].item()}, "
                f"in step {time + 1} of environment {env}"
            )


def _explained_variance(samples: Minibatch) -> float:
    """The share of the targets' variance that the values explain; 0 without variance."""
    target = samples.target.sum(dim=1)
    both = torch.stack([samples.advantage, target]).var(dim=1, correction=0)
    unexplained, variance = both.tolist()  # advantage = target - value
    return 1.0 - unexplained / variance if variance > 0 else 0.0
