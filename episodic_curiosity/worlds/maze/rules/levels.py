"""A pool of levels on the device, with the tables that the rules look up in every step.

Shapes: L levels, H x W cells, S spawns, G goals, R prepared starts, M items.
"""

from functools import lru_cache
from typing import Any, NamedTuple

import torch
from numpy.typing import NDArray
from torch import Tensor

from episodic_curiosity.support.machine import check_memory
from episodic_curiosity.worlds.base import Split
from episodic_curiosity.worlds.maze.levels.layouts import MazeLayout
from episodic_curiosity.worlds.maze.levels.paths import UNREACHABLE
from episodic_curiosity.worlds.maze.levels.pool import make_pool, pool_from_text, room_pool
from episodic_curiosity.worlds.maze.levels.puzzles import PuzzleLayout
from episodic_curiosity.worlds.maze.levels.stored import LevelPool
from episodic_curiosity.worlds.maze.rules.body import Ground, make_ground
from episodic_curiosity.worlds.maze.tasks import MazeTask

LEVEL_BYTES = 2_000  # of a maze of 9 x 9 cells; larger ones have more
NUM_LEVELS: dict[Split, int] = {
    "r-network": 5000,
    "train": 5000,
    "validation": 1000,
    "test": 1000,
}


class Levels(NamedTuple):
    """LevelPool as tensors; a cell is given as its index y * W + x."""

    num_levels: int  # L
    ground: Ground
    cells: Tensor  # (L, H * W) uint8
    doors: Tensor  # (L, H * W) uint8
    door_colours: Tensor  # (L, D) uint8
    spawns: Tensor  # (L, S) int64 cells, -1 for padding
    goals: Tensor  # (L, G) int64 cells, usable ones first
    num_goals: Tensor  # (L,) int64
    far_enough: Tensor  # (L, G, S) bool, the spawns that are allowed with each goal
    starts: Tensor  # (L, R) int64 cells; R = 0 if none are prepared
    start_doors: Tensor  # (L, R) int64 bit masks
    item_sprite: Tensor  # (L, M) uint8
    item_position: Tensor  # (L, M, 2) float32


def find_pool(
    task: MazeTask, *, layout: str | None, num_levels: int | None, level_seed: int, split: Split
) -> LevelPool:
    """Returns the levels of a task: a custom layout, the room of dense-2 or generated ones."""
    if layout is not None:
        if task.rule != "goal":
            raise ValueError("a custom layout needs a task with a goal, not keys or objects")
        return pool_from_text(
            layout,
            doors=task.has_doors,
            min_goal_distance=task.min_goal_distance,
            seed=level_seed,
        )
    if task.layout is None:
        return room_pool()
    count = NUM_LEVELS[split] if num_levels is None else num_levels
    what, cpu = f"a pool of {count:,} levels", torch.device("cpu")
    check_memory(what, count * LEVEL_BYTES, cpu, "lower `num_levels`")
    return _drawn_pool(task.layout, count, level_seed, split)


@lru_cache(maxsize=4)  # the worlds of one run share their levels
def _drawn_pool(
    layout: MazeLayout | PuzzleLayout, num_levels: int, seed: int, split: Split
) -> LevelPool:
    return make_pool(layout, num_levels=num_levels, seed=seed, split=split)


def make_levels(task: MazeTask, pool: LevelPool, device: torch.device) -> Levels:
    """Moves a pool to the device and builds its tables."""

    def tensor(array: NDArray[Any]) -> Tensor:
        return torch.from_numpy(array).to(device)

    goals, distance = tensor(pool.goals).long(), tensor(pool.distance)
    return Levels(
        num_levels=len(pool.cells),
        ground=make_ground(pool.cells, task.theme, task.slab, device),
        cells=tensor(pool.cells).flatten(1),
        doors=tensor(pool.doors).flatten(1),
        door_colours=tensor(pool.door_colours),
        spawns=tensor(pool.spawns).long(),
        goals=goals,
        num_goals=(goals >= 0).sum(1),
        far_enough=(distance >= task.min_goal_distance) & (distance != UNREACHABLE),
        starts=tensor(pool.starts).long(),
        start_doors=tensor(pool.start_doors),
        item_sprite=tensor(pool.item_sprite),
        item_position=tensor(pool.item_position),
    )
