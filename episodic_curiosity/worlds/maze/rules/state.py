"""The complete state of N maze environments.

Shapes: N environments, B items, F fire marks.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from episodic_curiosity.worlds.maze.render.scene import NUM_MARKS, Scene
from episodic_curiosity.worlds.maze.rules.body import STEP_SECONDS

NEVER = 1 << 40  # a step count that is never reached
NO_KEY = 255


class MazeState(NamedTuple):
    """The state of N environments; each field is (N, ...)."""

    key: Tensor  # int64, random key of the environment
    episode: Tensor  # int64, number of episodes begun
    spawns: Tensor  # int64, number of spawns in this episode
    clock: Tensor  # int64, steps into the episode
    ends_at: Tensor  # int64 clock, NEVER until the task is done
    level: Tensor  # int64
    goal: Tensor  # int64, index into the level's goals
    wall_look: Tensor  # uint8
    floor_look: Tensor  # uint8
    open_doors: Tensor  # int64 bit mask
    position: Tensor  # (N, 2) float32
    velocity: Tensor  # (N, 2) float32
    yaw: Tensor  # float32 degrees
    sprite: Tensor  # (N, B) uint8, NONE once taken
    sprite_position: Tensor  # (N, B, 2) float32
    held_key: Tensor  # int64 colour, or NO_KEY
    opening: Tensor  # int64, the door that the last key was used on
    opens_at: Tensor  # int64 clock
    ammo: Tensor  # int64
    reload: Tensor  # int64 milliseconds until the next shot
    shots: Tensor  # int64, number of shots in this episode
    mark_position: Tensor  # (N, F, 2) float32
    mark_side: Tensor  # (N, F) uint8
    mark_time: Tensor  # (N, F) float32 seconds into the episode, -inf for no mark
    spawned_at: Tensor  # int64 clock


def blank_state(key: Tensor, num_sprites: int) -> MazeState:
    """Returns the state before the first episode, for (N,) random keys."""
    count, device = len(key), key.device

    def zeros(*shape: int, dtype: torch.dtype = torch.int64) -> Tensor:
        return torch.zeros(count, *shape, dtype=dtype, device=device)

    real, byte = torch.float32, torch.uint8
    return MazeState(
        key=key,
        episode=zeros(),
        spawns=zeros(),
        clock=zeros(),
        ends_at=zeros(),
        level=zeros(),
        goal=zeros(),
        wall_look=zeros(dtype=byte),
        floor_look=zeros(dtype=byte),
        open_doors=zeros(),
        position=zeros(2, dtype=real),
        velocity=zeros(2, dtype=real),
        yaw=zeros(dtype=real),
        sprite=zeros(num_sprites, dtype=byte),
        sprite_position=zeros(num_sprites, 2, dtype=real),
        held_key=zeros(),
        opening=zeros(),
        opens_at=zeros(),
        ammo=zeros(),
        reload=zeros(),
        shots=zeros(),
        mark_position=zeros(NUM_MARKS, 2, dtype=real),
        mark_side=zeros(NUM_MARKS, dtype=byte),
        mark_time=zeros(NUM_MARKS, dtype=real),
        spawned_at=zeros(),
    )


def choose(where: Tensor, new: MazeState, old: MazeState) -> MazeState:
    """Selects rows of `new` where the (N,) mask is true, of `old` elsewhere."""
    masks = (where, where[:, None], where[:, None, None])  # by field.ndim
    return MazeState(
        *(
            b if a is b else torch.where(masks[a.ndim - 1], a, b)
            for a, b in zip(new, old, strict=True)
        )
    )


def scene_of(state: MazeState) -> Scene:
    """Returns the part of the state that the frames depend on."""
    time = state.clock.to(torch.float32) * STEP_SECONDS
    return Scene(
        level=state.level,
        position=state.position,
        yaw=state.yaw,
        wall_look=state.wall_look,
        floor_look=state.floor_look,
        open_doors=state.open_doors,
        sprite=state.sprite,
        sprite_position=state.sprite_position,
        time=time,
        mark_position=state.mark_position,
        mark_side=state.mark_side,
        mark_age=time[:, None] - state.mark_time,
        spawn_age=(state.clock - state.spawned_at).to(torch.float32) * STEP_SECONDS,
    )
