"""What a maze picture depends on, and nothing else.

Shapes: L levels in the pool, N frames, H x W cells, B billboards, F fire marks.
Coordinates are DeepMind Lab's: x east, y north, z up; a text maze's cell is 100 units wide
and row 0 of its text is the north edge, so arrays here are stored south first: [y, x].
"""

from enum import IntEnum
from typing import NamedTuple

from torch import Tensor

NUM_MARKS = 8  # F, the newest fire marks are drawn, older ones are forgotten
NUM_WALL_LOOKS = 20
NUM_FLOOR_LOOKS = 20
NUM_DECALS = 80
NO_DOOR = 255


class Cell(IntEnum):
    """What stands in a cell."""

    CORRIDOR = 0  # floor with the corridor look
    ROOM = 1  # floor with the episode's room look
    WALL = 2  # solid; its faces wear the look of the floor cell that sees them
    VOID = 3  # solid but invisible: no wall, no floor, only sky
    DOOR_H = 4  # floor with a door slab along x in mid-cell: a north/south passage
    DOOR_I = 5  # floor with a door slab along y in mid-cell: an east/west passage


class Side(IntEnum):
    """The four sides of a cell, and the four ways a wall can face."""

    EAST = 0
    NORTH = 1
    WEST = 2
    SOUTH = 3


class DoorStyle(IntEnum):
    SLAB = 0  # dark ribbed slab; open, it is slid 92 units (H: +x, I: +y) into the wall
    FENCE = 1  # coloured rails and posts one can see through; open, it is gone


class Sprite(IntEnum):
    """What a billboard shows; sizes and heights are in textures.py."""

    NONE = 0
    GOAL = 1
    LOLLY = 2  # the goal of dense-1
    KEY_RED = 3  # the five keys follow in the order of the door colours
    KEY_GREEN = 4
    KEY_BLUE = 5
    KEY_WHITE = 6
    KEY_BLACK = 7
    HAT = 8
    CAN = 9
    CAKE = 10
    BALLOON = 11


class Theme(NamedTuple):
    """How all levels of a task are laid out in space; plain numbers."""

    origin: tuple[float, float] = (0.0, 0.0)  # the outer corner of cell [0, 0]
    cell: tuple[float, float] = (100.0, 100.0)  # a cell's extent along x and y
    wall_height: float = 100.0  # above the floor; the eye is 50 above the floor
    ceiling: bool = False  # a flat light-blue ceiling at wall_height instead of the sky
    door_style: DoorStyle = DoorStyle.SLAB


class Stage(NamedTuple):
    """The levels of a pool, on the device; never changes while a world lives."""

    cells: Tensor  # (L, H, W) uint8, Cell
    doors: Tensor  # (L, H, W) uint8, index of the door in a door cell, else NO_DOOR
    door_colours: Tensor  # (L, D) uint8, red green blue white black; D >= 1
    decals: Tensor  # (L, H, W, 4) uint8: on the wall a floor cell sees on each Side, 0 = none


class Scene(NamedTuple):
    """N frames: everything that changes."""

    level: Tensor  # (N,) int64, index into the stage
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
