"""The inputs of a maze frame.

Shapes: L levels in the pool, N frames, H x W cells, B billboards, F fire marks.
Coordinates are those of lab/elements.py; arrays are stored south first: [y, x].
"""

from enum import IntEnum
from typing import NamedTuple

from torch import Tensor

NUM_MARKS = 8  # F, only the newest fire marks are kept
NUM_WALL_LOOKS = 20
NUM_FLOOR_LOOKS = 20


class Side(IntEnum):
    """A side of a cell, or the direction that a wall faces."""

    EAST = 0
    NORTH = 1
    WEST = 2
    SOUTH = 3


class Scene(NamedTuple):
    """The variable inputs of N frames."""

    level: Tensor  # (N,) int64, index into the pool
    position: Tensor  # (N, 2) float32
    yaw: Tensor  # (N,) float32 degrees, 0 is east, 90 is north
    wall_look: Tensor  # (N,) uint8, of room cells; the corridor look is fixed
    floor_look: Tensor  # (N,) uint8
    open_doors: Tensor  # (N,) int64 bit mask: bit d is set if door d is open
    sprite: Tensor  # (N, B) uint8, Sprite
    sprite_position: Tensor  # (N, B, 2) float32
    time: Tensor  # (N,) float32, engine seconds of the episode, for bobbing and spinning
    mark_position: Tensor  # (N, F, 2) float32, where a shot hit a wall (always at eye height)
    mark_side: Tensor  # (N, F) uint8, Side that the marked wall faces
    mark_age: Tensor  # (N, F) float32 engine seconds, infinite for no mark
    spawn_age: Tensor  # (N,) float32 engine seconds since the last spawn
