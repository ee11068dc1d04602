"""The puzzles of dense-1: their shape, their statistics, and that each can be solved."""

import random
from collections import Counter
from typing import NamedTuple

import numpy as np
import pytest

from episodic_curiosity.worlds.lab.elements import NO_DOOR, CellKind, Sprite
from episodic_curiosity.worlds.maze.levels.draws import random_bits
from episodic_curiosity.worlds.maze.levels.pool import make_pool
from episodic_curiosity.worlds.maze.levels.puzzles import (
    Dice,
    Kind,
    Puzzle,
    PuzzleLayout,
    draw_puzzle,
    key_of,
)
from episodic_curiosity.worlds.maze.levels.stored import LevelPool

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


class Play(NamedTuple):
    """How far somebody has come: doors opened, keys taken, and the colour of the one held."""

    opened: frozenset[int] = frozenset()
    taken: frozenset[tuple[int, int, int]] = frozenset()  # room and slot
    held: int = -1


def moves(puzzle: Puzzle, play: Play) -> list[Play] | None:
    """After each door and each key that can be had next; None: so can the lolly."""
    passages = list(puzzle.passages.items())
    rooms = {puzzle.start}
    for _ in puzzle.kinds:
        for number, ((a, b), colour) in enumerate(passages):
            if (colour is None or number in play.opened) and (a in rooms or b in rooms):
                rooms |= {a, b}
    plays = [
        Play(play.opened | {number}, play.taken)
        for number, ((a, b), colour) in enumerate(passages)
        if colour == play.held and number not in play.opened and (a in rooms or b in rooms)
    ]
    for room in sorted(rooms):
        for slot, sprite in enumerate(puzzle.items[room]):
            if sprite == Sprite.LOLLY:
                return None
            if (*room, slot) not in play.taken:
                taken = play.taken | {(*room, slot)}
                plays.append(Play(play.opened, taken, sprite - Sprite.KEY_RED))
    return plays


def solvable(puzzle: Puzzle) -> bool:
    """Whether some order of keys and doors leads from the start to the lolly."""
    todo = [Play()]
    seen = set(todo)
    while todo:
        plays = moves(puzzle, todo.pop())
        if plays is None:
            return True
        todo += [play for play in plays if play not in seen]
        seen.update(plays)
    return False


def test_every_puzzle_can_be_solved():
    keys = random_bits(1, np.arange(150)).tolist()
    puzzles = [draw_puzzle(PuzzleLayout(), Dice(key)) for key in keys]
    assert all(solvable(puzzle) for puzzle in puzzles)
    puzzles[0].items[puzzles[0].start].clear()
    for items in puzzles[0].items.values():
        items[:] = [sprite for sprite in items if sprite == Sprite.LOLLY]
    assert not solvable(puzzles[0])  # without keys nothing opens


def test_keys_and_doors_in_any_order_pay_what_the_paper_s_agents_get():
    """19.9 to 22.9 in Table 1. This player is never lost and never late, but never thinks."""
    num_puzzles = 4000
    order = random.Random(0)
    rewards, solved = [], 0
    for key in random_bits(1, np.arange(num_puzzles)).tolist():
        puzzle = draw_puzzle(PuzzleLayout(), Dice(key))
        reward, plays = 0, moves(puzzle, Play())
        while plays:
            reward += 1  # for a key or a door
            plays = moves(puzzle, order.choice(plays))
        solved += plays is None
        rewards.append(reward + 50 * (plays is None))
    print(f"{np.mean(rewards):.1f} a puzzle, {solved / num_puzzles:.0%} of them solved")
    assert 20 < np.mean(rewards) < 23


def test_rooms_off_the_chain_are_what_they_should_be():
    kinds = Counter[Kind]()
    for key in random_bits(2, np.arange(300)).tolist():
        puzzle = draw_puzzle(PuzzleLayout(), Dice(key))
        keys = {sprite for sprites in puzzle.items.values() for sprite in sprites}
        chain = {
            colour
            for rooms, colour in puzzle.passages.items()
            if colour is not None and all(puzzle.kinds[room] is Kind.PLAIN for room in rooms)
        }
        for (a, b), colour in puzzle.passages.items():
            if colour is None:
                assert puzzle.kinds[a] is puzzle.kinds[b] is Kind.PLAIN
        for place, kind in puzzle.kinds.items():
            kinds[kind] += 1
            doors = [colour for rooms, colour in puzzle.passages.items() if place in rooms]
            if kind is Kind.HERRING:
                assert doors[0] in chain
            if kind is Kind.TRAP:  # what tempts there is not the key that opens it
                assert doors[0] in chain
                assert puzzle.items[place][0] != key_of(doors[0])
            if kind is Kind.SPARE:
                assert key_of(doors[0]) not in keys
    assert kinds[Kind.HERRING] == 300
    assert 0.5 * 300 < kinds[Kind.TRAP] < 0.8 * 300  # two chains of three have one


def test_a_grid_too_small_is_refused():
    with pytest.raises(ValueError, match="at least 3 x 3 places for rooms, got 2 x 3"):
        PuzzleLayout(rows=2)
