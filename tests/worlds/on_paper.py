"""A world that exists on paper only."""

import torch

from episodic_curiosity.worlds.base import WorldSpec


def spec(
    num_envs: int = 3,
    *,
    observation_shape: tuple[int, ...] = (3, 45, 50),
    num_actions: int = 4,
    action_shape: tuple[int, ...] = (),
    oracle_cell: float = 30.0,
) -> WorldSpec:
    """A world of frames with four actions and positions, unless told otherwise."""
    is_frame = len(observation_shape) == 3
    return WorldSpec(
        task="paper/world",
        num_envs=num_envs,
        device=torch.device("cpu"),
        observation_shape=observation_shape,
        observation_dtype=torch.uint8 if is_frame else torch.float32,
        view_shape=(6,),
        view_dtype=torch.float32,
        num_actions=0 if action_shape else num_actions,
        action_shape=action_shape,
        episode_steps=12,
        has_position=oracle_cell > 0,
        oracle_cell=oracle_cell,
    )
