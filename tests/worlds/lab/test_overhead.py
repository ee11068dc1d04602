"""Levels from above."""

import numpy as np
import pytest

from episodic_curiosity.worlds.lab.elements import NO_DOOR, CellKind, Sprite, Theme
from episodic_curiosity.worlds.lab.overhead import CELL_COLOURS, FloorPlan, draw_overhead

CELLS = np.array([[2, 2, 2, 2], [2, 0, 4, 2], [2, 1, 5, 3]], np.uint8)  # south first
DOORS = np.full_like(CELLS, NO_DOOR)
DOORS[1, 2], DOORS[2, 2] = 0, 1
P = 10


def draw(**options: object) -> np.ndarray:
    open_doors = options.pop("open_doors", 0)
    level = FloorPlan(CELLS, DOORS, options.pop("door_colours", None), open_doors)  # type: ignore[arg-type]
    return draw_overhead(Theme(), level, pixels_per_cell=P, **options)  # type: ignore[arg-type]


def middle(picture: np.ndarray, x: float, y: float) -> list[int]:
    """The pixel at a place of the world."""
    return picture[len(picture) - 1 - int(y / 100 * P), int(x / 100 * P)].tolist()


def test_cells_lie_where_the_world_has_them_with_north_at_the_top() -> None:
    picture = draw()
    assert picture.shape == (30, 40, 3)
    for y, x in ((0, 0), (1, 1), (2, 1), (2, 3)):
        assert middle(picture, 100 * x + 50, 100 * y + 50) == list(CELL_COLOURS[CELLS[y, x]])
    assert middle(picture, 150, 250) == list(CELL_COLOURS[CellKind.ROOM])


def test_doors_lie_across_their_passage_and_open() -> None:
    floor = list(CELL_COLOURS[CellKind.CORRIDOR])
    shut, opened = draw(), draw(open_doors=0b11)
    for x, y in ((220, 150), (280, 150), (250, 220), (250, 280)):
        assert middle(shut, x, y) != floor
    assert middle(shut, 250, 125) == middle(shut, 225, 250) == floor
    assert middle(opened, 230, 150) == middle(opened, 250, 230) == floor
    assert middle(opened, 295, 150) != floor  # H slides east
    assert middle(opened, 250, 295) != floor  # I slides north
    fences = draw(door_colours=np.array([0, 2], np.uint8))
    assert middle(fences, 250, 150)[0] > 200
    assert middle(fences, 250, 250)[2] > 200


def test_items_trajectory_memory_and_agent_are_drawn_in_place() -> None:
    walk = np.array([[115.0, 150.0], [150.0, 150.0], [185.0, 150.0]], np.float32)
    picture = draw(trajectory=walk)
    assert middle(picture, 115, 150) == [40, 60, 200]
    assert middle(picture, 185, 150) == [250, 240, 60]
    assert middle(draw(items=[(Sprite.GOAL, 150.0, 250.0)]), 150, 250) == [230, 30, 30]
    assert np.array_equal(draw(items=[(Sprite.NONE, 150.0, 250.0)]), draw())
    assert (draw(memory=walk[:1]) == 255).all(-1).any()
    east, west = draw(agent=(150.0, 150.0, 0.0)), draw(agent=(150.0, 150.0, 180.0))
    assert middle(east, 175, 150) == [20, 20, 20] != middle(west, 175, 150)
    assert middle(west, 125, 150) == [20, 20, 20]


def test_marks_can_be_drawn_larger_and_may_reach_over_the_edge() -> None:
    place = np.array([[150.0, 150.0]], np.float32)
    small, large = (draw(trajectory=place, mark_size=size) for size in (1.0, 3.0))
    assert middle(large, 165, 150) == [40, 60, 200] != middle(small, 165, 150)
    beyond = np.array([[-5.0, 150.0], [900.0, 150.0]], np.float32)
    assert not np.array_equal(draw(trajectory=beyond, mark_size=3.0), draw())
    assert np.array_equal(draw(trajectory=beyond[1:]), draw())


def test_too_small_a_drawing_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 4"):
        draw_overhead(Theme(), FloorPlan(CELLS, DOORS), pixels_per_cell=3)
