"""Level pools: what a level holds, that it comes out the same, that its goal is reachable."""

import time

import numpy as np
import pytest

from episodic_curiosity.worlds.base import SPLITS
from episodic_curiosity.worlds.lab.elements import NO_DOOR, CellKind
from episodic_curiosity.worlds.lab.text import from_text
from episodic_curiosity.worlds.maze.levels import paths
from episodic_curiosity.worlds.maze.levels.draws import random_bits
from episodic_curiosity.worlds.maze.levels.layouts import MazeLayout
from episodic_curiosity.worlds.maze.levels.pool import (
    NUM_STARTS,
    ROOM_THEME,
    draw_decals,
    level_keys,
    make_pool,
    pool_from_text,
    room_pool,
)
from episodic_curiosity.worlds.maze.levels.puzzles import PuzzleLayout
from episodic_curiosity.worlds.maze.levels.stored import LevelPool
from episodic_curiosity.worlds.maze.render.scene import Side

TWO_WAYS = """
*********
*P I   G*
*H*** ***
*   * * *
*** I   *
***P*****
*********
"""  # from G to the upper P: straight on, or a long way round


@pytest.fixture(scope="module")
def door_pool() -> LevelPool:
    return make_pool(MazeLayout(doors=True), num_levels=200, seed=3, split="train")


def test_path_lengths_by_hand():
    maze = from_text(
        """
******
*PG* *
* ** *
*   P*
******
"""
    )
    goals = np.array([[3 * 6 + 2, -1]])
    spawns = np.array([[3 * 6 + 1, 1 * 6 + 4, 3 * 6 + 2, -1, 0]])
    length = paths.path_lengths(maze.cells != CellKind.WALL, goals, spawns)
    assert length.tolist() == [[[1, 6, 0, 255, 255], [255] * 5]]


def test_path_lengths_for_more_goals_than_an_integer_has_bits():
    passable = np.zeros((1, 3, 102), bool)
    passable[0, 1, 1:-1] = True
    cells = 102 + np.arange(1, 101)[None]
    length = paths.path_lengths(passable, cells, cells)
    assert np.array_equal(length[0], np.abs(np.arange(100)[:, None] - np.arange(100)))


def test_long_paths_are_cut_at_254():
    passable = np.zeros((1, 3, 302), bool)
    passable[0, 1, 1:-1] = True
    length = paths.path_lengths(passable, np.array([[303]]), np.array([[303 + 200, 303 + 299]]))
    assert length.tolist() == [[[200, 254]]]


@pytest.mark.parametrize(
    "layout", [MazeLayout(), MazeLayout(height=9, width=9, doors=True), PuzzleLayout()]
)
def test_a_level_is_the_same_in_every_pool(layout: MazeLayout | PuzzleLayout):
    small = make_pool(layout, num_levels=9, seed=1, split="test")
    large = make_pool(layout, num_levels=600, seed=1, split="test")
    for few, many in zip(small, large, strict=True):
        assert few.dtype == many.dtype
        assert np.array_equal(few, many[:9])
    other = make_pool(layout, num_levels=9, seed=2, split="test")
    assert not np.array_equal(small.cells, other.cells)


def test_splits_have_no_level_in_common():
    for number, split in enumerate(SPLITS):
        for seed in (0, 1, 2**40):
            keys = level_keys(seed, split, 5000)
            assert (keys >> 30 == number).all()  # so no key is in two splits
            assert len(np.unique(keys)) > 4990
    pools = [make_pool(MazeLayout(), num_levels=50, seed=0, split=split) for split in SPLITS]
    assert len({cells.tobytes() for pool in pools for cells in pool.cells}) == 200


def test_a_pool_for_training_is_made_quickly():
    begin = time.process_time()  # other processes may be using the machine
    make_pool(MazeLayout(doors=True), num_levels=500, seed=0, split="train")
    assert time.process_time() - begin < 5.0  # it takes 0.3


def test_spawns_and_goals_are_those_of_the_maze():
    pool = make_pool(MazeLayout(), num_levels=20, seed=0, split="train")
    assert pool.spawns.shape == (20, 45)
    assert pool.goals.shape == (20, 36)
    assert pool.distance.shape == (20, 36, 45)
    for cells, spawns, goals in zip(pool.cells, pool.spawns, pool.goals, strict=True):
        rooms = np.flatnonzero(cells == CellKind.ROOM)
        assert sorted([*spawns, *goals]) == rooms.tolist()
    assert pool.distance.min() >= 1
    assert pool.distance.max() < 255
    assert pool.starts.shape == pool.start_doors.shape == (20, 0)
    assert (pool.doors == NO_DOOR).all()


def test_goals_without_a_distant_spawn_are_left_out():
    small = MazeLayout(height=9, width=9, max_rooms=3)
    near = make_pool(small, num_levels=300, seed=0, split="train")
    far = make_pool(
        MazeLayout(height=9, width=9, max_rooms=3, min_goal_distance=8),
        num_levels=300,
        seed=0,
        split="train",
    )
    used = far.goals >= 0
    assert used[:, 0].all()
    assert (np.diff(used.astype(int), axis=1) <= 0).all()  # padding stands last
    assert used.mean() < 0.9 * (near.goals >= 0).mean()
    longest = np.where(far.distance == 255, 0, far.distance).max(axis=2)
    assert (longest[used] >= 8).all()
    assert (far.distance[~used] == 255).all()
    # A level that needed no second draw is the same level.
    same = (near.cells == far.cells).all(axis=(1, 2))
    assert 0.05 < same.mean() < 0.95


@pytest.mark.parametrize("num_levels", [1, 1000])
def test_a_path_no_maze_has_is_refused(num_levels: int):
    layout = MazeLayout(min_goal_distance=80)
    with pytest.raises(ValueError, match="one maze in 100 has a goal 80 cells or more from"):
        make_pool(layout, num_levels=num_levels, seed=0, split="train")


def test_unknown_requests_are_refused():
    with pytest.raises(
        ValueError, match=r"split must be one of r-network, train, .*, got 'dev'"
    ):
        make_pool(MazeLayout(), num_levels=3, seed=0, split="dev")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="num_levels must be an integer of at least 1, got 0"):
        make_pool(MazeLayout(), num_levels=0, seed=0, split="train")
    many_rooms = MazeLayout(height=41, width=41, max_rooms=60, doors=True)
    with pytest.raises(ValueError, match="a level has at most 63 doors"):
        make_pool(many_rooms, num_levels=1, seed=0, split="train")


def test_doors_are_numbered(door_pool: LevelPool):
    is_door = door_pool.cells >= CellKind.DOOR_H
    assert np.array_equal(is_door, door_pool.doors != NO_DOOR)
    for doors in door_pool.doors:
        numbers = doors[doors != NO_DOOR]
        assert sorted(numbers) == list(range(len(numbers)))
    assert door_pool.door_colours.shape[1] > door_pool.doors[is_door].max()


def test_the_goal_is_reached_through_open_doors(door_pool: LevelPool):
    num_levels, num_starts = door_pool.starts.shape
    assert num_starts == NUM_STARTS
    assert door_pool.goals.shape == (num_levels, 1)
    number = np.where(door_pool.doors == NO_DOOR, 63, door_pool.doors).astype(np.int64)
    for start in range(num_starts):
        is_open = (door_pool.start_doors[:, start, None, None] >> number) & 1 == 1
        passable = (door_pool.cells != CellKind.WALL) & (is_open | (door_pool.doors == NO_DOOR))
        length = paths.path_lengths(passable, door_pool.goals, door_pool.starts[:, start, None])
        assert (length < 255).all()
    spawns = [set(row) for row in door_pool.spawns]
    assert all(set(row) <= spawns[level] for level, row in enumerate(door_pool.starts))
    assert len({len(set(row)) for row in door_pool.starts}) > 1  # drawn, not dealt out


def test_about_half_of_the_other_doors_are_open(door_pool: LevelPool):
    number = np.arange(63)
    num_open = (door_pool.start_doors[..., None] >> number & 1).sum(axis=2)
    num_doors = (door_pool.doors != NO_DOOR).sum(axis=(1, 2))[:, None]
    assert (num_open >= num_doors // 2).all()
    assert (num_open < num_doors).any(axis=1).all()
    assert 0.5 < (num_open / num_doors).mean() < 0.85


def test_exactly_half_of_the_closed_doors_open():
    keys = random_bits(np.arange(4000))
    opened = np.tile([[0b00011, 0b10000]], (4000, 1))
    also = paths.open_half_of_the_rest(opened, np.full(4000, 5), keys)
    bits = also[..., None] >> np.arange(5) & 1  # (4000, 2, 5)
    assert (bits[:, 0, :2] == 1).all()
    assert (bits[:, 0, 2:].sum(axis=1) == 1).all()  # floor(3 / 2)
    assert bits[:, 0, 2:].mean(axis=0) == pytest.approx([1 / 3] * 3, abs=0.03)
    assert (bits[:, 1, 4] == 1).all()
    assert (bits[:, 1, :4].sum(axis=1) == 2).all()
    assert bits[:, 1, :4].mean(axis=0) == pytest.approx([1 / 2] * 4, abs=0.03)


def test_walks_take_either_way():
    pool = pool_from_text(TWO_WAYS, doors=True)
    assert pool.doors[0, 2, 4] == 0
    assert pool.doors[0, 4, 1] == 1
    assert pool.doors[0, 5, 3] == 2  # the I of the straight way: counted from the south
    upper, lower = 5 * 9 + 1, 1 * 9 + 3
    doors, cells, goals = (
        np.repeat(part, 400, axis=0) for part in (pool.doors, pool.cells, pool.goals)
    )
    starts = np.tile([[upper, lower]], (400, 1))
    keys = random_bits(np.arange(400))
    walks = paths.doors_on_walks(doors, cells != CellKind.WALL, goals[:, 0], starts, keys)
    # To the upper P: door 2 alone, or doors 0 and 1; the first step from G is forced, and at
    # the one crossing either way is as likely.
    assert set(walks[:, 0]) == {0b100, 0b011}
    assert np.mean(walks[:, 0] == 0b100) == pytest.approx(0.5, abs=0.1)
    # To the lower P: door 0 alone, or round through 2 and 1.
    assert set(walks[:, 1]) == {0b001, 0b110}


def test_decals_hang_on_walls_and_differ():
    pool = make_pool(MazeLayout(), num_levels=50, seed=0, split="train")
    step = {Side.EAST: (0, 1), Side.NORTH: (1, 0), Side.WEST: (0, -1), Side.SOUTH: (-1, 0)}
    for cells, decals in zip(pool.cells, pool.decals, strict=True):
        floor = np.argwhere(cells != CellKind.WALL)
        faces = [
            (y, x, side)
            for y, x in floor
            for side, (dy, dx) in step.items()
            if cells[y + dy, x + dx] == CellKind.WALL
        ]
        images = [decals[face] for face in faces if decals[face]]
        assert len(images) == len(set(images)) == int(0.5 + 0.1 * len(faces))
        assert np.count_nonzero(decals) == len(images)
        assert max(images) <= 80
    assert len(np.unique(pool.decals)) == 81


def test_decals_are_at_most_eighty_and_may_be_none():
    cells = np.full((1, 61, 61), CellKind.WALL, np.uint8)
    cells[0, 1:-1:2, 1:-1] = CellKind.CORRIDOR
    assert np.count_nonzero(draw_decals(cells, random_bits([5]))) == 80
    cells = np.full((1, 3, 3), CellKind.WALL, np.uint8)
    cells[0, 1, 1] = CellKind.ROOM
    assert np.count_nonzero(draw_decals(cells, random_bits([5]))) == 0  # 4 faces: 0.9


def test_a_level_of_ones_own():
    text = TWO_WAYS.replace("*** ***", "***G***")
    plain = pool_from_text(text, doors=False)
    assert plain.cells.shape == (1, 7, 9)
    assert (plain.cells <= CellKind.WALL).all()
    assert plain.goals.tolist() == [[41, 52]]
    assert plain.spawns.tolist() == [[12, 46]]
    assert plain.starts.shape == (1, 0)
    assert plain.distance[0, 1].tolist() == [8, 6]

    doors = pool_from_text(text, doors=True)
    assert doors.goals.tolist() == [[41], [52]]
    assert doors.starts.shape == (2, NUM_STARTS)
    assert set(doors.starts.ravel()) == {12, 46}

    far = pool_from_text(text, doors=True, min_goal_distance=8)
    assert far.goals.tolist() == [[52]]
    assert set(far.starts.ravel()) == {12}


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("P I ", "P H ", "line 2, column 4 of the level is a door .* to its west and east"),
        ("*H***", "*I***", "line 3, column 2 .* have a wall '.' to its north and south"),
    ],
)
def test_a_door_stands_between_walls(old: str, new: str, message: str):
    text = TWO_WAYS.replace(old, new)
    with pytest.raises(ValueError, match=message):
        pool_from_text(text, doors=True)
    pool_from_text(text, doors=False)  # there they are bare floor


@pytest.mark.parametrize(
    ("old", "new", "distance", "message"),
    [
        ("G", " ", 0, "must have a goal 'G'"),
        ("G", "G", 9, "from a 'P' that is 9 cells or more away"),
        ("I   G", "I * G", 0, "no 'G' of the level can be reached from a 'P'"),
    ],
)
@pytest.mark.parametrize("doors", [False, True])
def test_a_level_without_a_way_is_refused(
    old: str, new: str, distance: int, message: str, doors: bool
):
    text = TWO_WAYS.replace(old, new)
    with pytest.raises(ValueError, match=message):
        pool_from_text(text, doors=doors, min_goal_distance=distance)


def test_the_room_of_dense_2():
    pool = room_pool()
    _, height, width = pool.cells.shape
    inner = np.argwhere(pool.cells[0] == CellKind.ROOM)
    (south, west), (north, east) = inner.min(axis=0), inner.max(axis=0) + 1
    assert len(inner) == (north - south) * (east - west) == (height - 2) * (width - 2)
    (origin_x, origin_y), (size_x, size_y) = ROOM_THEME.origin, ROOM_THEME.cell
    walls = [origin_x + west * size_x, origin_x + east * size_x]
    walls += [origin_y + south * size_y, origin_y + north * size_y]
    assert walls == pytest.approx([-568.0, 1016.0, -760.0, 568.0])
    assert pool.cells.ravel()[pool.spawns[0, 0]] == CellKind.ROOM
    assert not pool.decals.any()
