"""The maze generator: invariants over many mazes, and DeepMind Lab's statistics."""

import random

import numpy as np
import pytest
import torch

from episodic_curiosity.support import randomness
from episodic_curiosity.worlds.lab.elements import CellKind
from episodic_curiosity.worlds.lab.text import Mazes, from_text
from episodic_curiosity.worlds.maze.levels import draws
from episodic_curiosity.worlds.maze.levels.layouts import (
    MazeLayout,
    carve_corridors,
    draw_mazes,
)
from episodic_curiosity.worlds.maze.levels.paths import path_lengths
from episodic_curiosity.worlds.maze.levels.simplify import (
    num_open_neighbours,
    without_bends,
    without_dead_ends,
)

LAYOUTS = {
    "paper": MazeLayout(doors=True),
    "rooms of two sizes": MazeLayout(
        height=11, width=15, max_rooms=4, room_max=5, goals_per_room=3, doors=True
    ),
    "demo": MazeLayout(height=9, width=9, max_rooms=3, doors=True),
}


@pytest.fixture(scope="module", params=LAYOUTS)
def layout(request: pytest.FixtureRequest) -> MazeLayout:
    return LAYOUTS[request.param]


@pytest.fixture(scope="module")
def mazes(layout: MazeLayout) -> Mazes:
    return draw_mazes(layout, draws.random_bits(7, np.arange(500)))


def is_door(mazes: Mazes) -> np.ndarray:
    return (mazes.cells == CellKind.DOOR_H) | (mazes.cells == CellKind.DOOR_I)


def test_numpy_draws_the_numbers_of_torch():
    counters = (-3, torch.arange(50)[:, None], torch.tensor([0, 1, 2**31, 2**32 - 1]))
    ours = draws.random_bits(*(c if isinstance(c, int) else c.numpy() for c in counters))
    assert np.array_equal(ours, randomness.random_bits(*counters).numpy())
    below = draws.random_below(1000, 5, np.arange(50))
    assert np.array_equal(below, randomness.random_below(1000, 5, torch.arange(50)).numpy())


def test_every_maze_is_one_piece_inside_a_wall(mazes: Mazes):
    border = np.ones(mazes.cells.shape[1:], bool)
    border[1:-1, 1:-1] = False
    assert (mazes.cells[:, border] == CellKind.WALL).all()

    passable = mazes.cells != CellKind.WALL
    first_spawn = mazes.spawn.reshape(len(passable), -1).argmax(axis=1)
    everywhere = np.tile(np.arange(border.size), (len(passable), 1))
    length = path_lengths(passable, first_spawn[:, None], everywhere)[:, 0]
    assert np.array_equal(length < 255, passable.reshape(len(passable), -1))


def test_no_corridor_is_a_dead_end(mazes: Mazes):
    corridor = mazes.cells == CellKind.CORRIDOR
    assert (num_open_neighbours(mazes.cells != CellKind.WALL)[corridor] >= 2).all()


def test_doors_stand_in_walls_between_regions(mazes: Mazes):
    """A door has wall beside it, floor on either side, and a room on at least one."""
    for kind, axis in ((CellKind.DOOR_H, 1), (CellKind.DOOR_I, 2)):
        level, y, x = np.nonzero(mazes.cells == kind)
        dy, dx = (1, 0) if axis == 1 else (0, 1)
        before, after = mazes.cells[level, y - dy, x - dx], mazes.cells[level, y + dy, x + dx]
        floor = (CellKind.CORRIDOR, CellKind.ROOM)
        assert len(level) > 0
        assert (np.isin(before, floor) & np.isin(after, floor)).all()
        assert ((before == CellKind.ROOM) | (after == CellKind.ROOM)).all()
        assert (mazes.cells[level, y - dx, x - dy] == CellKind.WALL).all()
        assert (mazes.cells[level, y + dx, x + dy] == CellKind.WALL).all()


def test_two_regions_share_one_door(mazes: Mazes):
    for cells in mazes.cells[:50]:
        region = label_regions((cells == CellKind.ROOM) | (cells == CellKind.CORRIDOR))
        pairs = [
            tuple(sorted((region[y - dy, x - dx], region[y + dy, x + dx])))
            for kind, dy, dx in ((CellKind.DOOR_H, 1, 0), (CellKind.DOOR_I, 0, 1))
            for y, x in zip(*np.nonzero(cells == kind), strict=True)
        ]
        assert all(a != b for a, b in pairs)
        # Simplifying cuts a corridor in pieces at most: it never adds a second door.
        assert len(set(pairs)) == len(pairs)


def label_regions(floor: np.ndarray) -> np.ndarray:
    region = np.zeros(floor.shape, int)
    for y, x in zip(*np.nonzero(floor), strict=True):
        if region[y, x]:
            continue
        number, todo = region.max() + 1, [(y, x)]
        while todo:
            y, x = todo.pop()
            if floor[y, x] and not region[y, x]:
                region[y, x] = number
                todo += [(y + 1, x), (y - 1, x), (y, x + 1), (y, x - 1)]
    return region


def test_nine_rooms_hold_45_spawns_and_36_goals():
    mazes = draw_mazes(MazeLayout(), draws.random_bits(np.arange(300)))
    assert (mazes.spawn.sum(axis=(1, 2)) == 45).all()
    assert (mazes.goal.sum(axis=(1, 2)) == 36).all()
    assert np.array_equal(mazes.spawn | mazes.goal, mazes.cells == CellKind.ROOM)
    assert not (mazes.spawn & mazes.goal).any()
    assert not is_door(mazes).any()


def test_each_room_has_its_own_share(mazes: Mazes, layout: MazeLayout):
    for cells, spawn, goal in list(zip(*mazes, strict=True))[:50]:
        region = label_regions(cells == CellKind.ROOM)
        assert 1 <= region.max() <= layout.max_rooms
        for number in range(1, region.max() + 1):
            room = region == number
            height, width = np.ptp(np.nonzero(room), axis=1) + 1
            assert room.sum() == height * width
            assert {height, width} <= set(range(layout.room_min, layout.room_max + 1, 2))
            assert spawn[room].sum() == layout.spawns_per_room
            left = height * width - layout.spawns_per_room
            assert goal[room].sum() == min(layout.goals_per_room, left)


def test_a_maze_depends_on_its_key_alone(layout: MazeLayout, mazes: Mazes):
    keys = draws.random_bits(7, np.arange(500))
    some = [3, 499, 41]
    alone = draw_mazes(layout, keys[some])
    for part, whole in zip(alone, mazes, strict=True):
        assert np.array_equal(part, whole[some])
    if layout.height == 17:
        assert len({cells.tobytes() for cells in mazes.cells}) == 500


def one_depth_first_maze(side: int, chance: random.Random) -> np.ndarray:
    """The maze of the text books, by recursion, on the odd cells of a square: its floor."""
    floor = np.zeros((side, side), bool)

    def visit(y: int, x: int) -> None:
        floor[y, x] = True
        steps = [(0, 1), (1, 0), (0, -1), (-1, 0)]
        chance.shuffle(steps)
        for dy, dx in steps:
            far_y, far_x = y + 2 * dy, x + 2 * dx
            if 0 < far_y < side and 0 < far_x < side and not floor[far_y, far_x]:
                floor[y + dy, x + dx] = True
                visit(far_y, far_x)

    visit(1, 1)
    return floor


def test_corridors_are_depth_first_mazes():
    num_mazes, side = 200, 17
    ground = np.zeros((num_mazes, side, side), np.int64)
    ours = carve_corridors(ground, draws.random_bits(np.arange(num_mazes))) > 0
    chance = random.Random(0)
    theirs = np.stack([one_depth_first_maze(side, chance) for _ in range(num_mazes)])
    assert (ours.sum(axis=(1, 2)) == 2 * 8 * 8 - 1).all()  # a tree over 8 x 8 cells
    dead_ends, expected = (
        (floor & (num_open_neighbours(floor) == 1)).sum(axis=(1, 2)).mean()
        for floor in (ours, theirs)
    )
    assert dead_ends == pytest.approx(expected, rel=0.05)
    assert ours.mean(axis=0) == pytest.approx(theirs.mean(axis=0), abs=0.2)


def drawing(text: str, turns: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Corridors (spaces) and what else is open (letters and +), with a leading axis of one."""
    characters = np.array([list(line) for line in text.strip("\n").split("\n")])[None]
    characters = np.rot90(characters, turns, axes=(1, 2))
    return characters == " ", (characters != " ") & (characters != "*")


DEAD_ENDS = (
    """
*********
*A+     *
*** *** *
*   ***B*
* *******
*   *****
*********
""",
    """
*********
*A+     *
******* *
*******B*
*********
*********
*********
""",
)
DEEP_BEND = (
    """
***********
*A+ *     *
*** * *** *
*** * ***B*
*** * *****
***   *****
***********
""",
    """
***********
*A+       *
********* *
*********B*
***********
***********
***********
""",
)
WIDE_BEND = (
    """
***********
*A+ *** +B*
*** *** ***
***     ***
***********
""",
    """
***********
*A+     +B*
***********
***********
***********
""",
)
BEND_THAT_LEADS_ON = (
    """
***********
*A+ *** +B*
*** *** ***
***     ***
*****C*****
""",
) * 2


@pytest.mark.parametrize("turns", range(4))
@pytest.mark.parametrize("case", [DEAD_ENDS, DEEP_BEND, WIDE_BEND, BEND_THAT_LEADS_ON])
def test_corridors_are_simplified(case: tuple[str, str], turns: int):
    corridor, others = drawing(case[0], turns)
    alive = without_dead_ends(corridor, others)
    assert np.array_equal(alive, corridor) == (case is not DEAD_ENDS)
    assert np.array_equal(without_bends(alive, others), drawing(case[1], turns)[0])


def labmaze_texts(*, simplify: bool, num_mazes: int) -> list[str]:
    labmaze = pytest.importorskip("labmaze", reason="labmaze has no wheel for this Python")
    return [
        str(
            labmaze.RandomMaze(
                height=17,
                width=17,
                max_rooms=9,
                room_min_size=3,
                room_max_size=3,
                retry_count=1000,
                extra_connection_probability=0.0,
                has_doors=True,
                simplify=simplify,
                spawns_per_room=5,
                objects_per_room=5,
                random_seed=seed,
            ).entity_layer
        )
        for seed in range(1, num_mazes + 1)
    ]


def statistics(mazes: Mazes) -> dict[str, float]:
    passable = mazes.cells != CellKind.WALL
    places = [
        np.nonzero(mask.reshape(len(mask), -1))[1].reshape(len(mask), -1)
        for mask in (mazes.goal, mazes.spawn)
    ]
    return {
        "free cells": passable.sum(axis=(1, 2)).mean(),
        "doors": is_door(mazes).sum(axis=(1, 2)).mean(),
        "path length": path_lengths(passable, *places).mean(),
    }


def test_mazes_are_like_those_of_deepmind_lab():
    theirs = [from_text(text) for text in labmaze_texts(simplify=True, num_mazes=1000)]
    expected = statistics(Mazes(*(np.concatenate(part) for part in zip(*theirs, strict=True))))
    ours = statistics(draw_mazes(MazeLayout(doors=True), draws.random_bits(np.arange(1000))))
    print(f"free cells, doors, path length: Lab's {expected}, ours {ours}")
    assert ours == pytest.approx(expected, rel=0.03)


def test_mazes_are_simplified_as_in_deepmind_lab():
    """Nearly all come out alike; where a maze has two bends, Lab may leave the second."""
    num_mazes = 200
    before = [from_text(text) for text in labmaze_texts(simplify=False, num_mazes=num_mazes)]
    after = [from_text(text) for text in labmaze_texts(simplify=True, num_mazes=num_mazes)]
    cells, wanted = (
        np.concatenate([maze.cells for maze in mazes]) for mazes in (before, after)
    )
    corridor, others = cells == CellKind.CORRIDOR, cells != CellKind.WALL
    others &= ~corridor
    corridor = without_bends(without_dead_ends(corridor, others), others)
    same = (corridor == (wanted == CellKind.CORRIDOR)).all(axis=(1, 2))
    print(f"{same.mean():.1%} of {num_mazes} mazes are simplified alike")
    assert same.mean() > 0.95


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        ({"height": 16}, "height must be odd, got 16"),
        ({"width": -3}, "width must be a whole number of at least 1, got -3"),
        ({"room_min": 2}, "room_min must be odd, got 2"),
        ({"room_min": 5}, r"room_min must be at most room_max \(3\), got 5"),
        ({"height": 7, "room_max": 7}, "7 x 7 cells does not fit"),
        ({"max_rooms": 0}, "max_rooms must be a whole number of at least 1, got 0"),
        ({"retries": 0}, "retries must be a whole number of at least 1, got 0"),
        ({"spawns_per_room": 9}, "leave a cell for a goal in a room of 3 x 3, got 9"),
        ({"height": 5, "width": 5, "min_goal_distance": 10}, "must be at most 8 in a maze"),
        ({"height": 65}, "a maze must have at most 63 x 63 cells, got 65 x 17"),
        ({"min_goal_distance": -1}, "min_goal_distance must be a whole number .* got -1"),
        ({"max_rooms": 2.5}, r"max_rooms must be a whole number .* got 2\.5"),
        ({"doors": "x"}, "doors must be a bool, got str"),
    ],
)
def test_an_impossible_layout_is_refused(request_: dict[str, int], message: str):
    with pytest.raises((ValueError, TypeError), match=message):
        MazeLayout(**request_)
