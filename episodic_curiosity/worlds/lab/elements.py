"""The elements of a level: cells, doors, sprites and their coordinates.

Coordinates are DeepMind Lab's: x east, y north, z up. A cell of a text maze is 100 units wide.
The first line of its text is the north edge; arrays are stored south first, [y, x].
"""

from enum import IntEnum
from typing import NamedTuple

Colour = tuple[float, float, float]
NO_DOOR = 255
COLOURS: tuple[Colour, ...] = (  # of keys and fences; green, blue, black as measured in Lab
    (236, 0, 0),
    (0, 241, 0),
    (0, 0, 231),
    (236, 236, 236),
    (0, 0, 0),
)


class CellKind(IntEnum):
    """The kind of a cell."""

    CORRIDOR = 0  # floor with the corridor look
    ROOM = 1  # floor with the episode's room look
    WALL = 2  # solid; a face has the look of the floor cell in front of it
    VOID = 3  # solid but invisible: no wall, no floor, only sky
    DOOR_H = 4  # floor with a door slab along x through its centre: a north/south passage
    DOOR_I = 5  # floor with a door slab along y through its centre: an east/west passage


class DoorStyle(IntEnum):
    SLAB = 0  # dark ribbed slab; opens by sliding 92 units (H: +x, I: +y) into the wall
    FENCE = 1  # coloured, see-through rails and posts; opens like a slab


class Sprite(IntEnum):
    """The image on a billboard; sizes and heights are in maze/render/textures.py."""

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
    """The geometry shared by all levels of a task, in units."""

    origin: tuple[float, float] = (0.0, 0.0)  # the outer corner of cell [0, 0]
    cell: tuple[float, float] = (100.0, 100.0)  # extent of a cell along x and y
    wall_height: float = 100.0  # above the floor; the eye is 50 above the floor
    ceiling: bool = False  # a flat light-blue ceiling at wall_height instead of the sky
    door_style: DoorStyle = DoorStyle.SLAB


TEXT_MAZE = Theme()
