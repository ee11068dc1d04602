"""The puzzles of dense-1: their shape, and their figures next to DeepMind Lab's."""

import math
import random
from collections import Counter
from collections.abc import Callable, Iterator

import numpy as np
import pytest

from episodic_curiosity.worlds.lab.elements import NO_DOOR, CellKind, Sprite
from episodic_curiosity.worlds.maze.levels.pool import make_pool
from episodic_curiosity.worlds.maze.levels.puzzles import PuzzleLayout
from episodic_curiosity.worlds.maze.levels.stored import LevelPool
from tests.worlds.maze.levels.lab_puzzle import lab_puzzle
from tests.worlds.maze.levels.puzzle_plan import (
    GOAL,
    Plan,
    figures,
    mean_and_error,
    plans_of,
    play_in_random_order,
)

# Means and standard errors of 5,000 puzzles of DeepMind Lab's own generator.
LAB = {
    "rooms": (5.610, 0.016),
    "keys": (3.031, 0.018),
    "doors": (5.501, 0.028),
    "passages without a door": (0.513, 0.007),
    "places of the bounding box": (6.748, 0.025),
    "rooms from start to goal": (2.008, 0.010),
    "keys in the start room": (0.940, 0.010),
    "doors of the start room": (2.089, 0.012),
    "passages of the goal room": (1.916, 0.008),
    "most reward": (54.325, 0.023),
    "fewest doors to the goal": (2.012, 0.012),
    "one door": (0.331, 0.007),
}
LAB_RANDOM_ORDER = {"reward": 22.3, "solved": 0.375}  # of a player, over 5,000 puzzles
NUM_PUZZLES = 1000


@pytest.fixture(scope="module")
def pool() -> LevelPool:
    return make_pool(PuzzleLayout(), num_levels=NUM_PUZZLES, seed=0, split="train")


def test_keys_and_doors_are_as_many_as_in_deepmind_lab(pool: LevelPool):
    """Lab, over 2,000 puzzles: 1 to 5 keys, mostly 4; 2 to 8 doors, mostly 7."""
    keys = Counter((pool.item_sprite >= Sprite.KEY_RED).sum(axis=1).tolist())
    doors = Counter((pool.doors != NO_DOOR).sum(axis=(1, 2)).tolist())
    assert set(keys) == {1, 2, 3, 4, 5}
    assert keys.most_common(1)[0][0] == 4
    assert set(doors) == {2, 3, 4, 5, 6, 7, 8}
    assert doors.most_common(1)[0][0] == 7


def test_rooms_are_islands_of_three_by_two_cells(pool: LevelPool):
    assert pool.cells.shape == (NUM_PUZZLES, 12, 15)
    room = np.zeros((12, 15), bool)
    for y in (2, 5, 8):
        for x in (2, 6, 10):
            room[y : y + 2, x : x + 3] = True
            whole = (pool.cells[:, y : y + 2, x : x + 3] == CellKind.CORRIDOR).all(axis=(1, 2))
            none = (pool.cells[:, y : y + 2, x : x + 3] == CellKind.VOID).all(axis=(1, 2))
            assert (whole | none).all()
    outside = pool.cells[:, ~room]
    assert set(np.unique(outside)) == {
        CellKind.VOID,
        CellKind.CORRIDOR,
        CellKind.DOOR_H,
        CellKind.DOOR_I,
    }
    # Passages: the middle of the upper and lower side, the upper row of left and right.
    h_y, h_x = np.nonzero((pool.cells == CellKind.DOOR_H).any(axis=0))
    i_y, i_x = np.nonzero((pool.cells == CellKind.DOOR_I).any(axis=0))
    assert (set(h_y), set(h_x)) == ({4, 7}, {3, 7, 11})
    assert (set(i_y), set(i_x)) == ({3, 6, 9}, {5, 9})
    # The map is cropped to the rooms in use, which touch its south and west.
    floor = pool.cells != CellKind.VOID
    assert floor[:, 2].any(axis=1).all()
    assert floor[:, :, 2].any(axis=1).all()


def test_items_lie_in_lower_corners_and_one_is_the_lolly(pool: LevelPool):
    used = pool.item_sprite != Sprite.NONE
    assert (pool.item_sprite[:, 0] == Sprite.LOLLY).all()
    assert not (pool.item_sprite[:, 1:] == Sprite.LOLLY).any()
    assert (np.diff(used.astype(int), axis=1) <= 0).all()
    x, y = pool.item_position[used].T
    assert set(x) == {250.0, 450.0, 650.0, 850.0, 1050.0, 1250.0}
    assert set(y) == {250.0, 550.0, 850.0}
    for level in range(NUM_PUZZLES):
        places = pool.item_position[level, used[level]]
        assert len(np.unique(places, axis=0)) == len(places)
        cell = (places // 100).astype(int)
        assert (pool.cells[level, cell[:, 1], cell[:, 0]] == CellKind.CORRIDOR).all()
        assert pool.goals[level, 0] == cell[0, 1] * 15 + cell[0, 0]


def test_spawns_are_the_free_cells_of_one_room(pool: LevelPool):
    y, x = np.divmod(pool.spawns.astype(int), 15)
    assert ((y - y.min(axis=1, keepdims=True)) == [1, 1, 1, 0]).all()
    assert ((x - x.min(axis=1, keepdims=True)) == [0, 1, 2, 1]).all()
    assert (pool.cells[np.arange(NUM_PUZZLES)[:, None], y, x] == CellKind.CORRIDOR).all()
    assert (pool.distance < 255).all()
    assert (pool.distance > 1).all()


def our_plans(num: int) -> Iterator[Plan]:
    """The levels that a run trains on."""
    return plans_of(make_pool(PuzzleLayout(), num_levels=num, seed=0, split="train"))


def plain_plans(num: int) -> Iterator[Plan]:
    """The generator once more, written down plainly."""
    rng = random.Random(0)
    return (lab_puzzle(rng).plan() for _ in range(num))


@pytest.mark.parametrize("draw", [our_plans, plain_plans])
def test_puzzles_have_the_figures_of_deepmind_lab_s(draw: Callable[[int], Iterator[Plan]]):
    """Within three standard errors of the difference; every puzzle can be solved."""
    sample = [figures(plan) for plan in draw(5000)]
    far_off = []
    for name, (lab, lab_error) in LAB.items():
        ours, error = mean_and_error([puzzle[name] for puzzle in sample])
        z = (ours - lab) / math.hypot(error, lab_error)
        print(f"{name}: {ours:.3f} ({error:.3f}), Lab {lab:.3f} ({lab_error:.3f}), z {z:+.1f}")
        far_off += [name] if abs(z) > 3 else []
    assert not far_off


@pytest.mark.parametrize("draw", [our_plans, plain_plans])
def test_a_player_of_random_order_gets_as_much_as_in_deepmind_lab(
    draw: Callable[[int], Iterator[Plan]],
):
    """And as much as the agents of Table 1, 19.9 to 22.9."""
    rng = random.Random(0)
    plays = [play_in_random_order(plan, rng) for plan in draw(5000)]
    for (name, lab), ours in zip(
        LAB_RANDOM_ORDER.items(), zip(*plays, strict=True), strict=True
    ):
        mean, error = mean_and_error(list(ours))
        print(f"{name}: {mean:.3f} ({error:.3f}), Lab {lab}")
        assert abs(mean - lab) < 3 * math.sqrt(2) * error  # Lab's own error is as large


def test_figures_of_a_puzzle_by_hand():
    """Start, a red key and a red door to the goal; a blue door that no key opens."""
    start, hall, goal, void = (0, 0), (0, 1), (1, 1), (1, 0)
    red, blue = 0, 2
    plan = Plan(
        start,
        {start: [red], hall: [], goal: [GOAL], void: []},
        {
            frozenset((start, hall)): None,
            frozenset((hall, goal)): red,
            frozenset((start, void)): blue,
            frozenset((void, goal)): red,
        },
    )
    assert figures(plan) == {
        "rooms": 4,
        "keys": 1,
        "doors": 3,
        "passages without a door": 1,
        "places of the bounding box": 4,
        "rooms from start to goal": 2,
        "keys in the start room": 1,
        "doors of the start room": 1,
        "passages of the goal room": 2,
        "most reward": 52,
        "fewest doors to the goal": 1,
        "one door": True,
    }
    assert play_in_random_order(plan, random.Random(0)) == (52, True)
    plan.passages[frozenset((start, void))] = red  # a second red door, which wastes the key
    plays = {play_in_random_order(plan, random.Random(seed)) for seed in range(20)}
    assert plays == {(52, True), (2, False)}


def test_a_grid_too_small_is_refused():
    with pytest.raises(ValueError, match="at least 3 x 3 places for rooms, got 2 x 3"):
        PuzzleLayout(rows=2)
