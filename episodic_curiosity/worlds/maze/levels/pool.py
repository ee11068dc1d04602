"""Levels in the form a batch of environments plays them: a pool drawn up once.

Shapes: L levels, H x W cells, D doors, S spawns, G goals, R prepared starts, M items.
Arrays are stored south first, [y, x]; a cell index is y * W + x.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from episodic_curiosity.worlds.base import SPLITS, Split
from episodic_curiosity.worlds.lab.elements import NO_DOOR, CellKind, Theme
from episodic_curiosity.worlds.lab.text import Bools, Bytes, check_doors, from_text
from episodic_curiosity.worlds.maze.levels.decals import draw_decals
from episodic_curiosity.worlds.maze.levels.draws import random_below, random_bits
from episodic_curiosity.worlds.maze.levels.layouts import (
    Draw,
    Ints,
    Keys,
    MazeLayout,
    draw_mazes,
)
from episodic_curiosity.worlds.maze.levels.paths import (
    MAX_DOORS,
    UNREACHABLE,
    doors_on_walks,
    open_half_of_the_rest,
    path_lengths,
)
from episodic_curiosity.worlds.maze.levels.puzzles import PuzzleLayout, draw_puzzles

NUM_STARTS = 16  # R, where there are doors
CHUNK = 512  # levels made at a time, so that arrays stay in the cache
ATTEMPTS = 100  # a layout is refused where fewer than one maze in so many will do
SPLIT_BITS = np.uint32(0b11 << 30)  # the part of a key that names its split

# The one room of dense-2: inner walls at x in [-568, 1016] and y in [-760, 568].
ROOM_CELLS = (13, 16)  # inside the walls, along y and x
ROOM_THEME = Theme(
    origin=(-568.0 - 1584.0 / 16, -760.0 - 1328.0 / 13),
    cell=(1584.0 / 16, 1328.0 / 13),
    wall_height=176.0,
    ceiling=True,
)


class Plans(NamedTuple):
    """What is settled about levels before decals and starts are drawn."""

    keys: Keys  # (L,)
    cells: Bytes  # (L, H, W)
    goals: Ints  # (L, G)
    spawns: Ints  # (L, S)
    distance: Bytes  # (L, G, S)


class LevelPool(NamedTuple):
    """L levels of one layout."""

    cells: NDArray[np.uint8]  # (L, H, W) CellKind
    doors: NDArray[np.uint8]  # (L, H, W) index of the door in a door cell, else NO_DOOR
    door_colours: NDArray[np.uint8]  # (L, D), D >= 1
    decals: NDArray[np.uint8]  # (L, H, W, 4) on each Side, 0 none, else 1..80
    spawns: NDArray[np.int16]  # (L, S) cells an agent may start in, padded with -1
    goals: NDArray[np.int16]  # (L, G) cells the goal may stand in, padded with -1
    distance: NDArray[np.uint8]  # (L, G, S) steps between cells, doors passable; 255 none
    starts: NDArray[np.int16]  # (L, R) with doors: prepared (re)spawns for goals[:, 0]
    start_doors: NDArray[np.int64]  # (L, R) the doors open after each of them, a bit mask
    item_sprite: NDArray[np.uint8]  # (L, M) Sprite, keys and the lolly of a puzzle
    item_position: NDArray[np.float32]  # (L, M, 2) world coordinates


def make_pool(
    layout: MazeLayout | PuzzleLayout, *, num_levels: int, seed: int, split: Split
) -> LevelPool:
    """Draws levels 0 .. num_levels - 1 of a split; level i is the same in every pool size."""
    if num_levels < 1:
        raise ValueError(f"num_levels is {num_levels}; it must be at least 1.")
    keys = level_keys(seed, split, num_levels)
    chunks = [keys[first : first + CHUNK] for first in range(0, num_levels, CHUNK)]
    if isinstance(layout, MazeLayout):
        return _joined([_maze_levels(layout, chunk) for chunk in chunks])
    return _joined([_puzzle_levels(layout, chunk) for chunk in chunks])


def pool_from_text(
    text: str, *, doors: bool, min_goal_distance: int = 0, seed: int = 0
) -> LevelPool:
    """A level of one's own: with doors one level for each G, else H and I are bare floor."""
    mazes = from_text(text)
    if not mazes.goal.any():
        raise ValueError("The level has no 'G'; the goal needs a place.")
    cells, goals, spawns = mazes.cells, _places(mazes.goal), _places(mazes.spawn)
    if doors:
        check_doors(cells[0])
        goals = goals.T  # (G, 1)
        cells = np.repeat(cells, len(goals), axis=0)
        spawns = np.repeat(spawns, len(goals), axis=0)
    else:
        cells[cells >= CellKind.DOOR_H] = CellKind.CORRIDOR
    goals, distance = _usable_goals(cells, goals, spawns, min_goal_distance)
    kept = goals[:, 0] >= 0
    if not kept.any():
        away = f" that is {min_goal_distance} cells or more away" if min_goal_distance else ""
        raise ValueError(f"No 'G' of the level can be reached from a 'P'{away}.")
    keys = random_bits(seed, np.arange(kept.sum()))
    plans = Plans(keys, cells[kept], goals[kept], spawns[kept], distance[kept])
    return _furnished(plans, min_goal_distance, doors)


def room_pool() -> LevelPool:
    """The one level of dense-2, an empty room; where its objects stand is drawn per episode."""
    height, width = ROOM_CELLS[0] + 2, ROOM_CELLS[1] + 2
    cells = np.full((1, height, width), CellKind.WALL, np.uint8)
    cells[:, 1:-1, 1:-1] = CellKind.ROOM
    middle = height // 2 * width + width // 2
    return LevelPool(
        cells=cells,
        doors=np.full_like(cells, NO_DOOR),
        door_colours=np.zeros((1, 1), np.uint8),
        decals=np.zeros((*cells.shape, 4), np.uint8),
        spawns=np.array([[middle]], np.int16),
        goals=np.array([[-1]], np.int16),
        distance=np.full((1, 1, 1), UNREACHABLE, np.uint8),
        starts=np.zeros((1, 0), np.int16),
        start_doors=np.zeros((1, 0), np.int64),
        item_sprite=np.zeros((1, 0), np.uint8),
        item_position=np.zeros((1, 0, 2), np.float32),
    )


def level_keys(seed: int, split: Split, num_levels: int) -> Keys:
    """What a level's random numbers depend on, (L,); the splits have no key in common."""
    if split not in SPLITS:
        raise ValueError(f"Unknown split {split!r}; the splits are {', '.join(SPLITS)}.")
    number = SPLITS.index(split)
    bits = random_bits(seed, number, np.arange(num_levels))
    return (bits & ~SPLIT_BITS) | np.uint32(number << 30)


def _joined(chunks: Sequence[LevelPool]) -> LevelPool:
    return LevelPool(*(np.concatenate(parts) for parts in zip(*chunks, strict=True)))


def _maze_levels(layout: MazeLayout, keys: Keys) -> LevelPool:
    """Mazes with a goal far enough from a spawn; those without are drawn again."""
    plans = _draw_plans(layout, keys)
    num_drawn = len(keys)
    while len(again := np.flatnonzero(plans.goals[:, 0] < 0)):
        if num_drawn >= ATTEMPTS * max(1, len(keys) - len(again)):
            raise ValueError(
                f"Fewer than one maze in {ATTEMPTS} has a goal {layout.min_goal_distance} "
                "cells or more from a spawn; ask for a shorter path or a larger maze."
            )
        old = plans.keys[again]
        redrawn = _draw_plans(layout, (random_bits(old, 1) & ~SPLIT_BITS) | (old & SPLIT_BITS))
        for name in Plans._fields:
            getattr(plans, name)[again] = getattr(redrawn, name)
        num_drawn += len(again)
    if layout.doors:  # one goal for each level, because its starts are prepared
        pick = random_below((plans.goals >= 0).sum(axis=1), plans.keys, Draw.GOAL)[:, None]
        plans = plans._replace(
            goals=np.take_along_axis(plans.goals, pick, axis=1),
            distance=np.take_along_axis(plans.distance, pick[:, :, None], axis=1),
        )
    return _furnished(plans, layout.min_goal_distance, layout.doors)


def _draw_plans(layout: MazeLayout, keys: Keys) -> Plans:
    mazes = draw_mazes(layout, keys)
    most = layout.room_max**2 - layout.spawns_per_room
    spawns = _places(mazes.spawn, layout.max_rooms * layout.spawns_per_room)
    goals = _places(mazes.goal, layout.max_rooms * min(layout.goals_per_room, most))
    goals, distance = _usable_goals(mazes.cells, goals, spawns, layout.min_goal_distance)
    return Plans(keys.copy(), mazes.cells, goals, spawns, distance)


def _puzzle_levels(layout: PuzzleLayout, keys: Keys) -> LevelPool:
    puzzles = draw_puzzles(layout, keys)
    passable = puzzles.cells != CellKind.VOID
    return LevelPool(
        cells=puzzles.cells,
        doors=puzzles.doors,
        door_colours=puzzles.door_colours,
        decals=np.zeros((*puzzles.cells.shape, 4), np.uint8),
        spawns=puzzles.spawns.astype(np.int16),
        goals=puzzles.goals.astype(np.int16),
        distance=path_lengths(passable, puzzles.goals, puzzles.spawns),
        starts=np.zeros((len(keys), 0), np.int16),
        start_doors=np.zeros((len(keys), 0), np.int64),
        item_sprite=puzzles.item_sprite,
        item_position=puzzles.item_position,
    )


def _usable_goals(
    cells: Bytes, goals: Ints, spawns: Ints, min_distance: int
) -> tuple[Ints, Bytes]:
    """The goals far enough from some spawn, padding last, and their path lengths."""
    distance = path_lengths(cells != CellKind.WALL, goals, spawns)  # (B, G, S)
    usable = _far_enough(distance, min_distance).max(axis=2)  # (B, G)
    goals = np.where(usable, goals, -1)
    distance = np.where(usable[:, :, None], distance, np.uint8(UNREACHABLE))
    order = np.argsort(~usable, axis=1, stable=True)
    goals = np.take_along_axis(goals, order, axis=1)
    return goals, np.take_along_axis(distance, order[:, :, None], axis=1)


def _far_enough(distance: Bytes, min_distance: int) -> Bools:
    return np.asarray((distance >= min_distance) & (distance != UNREACHABLE))


def _furnished(plans: Plans, min_goal_distance: int, doors: bool) -> LevelPool:
    """Adds decals to mazes, and prepared starts where there are doors."""
    keys, cells, goals, spawns, distance = plans
    num_levels = len(cells)
    is_door = (cells >= CellKind.DOOR_H).reshape(num_levels, -1)
    num_doors = is_door.sum(axis=1)
    if num_doors.max() > MAX_DOORS:
        raise ValueError(
            f"A level has {num_doors.max()} doors; {MAX_DOORS} are possible: use fewer rooms."
        )
    numbers = np.where(is_door, is_door.cumsum(axis=1) - 1, NO_DOOR)
    door = numbers.astype(np.uint8).reshape(cells.shape)
    starts = np.zeros((num_levels, NUM_STARTS if doors else 0), np.int64)
    start_doors = starts
    if doors:
        usable = _far_enough(distance[:, 0], min_goal_distance)  # (L, S)
        num_usable = usable.sum(axis=1, keepdims=True)
        which = random_below(num_usable, keys[:, None], Draw.START, np.arange(NUM_STARTS))
        places = np.take_along_axis(spawns, np.argsort(~usable, axis=1, stable=True), axis=1)
        starts = np.take_along_axis(places, which, axis=1)
        walk = doors_on_walks(door, cells != CellKind.WALL, goals[:, 0], starts, keys)
        start_doors = open_half_of_the_rest(walk, num_doors, keys)
    return LevelPool(
        cells=cells,
        doors=door,
        door_colours=np.zeros((num_levels, MAX_DOORS if doors else 1), np.uint8),
        decals=draw_decals(cells, keys),
        spawns=spawns.astype(np.int16),
        goals=goals.astype(np.int16),
        distance=distance,
        starts=starts.astype(np.int16),
        start_doors=start_doors,
        item_sprite=np.zeros((num_levels, 0), np.uint8),
        item_position=np.zeros((num_levels, 0, 2), np.float32),
    )


def _places(mask: Bools, most: int | None = None) -> Ints:
    """The cells where a mask (B, H, W) is true, (B, most), padded with -1."""
    flat = mask.reshape(len(mask), -1)
    order = np.argsort(~flat, axis=1, stable=True)[:, : most or int(flat.sum(axis=1).max())]
    return np.where(np.take_along_axis(flat, order, axis=1), order, -1)
