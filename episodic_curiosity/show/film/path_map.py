"""A map of the agent's path, for worlds without a map; north is up.

Shapes: h x h pixels.
"""

import math
from dataclasses import dataclass

import numpy as np
from PIL import Image, ImageDraw

from episodic_curiosity.show.film.episode import Episode
from episodic_curiosity.worlds.base import Picture
from episodic_curiosity.worlds.scenery import Points

Colour = tuple[int, int, int]

FLOOR, GRID, VISITED = (244, 244, 240), (222, 222, 216), (206, 221, 240)
PATH, START, MEMORY, AGENT = (40, 90, 180), (120, 120, 120), (225, 120, 0), (200, 30, 30)
COLOURS = (FLOOR, GRID, VISITED, PATH, START, MEMORY, AGENT)
FINER = 3  # supersampling factor, for smooth lines
LEAST_CELLS = 6  # minimum cells per side, so that standing still looks like it
MOST_CELLS = 60  # maximum cells per side with grid lines; more would be grey all over


@dataclass(frozen=True)
class PathMap:
    """The map of one episode; its bounds fit the complete path and do not move."""

    episode: Episode
    cell: float  # side of a Grid-Oracle cell, in units of the world
    height: int  # side of the map, in pixels

    def draw(self, step: int) -> Picture:
        """The path up to a step, the cells covered and the memories, as (h, h, 3)."""
        size = self.height * FINER
        canvas = Image.new("RGB", (size, size), FLOOR)
        pen = ImageDraw.Draw(canvas)
        path = self.episode.path(step)
        for column, row in {tuple(cell) for cell in np.trunc(path / self.cell).astype(int)}:
            corners = [_borders(number, self.cell) for number in (column, row)]
            (left, low), (right, high) = self._pixels(np.array(corners, np.float32).T)
            pen.rectangle((left, high, right, low), VISITED)
        self._draw_grid(pen, size)
        line = [tuple(place) for place in self._pixels(path)]
        if len(line) > 1:
            pen.line(line, PATH, 2 * FINER, joint="curve")
        for place in self._pixels(self.episode.memories(step)):
            _disc(pen, place, 3.0, None, MEMORY)
        _disc(pen, line[0], 3.0, START)
        _disc(pen, line[-1], 5.0, AGENT, FLOOR)
        return np.asarray(canvas.reduce(FINER))

    @property
    def _frame(self) -> tuple[Points, float]:
        """The south-west corner (2,) and the side of the map, in units of the world."""
        path = self.episode.path(self.episode.num_steps)
        low, high = path.min(axis=0), path.max(axis=0)
        side = max(float((high - low).max()) + 2 * self.cell, LEAST_CELLS * self.cell)
        return (low + high - side) / 2, side

    def _pixels(self, places: Points) -> Points:
        """Canvas coordinates of places (places, 2)."""
        corner, side = self._frame
        share = (places - corner) / side
        share[:, 1] = 1 - share[:, 1]
        return share * np.float32(self.height * FINER)

    def _draw_grid(self, pen: ImageDraw.ImageDraw, size: int) -> None:
        corner, side = self._frame
        if side > MOST_CELLS * self.cell:
            return
        for axis in range(2):
            first = math.ceil(float(corner[axis]) / self.cell)
            for number in range(first, first + math.ceil(side / self.cell)):
                if number == 0:  # coordinates are truncated toward zero: no border at 0
                    continue
                place = np.full((1, 2), number * self.cell, np.float32)
                at = float(self._pixels(place)[0, axis])
                ends = ((at, 0), (at, size)) if axis == 0 else ((0, at), (size, at))
                pen.line(ends, GRID, FINER)


def _borders(number: int, cell: float) -> tuple[float, float]:
    """The bounds of a Grid-Oracle cell; cell 0 is twice as wide."""
    return (number if number > 0 else number - 1) * cell, (
        number + 1 if number >= 0 else number
    ) * cell


def _disc(
    pen: ImageDraw.ImageDraw,
    place: Points | tuple[float, ...],
    radius: float,
    fill: Colour | None,
    outline: Colour | None = None,
) -> None:
    x, y = (float(part) for part in place)
    reach = radius * FINER
    box = (x - reach, y - reach, x + reach, y + reach)
    pen.ellipse(box, fill, outline, math.ceil(1.5 * FINER))
