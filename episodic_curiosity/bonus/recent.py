"""The newest steps, for bonuses with a separate optimiser.

Shapes: S steps are kept, N environments, B steps, T steps of a rollout.
"""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from episodic_curiosity.bonus.base import Sight
from episodic_curiosity.support.checks import check_at_least, check_tensor, check_type
from episodic_curiosity.support.machine import check_memory
from episodic_curiosity.worlds.base import Rollout

NO_STEPS = "learn needs a rollout, or num_steps of at least 1 to keep steps in, got neither"


class RecentBatch(NamedTuple):
    """B transitions."""

    observation: Tensor  # (B, ...)
    next_observation: Tensor  # (B, ...)
    action: Tensor  # (B,) int64, or (B, ...) float32
    connected: Tensor  # (B,) bool, both observations are of one episode

    @property
    def frame(self) -> None:
        """Which observations are the same is not known."""

    def select(self, index: Tensor) -> "RecentBatch":
        return RecentBatch(*(field[index] for field in self))


class Recent(nn.Module):
    """A ring of the newest S steps of each environment: an (S, N, ...) buffer per field."""

    fresh: Tensor  # (S, N) bool, a step is here, and was not taken yet
    added: Tensor  # (N,) int64, ever
    _env: Tensor  # (N,) int64, 0 .. N - 1

    def __init__(self, num_steps: int, **fields: Tensor) -> None:
        """Makes room for steps with fields like these, (N, ...)."""
        super().__init__()
        check_at_least("num_steps", num_steps, 1)
        like = next(iter(fields.values()))
        what = f"room for {num_steps} steps x {len(like)} environments"
        num_bytes = num_steps * sum(field.nbytes for field in fields.values())
        check_memory(what, num_bytes, like.device, "lower `num_steps` or `num_envs`")
        env = torch.arange(len(like), device=like.device)
        for name, field in (fields | {"fresh": env.bool()}).items():
            self.register_buffer(name, field.new_zeros((num_steps, *field.shape)))
        self.register_buffer("added", torch.zeros_like(env))
        self.register_buffer("_env", env, persistent=False)

    def add(self, where: Tensor, **values: Tensor) -> None:
        """Adds one step of the rows where the (N,) mask is true; never synchronises."""
        for name, value in values.items():
            kept: Tensor = getattr(self, name)
            if value.is_floating_point() != kept.is_floating_point():
                raise ValueError(
                    f"{name} must be of dtype {kept.dtype}, got {value.dtype}; if it is an "
                    f"observation, give observation_dtype={value.dtype}"
                )
        place = (self.added % len(self.fresh), self._env)
        for name, value in (values | {"fresh": where}).items():
            ring: Tensor = getattr(self, name)
            rows = where.view(-1, *(1,) * (value.dim() - 1))
            ring[place] = torch.where(rows, value.to(ring.dtype), ring[place])
        self.added += where

    def take_fields(self, *names: str) -> list[Tensor]:
        """Returns fields (B, ...) of the steps added since the last call; synchronises."""
        step, env = self.fresh.nonzero(as_tuple=True)
        taken = [getattr(self, name)[step, env] for name in names]
        self.fresh.zero_()
        return taken


class RecentTransitions(Recent):
    """The newest S transitions: 2 * S * N times the bytes of an observation."""

    def __init__(self, num_steps: int, observation: Tensor, action: Tensor) -> None:
        """Makes room for steps like this (N, ...) observation and action."""
        super().__init__(
            num_steps, observation=observation, next_observation=observation, action=action
        )

    def take(self) -> RecentBatch:
        """Returns the transitions that were added since the last call; synchronises."""
        return RecentBatch(
            *self.take_fields("observation", "next_observation", "action", "fresh")
        )


class Trail(nn.Module):
    """Makes transitions of successive observations, and keeps the newest S.

    (2 * S + 1) * N times the bytes of an observation.
    """

    previous: Tensor  # (N, ...)

    def __init__(self, num_steps: int, observation: Tensor, action: Tensor) -> None:
        """Makes room for steps like this (N, ...) observation and action."""
        super().__init__()
        self.register_buffer("previous", torch.zeros_like(observation))
        self.recent = RecentTransitions(num_steps, observation, action)

    def add(self, now: Sight) -> None:
        """Adds the transitions of the rows that have stepped; never synchronises."""
        if now.seen.dtype != self.previous.dtype:
            raise ValueError(
                f"observation must be of dtype {self.previous.dtype}, got {now.seen.dtype}"
            )
        if now.action is not None:  # else episodes only begin
            shape = tuple(self.recent.get_buffer("action").shape[1:])
            check_tensor("action", now.action, shape, self.previous.device)
            self.recent.add(
                now.stepped,
                observation=self.previous,
                next_observation=now.seen,
                action=now.action,
            )
        rows = now.rows.view(-1, *(1,) * (now.seen.dim() - 1))
        self.previous.copy_(torch.where(rows, now.seen, self.previous))


def like_observations(
    num_envs: int, shape: tuple[int, ...], dtype: torch.dtype | None, device: torch.device | str
) -> Tensor:
    """Zeros (N, ...) of a dtype; None: bytes for frames, floats for vectors."""
    dtype = dtype or (torch.uint8 if len(shape) == 3 else torch.float32)
    return torch.zeros((num_envs, *shape), dtype=dtype, device=device)


def like_actions(
    num_envs: int, num_actions: int, shape: tuple[int, ...], device: torch.device | str
) -> Tensor:
    """Zeros (N, ...): integers if there are discrete actions, else floats."""
    if not (num_actions or shape):
        raise ValueError("this bonus needs num_actions or action_shape, got neither")
    dtype = torch.int64 if num_actions else torch.float32
    return torch.zeros((num_envs, *shape), dtype=dtype, device=device)


def newest_observations(recent: Recent | None, rollout: Rollout | None) -> Tensor:
    """The (B, ...) observations of a rollout, or those recorded since the last call."""
    if rollout is not None:
        check_type("rollout", rollout, Rollout)
        return rollout.observation[1:].flatten(0, 1)
    if recent is None:
        raise ValueError(NO_STEPS)
    (observation,) = recent.take_fields("observation")
    return observation


def newest_transitions(trail: Trail | None, rollout: Rollout | None) -> RecentBatch:
    """The transitions of a rollout, or those recorded since the last call."""
    if rollout is not None:
        check_type("rollout", rollout, Rollout)
        return RecentBatch(
            observation=rollout.observation[:-1].flatten(0, 1),
            next_observation=rollout.observation[1:].flatten(0, 1),
            action=rollout.action.flatten(0, 1),
            connected=~rollout.first[1:].flatten(),
        )
    if trail is None:
        raise ValueError(NO_STEPS)
    return trail.recent.take()
