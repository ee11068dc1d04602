"""The camera above a maze."""

from typing import Any, Protocol

from episodic_curiosity.worlds.base import Picture, Step
from episodic_curiosity.worlds.scenery import Camera, EpisodePath

SMALLEST_CELL = 4  # minimum side of a maze cell from above, in pixels
MARKED_CELL = 20  # pixels; marks do not shrink below their size in such a cell


class _WithMap(Protocol):
    def overhead(self, *, pixels_per_cell: int, **marks: Any) -> Picture:
        """See draw_overhead."""


def from_above(maze: _WithMap, height: int) -> Camera:
    """A map of a maze that has been reset."""
    num_cells = len(maze.overhead(pixels_per_cell=SMALLEST_CELL)) // SMALLEST_CELL
    pixels = max(SMALLEST_CELL, height // num_cells)

    def camera(episode: EpisodePath, _: Step) -> Picture:
        return maze.overhead(
            pixels_per_cell=pixels,
            mark_size=max(1.0, MARKED_CELL / pixels),
            trajectory=episode.path(episode.num_steps),
            memory=episode.memories(episode.num_steps),
        )

    return camera
