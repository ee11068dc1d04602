"""Overhead maps of levels, for reports: RGB arrays, north at the top.

Shapes: H x W cells, p pixels per cell, T positions of a trajectory, M positions in memory.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from episodic_curiosity.worlds.base import Picture
from episodic_curiosity.worlds.lab.elements import COLOURS, CellKind, Colour, Sprite, Theme

Points = NDArray[np.float32]

CELL_COLOURS: tuple[Colour, ...] = (
    (222, 160, 70),  # CORRIDOR
    (176, 190, 205),  # ROOM
    (58, 84, 56),  # WALL
    (150, 208, 255),  # VOID
    (222, 160, 70),  # DOOR_H
    (222, 160, 70),  # DOOR_I
)
SLAB_COLOUR: Colour = (46, 46, 54)
ITEM_COLOURS: dict[int, Colour] = {
    Sprite.GOAL: (230, 30, 30),
    Sprite.LOLLY: (255, 130, 20),
    Sprite.HAT: (48, 92, 220),
    Sprite.CAN: (236, 204, 36),
    Sprite.CAKE: (126, 226, 186),
    Sprite.BALLOON: (246, 96, 168),
} | {Sprite.KEY_RED + number: colour for number, colour in enumerate(COLOURS)}
EARLY, LATE = np.array([40.0, 60.0, 200.0]), np.array([250.0, 240.0, 60.0])
MEMORY_COLOUR: Colour = (255, 255, 255)
AGENT_COLOUR: Colour = (20, 20, 20)


class FloorPlan(NamedTuple):
    """The map of one level, stored south first: [y, x]."""

    cells: NDArray[np.uint8]  # (H, W) CellKind
    doors: NDArray[np.uint8]  # (H, W) index of the door in a door cell
    door_colours: NDArray[np.uint8] | None = None  # (D,) if doors are coloured fences
    open_doors: int = 0  # bit mask: bit d is set if door d is open


def draw_overhead(
    theme: Theme,
    level: FloorPlan,
    *,
    pixels_per_cell: int = 16,
    items: Sequence[tuple[int, float, float]] = (),
    trajectory: Points | None = None,
    trail_colours: Points | None = None,
    memory: Points | None = None,
    agent: tuple[float, float, float] | None = None,
    mark_size: float = 1.0,
) -> Picture:
    """Draws a level as (H p, W p, 3) bytes.

    Items are (sprite, x, y) and the agent is (x, y, yaw). The trajectory (T, 2) turns from blue
    to yellow, or has `trail_colours` (T, 3); memory positions (M, 2) are white rings.
    `mark_size` scales all but the items.
    """
    if pixels_per_cell < 4:
        raise ValueError(f"pixels_per_cell must be at least 4, got {pixels_per_cell}")
    canvas = _Canvas(theme, level.cells.shape, pixels_per_cell)
    canvas.paint_cells(level)
    for y, x in np.argwhere(
        (level.cells == CellKind.DOOR_H) | (level.cells == CellKind.DOOR_I)
    ):
        canvas.paint_door(level, int(x), int(y))
    if trajectory is not None and len(trajectory):
        if trail_colours is None:
            trail_colours = EARLY + (LATE - EARLY) * np.linspace(0, 1, len(trajectory))[:, None]
        for place, colour in zip(trajectory, trail_colours, strict=True):
            canvas.disc(place, 0.07 * mark_size, colour)
    for sprite, x, y in items:
        if sprite != Sprite.NONE:
            canvas.disc((x, y), 0.3, (0, 0, 0))
            canvas.disc((x, y), 0.24, ITEM_COLOURS[sprite])
    for place in memory if memory is not None else ():
        canvas.disc(place, 0.14 * mark_size, MEMORY_COLOUR, hole=0.08 * mark_size)
    if agent is not None:
        canvas.arrow(*agent, mark_size)
    return canvas.pixels[::-1].copy()


class _Canvas:
    """Pixels stored south first, with the mapping from world coordinates."""

    def __init__(self, theme: Theme, shape: tuple[int, ...], pixels_per_cell: int) -> None:
        height, width = shape
        self.scale = pixels_per_cell
        self.origin, self.cell = np.array(theme.origin), np.array(theme.cell)
        self.pixels = np.zeros((height * pixels_per_cell, width * pixels_per_cell, 3), np.uint8)
        # Pixel centres, in cells.
        self.y, self.x = (
            (np.arange(size) + 0.5) / pixels_per_cell for size in self.pixels.shape[:2]
        )

    def paint_cells(self, level: FloorPlan) -> None:
        cells = level.cells.repeat(self.scale, 0).repeat(self.scale, 1)
        self.pixels[:] = np.array(CELL_COLOURS, np.uint8)[cells]
        # A thin grid makes floor cells countable.
        seam = ((self.y % 1 < 1 / self.scale)[:, None]) | (self.x % 1 < 1 / self.scale)
        floor = (cells != CellKind.WALL) & (cells != CellKind.VOID)
        self.pixels[seam & floor] = (self.pixels[seam & floor] * 0.88).astype(np.uint8)

    def paint_door(self, level: FloorPlan, x: int, y: int) -> None:
        door = int(level.doors[y, x])
        colour, begin = SLAB_COLOUR, 0.0
        is_open = level.open_doors >> door & 1
        if level.door_colours is not None:
            colour = COLOURS[level.door_colours[door]]
            if is_open:
                return
        elif is_open:
            begin = 0.85
        along, across = (self.x - x, self.y - y)
        if level.cells[y, x] == CellKind.DOOR_I:
            along, across = across, along
        inside = (along >= begin) & (along < 1)
        middle = np.abs(across - 0.5) <= max(0.08, 0.6 / self.scale)
        if level.cells[y, x] == CellKind.DOOR_I:
            self.pixels[inside[:, None] & middle] = colour
        else:
            self.pixels[middle[:, None] & inside] = colour

    def disc(
        self,
        place: Sequence[float] | NDArray[np.floating],
        radius: float,
        colour: Colour | NDArray[np.floating],
        hole: float = -1.0,
    ) -> None:
        """Draws a disc at world coordinates; the radius is in cells, at least one pixel."""
        x, y = (np.asarray(place)[:2] - self.origin) / self.cell
        radius = max(radius, 0.7 / self.scale)
        # Only nearby pixels are tested: a long trajectory has thousands of discs.
        rows, columns = self._around(y, radius), self._around(x, radius)
        distance = np.hypot(self.x[columns] - x, (self.y[rows] - y)[:, None])
        self.pixels[rows, columns][(distance <= radius) & (distance > hole)] = colour

    def _around(self, middle: float, radius: float) -> slice:
        """Pixels within a radius of a centre along one axis, both in cells."""
        first, last = (middle - radius) * self.scale, (middle + radius) * self.scale
        return slice(max(0, math.floor(first)), max(0, math.ceil(last)))

    def arrow(self, x: float, y: float, yaw: float, mark_size: float) -> None:
        """Draws the agent as a triangle that points along its yaw."""
        heading = np.radians(yaw)
        east, north = ((x, y) - self.origin) / self.cell
        right, up = self.x - east, (self.y - north)[:, None]
        ahead = right * np.cos(heading) + up * np.sin(heading)
        aside = np.abs(right * np.sin(heading) - up * np.cos(heading))
        for share, colour in ((0.5, (255, 255, 255)), (0.4, AGENT_COLOUR)):
            size = share * mark_size
            inside = (ahead > -size * 0.5) & (ahead + 2 * aside < size)
            self.pixels[inside] = colour
