"""Worlds that exist on paper only, and what they emit."""

import torch
from torch import Tensor

from episodic_curiosity.worlds.base import Rollout, Step, WorldSpec


def spec(
    num_envs: int = 3,
    *,
    observation_shape: tuple[int, ...] = (3, 45, 50),
    num_actions: int = 4,
    action_shape: tuple[int, ...] = (),
    episode_steps: int = 12,
    device: str = "cpu",
    oracle_cell: float = 30.0,
) -> WorldSpec:
    """A world of frames with four actions and positions, unless told otherwise."""
    is_frame = len(observation_shape) == 3
    return WorldSpec(
        task="paper/world",
        num_envs=num_envs,
        device=torch.device(device),
        observation_shape=observation_shape,
        observation_dtype=torch.uint8 if is_frame else torch.float32,
        view_shape=(6,),
        view_dtype=torch.float32,
        num_actions=0 if action_shape else num_actions,
        action_shape=action_shape,
        episode_steps=episode_steps,
        has_position=oracle_cell > 0,
        oracle_cell=oracle_cell,
    )


def step(
    first: list[bool] | Tensor,
    *,
    observation: Tensor | None = None,
    view: Tensor | None = None,
    position: list[list[float]] | Tensor | None = None,
) -> Step:
    """A step with what a test is about; the rest is zero."""
    first = torch.as_tensor(first)
    nothing = torch.zeros_like(first)
    empty = torch.zeros(len(first), 1, device=first.device)
    return Step(
        observation=empty if observation is None else observation,
        view=empty if view is None else view,
        reward=torch.zeros(len(first), device=first.device),
        first=first,
        terminated=nothing,
        truncated=nothing,
        position=None if position is None else torch.as_tensor(position),
    )


def random_steps(
    world: WorldSpec, num_steps: int, seed: int = 0
) -> list[tuple[Step, Tensor | None]]:
    """Steps with the actions that led there, none to the first; episodes of unequal length."""
    generator = torch.Generator().manual_seed(seed)
    count, steps = world.num_envs, []
    for time in range(num_steps):
        if world.observation_dtype == torch.uint8:
            shape = (count, *world.observation_shape)
            observation = torch.randint(256, shape, generator=generator, dtype=torch.uint8)
        else:
            observation = torch.randn(count, *world.observation_shape, generator=generator)
        if world.num_actions:
            action = torch.randint(world.num_actions, (count,), generator=generator)
        else:
            action = torch.rand(count, *world.action_shape, generator=generator) * 2 - 1
        position = torch.randn(count, 3, generator=generator) * 60
        view = torch.randn(count, *world.view_shape, generator=generator)
        first = (torch.rand(count, generator=generator) < 0.1) | (time == 0)
        now = step(first, observation=observation, view=view, position=position)
        steps.append((now, None if time == 0 else action))
    return steps


def rollout_of(steps: list[tuple[Step, Tensor | None]], bonuses: Tensor) -> Rollout:
    """T steps as PPO would hand them to `learn`: `bonuses` (T, N) are for the later T."""
    actions = [action for _, action in steps[1:] if action is not None]
    nothing = torch.zeros_like(bonuses)
    values = torch.zeros(len(steps), bonuses.shape[1], 1)
    return Rollout(
        observation=torch.stack([now.observation for now, _ in steps]),
        action=torch.stack(actions),
        log_prob=nothing,
        value=values,
        reward=nothing,
        bonus=bonuses,
        first=torch.stack([now.first for now, _ in steps]),
        terminated=nothing.bool(),
        final_value=values[1:],
        view=torch.stack([now.view for now, _ in steps[:-1]]),
    )
