"""Everything that N maze environments are at one moment.

Shapes: N environments, B things to touch, F fire marks.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from episodic_curiosity.worlds.maze.render.scene import NUM_MARKS, Scene
from episodic_curiosity.worlds.maze.rules.body import STEP_SECONDS

NEVER = 1 << 40  # a clock that is never reached
NO_KEY = 255


class MazeState(NamedTuple):
    """Everything about N environments; each field is (N, ...)."""

    key: Tensor  # int64, tells one environment's random numbers from another's
    episode: Tensor  # int64, how many have begun
    spawns: Tensor  # int64, in this episode
    clock: Tensor  # int64, steps into the episode
    ends_at: Tensor  # int64 clock, NEVER until the task is done
    level: Tensor  # int64
    goal: Tensor  # int64, which of the level's goals
    wall_look: Tensor  # uint8
    floor_look: Tensor  # uint8
    open_doors: Tensor  # int64 bit mask
    position: Tensor  # (N, 2) float32
    velocity: Tensor  # (N, 2) float32
    yaw: Tensor  # float32 degrees
    sprite: Tensor  # (N, B) uint8, NONE once taken
    sprite_position: Tensor  # (N, B, 2) float32
    held_key: Tensor  # int64 colour, or NO_KEY
    opening: Tensor  # int64, the door a key has just been used on
    opens_at: Tensor  # int64 clock
    ammo: Tensor  # int64
    reload: Tensor  # int64 milliseconds until the next shot
    shots: Tensor  # int64, in this episode
    mark_position: Tensor  # (N, F, 2) float32
    mark_side: Tensor  # (N, F) uint8
    mark_time: Tensor  # (N, F) float32 seconds of the episode, minus infinity for none
    spawned_at: Tensor  # int64 clock


def blank_state(key: Tensor, num_sprites: int) -> MazeState:
    """A state in which nothing has begun, for rows with (N,) random keys."""
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
    """The rows of `new` where the (N,) mask is true, of `old` elsewhere."""
    masks = (where, where[:, None], where[:, None, None])  # by the dimensions of a field
    return MazeState(
        *(
            b if a is b else torch.where(masks[a.ndim - 1], a, b)
            for a, b in zip(new, old, strict=True)
        )
    )


def scene_of(state: MazeState) -> Scene:
    """What the picture of each row depends on."""
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
