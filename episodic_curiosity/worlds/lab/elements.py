"""What levels are made of, whoever draws them.

Coordinates are DeepMind Lab's: x east, y north, z up; a text maze's cell is 100 units wide
and row 0 of its text is the north edge, so arrays are stored south first: [y, x].
"""

from enum import IntEnum
from typing import NamedTuple

Colour = tuple[float, float, float]
NO_DOOR = 255
COLOURS: tuple[Colour, ...] = (  # of keys and fences
    (222, 36, 36),
    (44, 190, 60),
    (48, 84, 236),
    (240, 240, 240),
    (34, 34, 38),
)


class CellKind(IntEnum):
    """What stands in a cell."""

    CORRIDOR = 0  # floor with the corridor look
    ROOM = 1  # floor with the episode's room look
    WALL = 2  # solid; its faces wear the look of the floor cell that sees them
    VOID = 3  # solid but invisible: no wall, no floor, only sky
    DOOR_H = 4  # floor with a door slab along x in mid-cell: a north/south passage
    DOOR_I = 5  # floor with a door slab along y in mid-cell: an east/west passage


class DoorStyle(IntEnum):
    SLAB = 0  # dark ribbed slab; open, it is slid 92 units (H: +x, I: +y) into the wall
    FENCE = 1  # coloured rails and posts one can see through; open, it is gone


class Sprite(IntEnum):
    """What a billboard shows; sizes and heights are in maze/render/textures.py."""

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


TEXT_MAZE = Theme()
