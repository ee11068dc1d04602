"""Paths through a level: distances to goals, and the doors on the way.

Shapes: B levels, H x W cells, G goals, S spawns, R starts, D doors. A cell is given as its
index y * W + x; goals and spawns are padded with -1.
"""

import numpy as np

from episodic_curiosity.worlds.lab.elements import NO_DOOR
from episodic_curiosity.worlds.lab.text import Bools, Bytes
from episodic_curiosity.worlds.maze.levels.draws import random_below, random_bits
from episodic_curiosity.worlds.maze.levels.layouts import LONGEST_PATH, Draw, Ints, Keys, choose

UNREACHABLE = 255
MAX_DOORS = 63  # one bit each in an int64


def path_lengths(passable: Bools, goals: Ints, spawns: Ints) -> Bytes:
    """Length of the shortest path from each goal to each spawn, (B, G, S), or UNREACHABLE."""
    length = np.full((*goals.shape, spawns.shape[1]), UNREACHABLE, np.uint8)
    for first in range(0, goals.shape[1], 64):
        part = goals[:, first : first + 64]
        length[:, first : first + 64] = _path_lengths(passable, part, spawns)
    return length


def _path_lengths(passable: Bools, goals: Ints, spawns: Ints) -> Bytes:
    """As path_lengths, for up to 64 goals: each is a bit that spreads from cell to cell."""
    num_levels, height, width = passable.shape
    level = np.arange(num_levels)[:, None]
    ways = np.where(passable, ~np.uint64(0), np.uint64(0))
    reached = np.zeros((num_levels, height * width), np.uint64)
    bit = np.uint64(1) << np.arange(goals.shape[1], dtype=np.uint64)
    for goal in range(goals.shape[1]):  # two goals may share a cell
        there = np.where(goals[:, goal] >= 0, bit[goal], np.uint64(0))
        reached[level[:, 0], goals[:, goal]] |= there
    reached = reached.reshape(passable.shape) & ways
    length = np.zeros((num_levels, goals.shape[1], spawns.shape[1]), np.uint8)
    while True:
        at_spawn = reached.reshape(num_levels, -1)[level, spawns]  # (B, S)
        missing = (at_spawn[:, None, :] & bit[:, None]) == 0  # (B, G, S)
        spread = reached.copy()
        spread[:, 1:] |= reached[:, :-1]
        spread[:, :-1] |= reached[:, 1:]
        spread[:, :, 1:] |= reached[:, :, :-1]
        spread[:, :, :-1] |= reached[:, :, 1:]
        spread &= ways
        if np.array_equal(spread, reached):
            break
        length += missing & (length < LONGEST_PATH)
        reached = spread
    padding = (goals < 0)[:, :, None] | (spawns < 0)[:, None, :]
    length[missing | padding] = UNREACHABLE
    return length


def doors_on_walks(doors: Bytes, passable: Bools, goal: Ints, starts: Ints, keys: Keys) -> Ints:
    """Bit masks of the doors on a random path from each level's goal to each start, (B, R).

    The path is found by a random depth-first search and need not be the shortest. Every start
    must be reachable.
    """
    num_levels, num_starts = starts.shape
    width = doors.shape[2]
    level = np.repeat(np.arange(num_levels), num_starts)  # (B * R,), one walker each
    door = doors.reshape(num_levels, -1)
    door_bit = np.where(door == NO_DOOR, 0, np.int64(1) << (door.astype(np.int64) % 64))
    walker_key = random_bits(keys[level], Draw.WALK, np.tile(np.arange(num_starts), num_levels))
    target = starts.ravel()
    here = goal[level].copy()
    opened = door_bit[level, here]
    done = ~passable.reshape(num_levels, -1)[level]  # (B * R, H * W)
    done[np.arange(len(here)), here] = True
    came_from = np.zeros(done.shape, np.int16)
    steps = np.array([1, width, -1, -width])
    turn = 0
    while len(at_work := np.flatnonzero(here != target)):
        ahead = here[at_work, None] + steps  # (A, 4)
        free = ~done[at_work[:, None], ahead]
        goes = free.any(axis=1)
        way = choose(free, random_below(free.sum(axis=1), walker_key[at_work], turn))
        mover, back = at_work[goes], at_work[~goes]
        next_cell = here[mover] + steps[way[goes]]
        done[mover, next_cell] = True
        came_from[mover, next_cell] = here[mover]
        opened[mover] ^= door_bit[level[mover], next_cell]
        here[mover] = next_cell
        opened[back] ^= door_bit[level[back], here[back]]
        here[back] = came_from[back, here[back]]
        turn += 1
    return opened.reshape(starts.shape)


def open_half_of_the_rest(opened: Ints, num_doors: Ints, keys: Keys) -> Ints:
    """Opens a random half of the closed doors, rounded down; bit masks (B, R) in and out."""
    start = np.arange(opened.shape[1])[:, None]
    door = np.arange(max(1, int(num_doors.max(initial=0))))
    closed = (opened[..., None] >> door) & 1 == 0  # (B, R, D)
    closed &= door < num_doors[:, None, None]
    order = random_bits(keys[:, None, None], Draw.DOOR, start, door).astype(np.int64)
    order = np.where(closed, order, np.iinfo(np.int64).max)
    rank = order.argsort(axis=-1).argsort(axis=-1)
    also = closed & (rank < closed.sum(axis=-1, keepdims=True) // 2)
    both: Ints = opened | (also * (np.int64(1) << door)).sum(axis=-1)
    return both
