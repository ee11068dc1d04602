"""Random scenes of every kind of maze, for the tests of the pictures."""

from typing import NamedTuple

import numpy as np
import torch

from episodic_curiosity.worlds.lab.elements import CellKind, DoorStyle, Sprite, Theme
from episodic_curiosity.worlds.maze.levels.layouts import MazeLayout
from episodic_curiosity.worlds.maze.levels.pool import ROOM_THEME, make_pool, room_pool
from episodic_curiosity.worlds.maze.levels.puzzles import PuzzleLayout
from episodic_curiosity.worlds.maze.levels.stored import LevelPool
from episodic_curiosity.worlds.maze.render.scene import NUM_MARKS, Scene

KINDS = ("sparse", "doors", "dense-1", "dense-2")


class Scenes(NamedTuple):
    theme: Theme
    pool: LevelPool
    scene: Scene


def random_scenes(kind: str, num_frames: int, seed: int = 0, num_levels: int = 12) -> Scenes:
    rng = np.random.default_rng(seed)
    theme = Theme()
    if kind == "dense-2":
        theme, pool = ROOM_THEME, room_pool()
    elif kind == "dense-1":
        theme = Theme(door_style=DoorStyle.FENCE)
        pool = make_pool(PuzzleLayout(), num_levels=num_levels, seed=1, split="train")
    else:
        layout = MazeLayout(doors=kind == "doors")
        pool = make_pool(layout, num_levels=num_levels, seed=1, split="train")
    level = rng.integers(0, len(pool.cells), num_frames)

    def free_places(count: int, margin: float) -> np.ndarray:
        """(num_frames, count, 2) places on the floor, not in door cells."""
        places = np.empty((num_frames, count, 2))
        for frame in range(num_frames):
            y, x = np.nonzero(pool.cells[level[frame]] <= CellKind.ROOM)
            pick = rng.integers(0, len(x), count)
            local = rng.uniform(margin, 1 - margin, (count, 2))
            places[frame] = (
                theme.origin + (np.stack([x[pick], y[pick]], 1) + local) * theme.cell
            )
        return places

    if kind == "dense-1":
        sprite, sprite_position = pool.item_sprite[level], pool.item_position[level]
    elif kind == "dense-2":
        sprite = rng.integers(int(Sprite.HAT), int(Sprite.BALLOON) + 1, (num_frames, 20))
        sprite_position = free_places(20, 0.2)
    else:
        sprite = np.full((num_frames, 1), Sprite.GOAL)
        sprite_position = free_places(1, 0.5)
    marks = free_places(NUM_MARKS, 0.5)
    mark_side = rng.integers(0, 4, (num_frames, NUM_MARKS))
    cell = np.asarray(theme.cell)
    # A shot hits the middle of the wall beyond some floor cell, or nothing: still drawn there.
    outward = np.array([(-1, 0), (0, -1), (1, 0), (0, 1)])[mark_side]
    mark_position = marks + outward * cell / 2
    age = rng.uniform(0, 12, (num_frames, NUM_MARKS))
    age = np.where(rng.random(age.shape) < 0.3, age / 20, age)
    age[::2] = np.inf
    scene = Scene(
        level=torch.from_numpy(level),
        position=torch.from_numpy(free_places(1, 0.17)[:, 0]).float(),
        yaw=torch.from_numpy(rng.uniform(0, 360, num_frames)).float(),
        wall_look=torch.from_numpy(rng.integers(0, 20, num_frames)).to(torch.uint8),
        floor_look=torch.from_numpy(rng.integers(0, 20, num_frames)).to(torch.uint8),
        open_doors=torch.from_numpy(rng.integers(0, 2**62, num_frames)),
        sprite=torch.from_numpy(np.asarray(sprite)).to(torch.uint8),
        sprite_position=torch.from_numpy(np.asarray(sprite_position)).float(),
        time=torch.from_numpy(rng.uniform(0, 120, num_frames)).float(),
        mark_position=torch.from_numpy(mark_position).float(),
        mark_side=torch.from_numpy(mark_side).to(torch.uint8),
        mark_age=torch.from_numpy(age).float(),
        spawn_age=torch.from_numpy(rng.exponential(1.0, num_frames)).float(),
    )
    return Scenes(theme, pool, scene)
