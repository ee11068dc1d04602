"""What a maze picture depends on, and nothing else.

Shapes: L levels in the pool, N frames, H x W cells, B billboards, F fire marks.
Coordinates are those of lab/elements.py; arrays are stored south first: [y, x].
"""

from enum import IntEnum
from typing import NamedTuple

from torch import Tensor

NUM_MARKS = 8  # F, the newest fire marks are drawn, older ones are forgotten
NUM_WALL_LOOKS = 20
NUM_FLOOR_LOOKS = 20


class Side(IntEnum):
    """The four sides of a cell, and the four ways a wall can face."""

    EAST = 0
    NORTH = 1
    WEST = 2
    SOUTH = 3


class Scene(NamedTuple):
    """N frames: everything that changes."""

    level: Tensor  # (N,) int64, index into the pool
    position: Tensor  # (N, 2) float32
    yaw: Tensor  # (N,) float32 degrees, 0 looks east, 90 north
    wall_look: Tensor  # (N,) uint8, of room cells; the corridor look is fixed
    floor_look: Tensor  # (N,) uint8
    open_doors: Tensor  # (N,) int64, bit d is set where door d is open
    sprite: Tensor  # (N, B) uint8, Sprite
    sprite_position: Tensor  # (N, B, 2) float32
    time: Tensor  # (N,) float32, engine seconds of the episode, for bobbing and spinning
    mark_position: Tensor  # (N, F, 2) float32, where a shot hit a wall (always at eye height)
    mark_side: Tensor  # (N, F) uint8, Side the marked wall faces
    mark_age: Tensor  # (N, F) float32 engine seconds, infinite where there is no mark
    spawn_age: Tensor  # (N,) float32 engine seconds since the last spawn
