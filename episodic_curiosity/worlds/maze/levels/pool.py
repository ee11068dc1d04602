"""Pools of levels, generated once and shared by a batch of environments.

Shapes: L levels, H x W cells, D doors, S spawns, G goals, R prepared starts, M items.
Arrays are stored south first, [y, x]; a cell index is y * W + x.
"""

from collections.abc import Sequence

import numpy as np

from episodic_curiosity.support.checks import check_at_least, check_choice
from episodic_curiosity.worlds.base import SPLITS, Split
from episodic_curiosity.worlds.lab.elements import NO_DOOR, CellKind, Theme
from episodic_curiosity.worlds.lab.text import Bools, Bytes, check_doors, from_text
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
from episodic_curiosity.worlds.maze.levels.stored import LevelPool, plain_levels

NUM_STARTS = 16  # R, for levels with doors
NUM_DECALS = 80  # different pictures on walls
CHUNK = 512  # levels generated at a time, so that arrays stay in the CPU cache
ATTEMPTS = 100  # a layout is refused if fewer than one in ATTEMPTS mazes is usable
SPLIT_BITS = np.uint32(0b11 << 30)  # the bits of a key that hold its split

# The single room of dense-2: inner walls at x in [-568, 1016] and y in [-760, 568].
ROOM_CELLS = (13, 16)  # inside the walls, along y and x
ROOM_THEME = Theme(
    origin=(-568.0 - 1584.0 / 16, -760.0 - 1328.0 / 13),
    cell=(1584.0 / 16, 1328.0 / 13),
    wall_height=176.0,
    ceiling=True,
)


def make_pool(
    layout: MazeLayout | PuzzleLayout, *, num_levels: int, seed: int, split: Split
) -> LevelPool:
    """Generates levels 0 .. num_levels - 1 of a split; level i is the same in every pool."""
    check_at_least("num_levels", num_levels, 1)
    keys = level_keys(seed, split, num_levels)
    chunks = [keys[first : first + CHUNK] for first in range(0, num_levels, CHUNK)]
    if isinstance(layout, MazeLayout):
        return _joined([_maze_levels(layout, chunk) for chunk in chunks])
    return _joined([draw_puzzles(layout, chunk) for chunk in chunks])


def pool_from_text(
    text: str, *, doors: bool, min_goal_distance: int = 0, seed: int = 0
) -> LevelPool:
    """Makes a pool of a custom level: with doors, one level per G; else H and I are floor."""
    mazes = from_text(text)
    if not mazes.goal.any():
        raise ValueError("the level must have a goal 'G', got none")
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
        raise ValueError(f"no 'G' of the level can be reached from a 'P'{away}")
    keys = random_bits(seed, np.arange(kept.sum()))
    pool = plain_levels(
        cells[kept], spawns=spawns[kept], goals=goals[kept], distance=distance[kept]
    )
    return _furnished(pool, keys, min_goal_distance, doors)


def room_pool() -> LevelPool:
    """The single level of dense-2, an empty room; its objects are drawn per episode."""
    height, width = ROOM_CELLS[0] + 2, ROOM_CELLS[1] + 2
    cells = np.full((1, height, width), CellKind.WALL, np.uint8)
    cells[:, 1:-1, 1:-1] = CellKind.ROOM
    middle = height // 2 * width + width // 2
    return plain_levels(
        cells,
        spawns=np.array([[middle]]),
        goals=np.array([[-1]]),
        distance=np.full((1, 1, 1), UNREACHABLE, np.uint8),
    )


def level_keys(seed: int, split: Split, num_levels: int) -> Keys:
    """Random keys of the levels, (L,); no key occurs in two splits."""
    check_choice("split", split, SPLITS)
    number = SPLITS.index(split)
    bits = random_bits(seed, number, np.arange(num_levels))
    return (bits & ~SPLIT_BITS) | np.uint32(number << 30)


def _joined(chunks: Sequence[LevelPool]) -> LevelPool:
    return LevelPool(*(np.concatenate(parts) for parts in zip(*chunks, strict=True)))


def _maze_levels(layout: MazeLayout, keys: Keys) -> LevelPool:
    """Generates mazes; one without a goal far enough from a spawn is generated again."""
    keys, pool = keys.copy(), _draw_levels(layout, keys)
    num_drawn = len(keys)
    while len(again := np.flatnonzero(pool.goals[:, 0] < 0)):
        if num_drawn >= ATTEMPTS * max(1, len(keys) - len(again)):
            raise ValueError(
                f"fewer than one maze in {ATTEMPTS} has a goal {layout.min_goal_distance} "
                "cells or more from a spawn; lower min_goal_distance or enlarge the maze"
            )
        old = keys[again]
        keys[again] = (random_bits(old, 1) & ~SPLIT_BITS) | (old & SPLIT_BITS)
        redrawn = _draw_levels(layout, keys[again])
        for name in LevelPool._fields:
            getattr(pool, name)[again] = getattr(redrawn, name)
        num_drawn += len(again)
    if layout.doors:  # one goal per level, because starts are prepared for it
        pick = random_below((pool.goals >= 0).sum(axis=1), keys, Draw.GOAL)[:, None]
        pool = pool._replace(
            goals=np.take_along_axis(pool.goals, pick, axis=1),
            distance=np.take_along_axis(pool.distance, pick[:, :, None], axis=1),
        )
    return _furnished(pool, keys, layout.min_goal_distance, layout.doors)


def _draw_levels(layout: MazeLayout, keys: Keys) -> LevelPool:
    """Mazes without decals and starts; the first goal is -1 if none is usable."""
    mazes = draw_mazes(layout, keys)
    most = layout.room_max**2 - layout.spawns_per_room
    spawns = _places(mazes.spawn, layout.max_rooms * layout.spawns_per_room)
    goals = _places(mazes.goal, layout.max_rooms * min(layout.goals_per_room, most))
    goals, distance = _usable_goals(mazes.cells, goals, spawns, layout.min_goal_distance)
    return plain_levels(mazes.cells, spawns=spawns, goals=goals, distance=distance)


def _usable_goals(
    cells: Bytes, goals: Ints, spawns: Ints, min_distance: int
) -> tuple[Ints, Bytes]:
    """Returns the goals far enough from some spawn, then padding, and their path lengths."""
    distance = path_lengths(cells != CellKind.WALL, goals, spawns)  # (B, G, S)
    usable = _far_enough(distance, min_distance).max(axis=2)  # (B, G)
    goals = np.where(usable, goals, -1)
    distance = np.where(usable[:, :, None], distance, np.uint8(UNREACHABLE))
    order = np.argsort(~usable, axis=1, stable=True)
    goals = np.take_along_axis(goals, order, axis=1)
    return goals, np.take_along_axis(distance, order[:, :, None], axis=1)


def _far_enough(distance: Bytes, min_distance: int) -> Bools:
    return np.asarray((distance >= min_distance) & (distance != UNREACHABLE))


def _furnished(pool: LevelPool, keys: Keys, min_goal_distance: int, doors: bool) -> LevelPool:
    """Adds decals, and prepared starts if there are doors."""
    cells, num_levels = pool.cells, len(pool.cells)
    is_door = (cells >= CellKind.DOOR_H).reshape(num_levels, -1)
    num_doors = is_door.sum(axis=1)
    if num_doors.max() > MAX_DOORS:
        raise ValueError(
            f"a level has at most {MAX_DOORS} doors, got {num_doors.max()}: use fewer rooms"
        )
    numbers = np.where(is_door, is_door.cumsum(axis=1) - 1, NO_DOOR)
    door = numbers.astype(np.uint8).reshape(cells.shape)
    if doors:
        usable = _far_enough(pool.distance[:, 0], min_goal_distance)  # (L, S)
        num_usable = usable.sum(axis=1, keepdims=True)
        which = random_below(num_usable, keys[:, None], Draw.START, np.arange(NUM_STARTS))
        order = np.argsort(~usable, axis=1, stable=True)
        places = np.take_along_axis(pool.spawns.astype(np.int64), order, axis=1)
        starts = np.take_along_axis(places, which, axis=1)
        goal = pool.goals[:, 0].astype(np.int64)
        walk = doors_on_walks(door, cells != CellKind.WALL, goal, starts, keys)
        pool = pool._replace(
            door_colours=np.zeros((num_levels, MAX_DOORS), np.uint8),
            starts=starts.astype(np.int16),
            start_doors=open_half_of_the_rest(walk, num_doors, keys),
        )
    return pool._replace(doors=door, decals=draw_decals(cells, keys))


def _places(mask: Bools, most: int | None = None) -> Ints:
    """Returns the cells where a mask (B, H, W) is true, (B, most), padded with -1."""
    flat = mask.reshape(len(mask), -1)
    order = np.argsort(~flat, axis=1, stable=True)[:, : most or int(flat.sum(axis=1).max())]
    return np.where(np.take_along_axis(flat, order, axis=1), order, -1)


def draw_decals(cells: Bytes, keys: Keys) -> Bytes:
    """Places distinct images on a random tenth of the wall faces, (L, H, W, 4).

    They make places distinguishable. Shape: F wall faces.
    """
    num_levels = len(cells)
    wall = cells == CellKind.WALL
    # The neighbours to the EAST, NORTH, WEST and SOUTH; np.roll wraps, but the border is wall.
    seen = [np.roll(wall, shift, axis) for shift, axis in ((-1, 2), (-1, 1), (1, 2), (1, 1))]
    face = (np.stack(seen, axis=-1) & ~wall[..., None]).reshape(num_levels, -1)  # (L, F)
    wanted = np.minimum(0.5 + 0.1 * face.sum(axis=1), NUM_DECALS).astype(np.int64)
    order = random_bits(keys[:, None], Draw.FACE, np.arange(face.shape[1])).astype(np.int64)
    order = np.where(face, order, np.iinfo(np.int64).max)
    first = np.argsort(order, axis=1)[:, :NUM_DECALS]  # (L, 80)
    shuffle = random_bits(keys[:, None], Draw.IMAGE, np.arange(NUM_DECALS))
    image = 1 + np.argsort(shuffle, axis=1)
    image = np.where(np.arange(NUM_DECALS) < wanted[:, None], image, 0)[:, : first.shape[1]]
    decals = np.zeros(face.shape, np.uint8)
    np.put_along_axis(decals, first, image.astype(np.uint8), axis=1)
    return decals.reshape(*cells.shape, 4)
