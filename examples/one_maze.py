"""One maze, walks through it and an R-network that knows it, for the tutorial's pictures.

Shapes: N environments, T places of a walk.
"""

from collections import deque
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

import episodic_curiosity as ec
from episodic_curiosity.worlds.maze.world import MazeWorld

Cell = tuple[int, int]  # (y, x)
NUM_ENVS = 64
SIZE, CELL = 15, 100  # cells per side; units per cell
SPEED = 20  # units per step, as the agent's
SMOOTH = 7  # places over which corners are rounded
ROW = 11  # of the world's mazes, one with a round through five rooms
NUM_STEPS, NUM_HELD_OUT = 600, 200
FIT = ec.FitConfig(iterations=3_000, batch_size=64, learning_rate=5e-4)


class Walk(NamedTuple):
    """Places on the floor and the directions one looks in."""

    places: NDArray[np.float32]  # (T, 2)
    yaws: NDArray[np.float32]  # (T,) degrees


class OneMaze:
    """N bodies in the same unseen maze, drawn in any size."""

    def __init__(self, height: int, width: int) -> None:
        world = ec.make_world(
            "maze/no-reward",
            num_envs=NUM_ENVS,
            seed=5,
            split="test",
            maze_size=SIZE,
            rooms=6,
            num_levels=64,
            observation_size=(height, width),
        )
        assert isinstance(world, MazeWorld)
        world.reset()
        state = world.state()
        for name, rows in state.items():
            if rows.dim():
                state[name] = rows[ROW].expand_as(rows).clone()
        state["spawned_at"] -= 1_000  # without the ring that follows a start
        world.load_state(state)
        self.world = world
        self.floor = self._find_floor()

    def views(self, walk: Walk) -> Tensor:
        """The views (T, 3, height, width) along a walk."""
        drawn = []
        for start in range(0, len(walk.places), NUM_ENVS):
            part = slice(start, start + NUM_ENVS)
            places, yaws = torch.tensor(walk.places[part]), torch.tensor(walk.yaws[part])
            missing = NUM_ENVS - len(yaws)
            step = self.world.place(
                torch.cat([places, places[:1].expand(missing, 2)]),
                torch.cat([yaws, yaws[:1].expand(missing)]),
            )
            drawn.append(step.view[: len(yaws)].clone())
        return torch.cat(drawn)

    def wander(self, num_steps: int, seed: int) -> Walk:
        """From one random cell to the next, each time by the shortest path."""
        random = np.random.default_rng(seed)
        cells = sorted(self.floor)
        path = [cells[random.integers(len(cells))]]
        while len(path) * CELL < (num_steps + 1) * SPEED:
            path += self._path(path[-1], cells[random.integers(len(cells))])[1:]
        walk = walk_through(path)
        return Walk(walk.places[:num_steps], walk.yaws[:num_steps])

    def round(self, laps: int) -> Walk:
        """The longest round, walked a number of times."""
        rounds = (
            self._path(cell, neighbour, without_step=True)
            for cell in sorted(self.floor)
            for neighbour in self._neighbours(cell)
        )
        longest = max(rounds, key=len)
        return walk_through([*longest * laps, longest[0]])

    def record(self, num_steps: int, seed: int) -> ec.Frames:
        """The views of N wanderers."""
        walks = [self.wander(num_steps, NUM_ENVS * seed + env) for env in range(NUM_ENVS)]
        views = torch.stack([self.views(walk) for walk in walks], dim=1)
        first = torch.zeros(num_steps, NUM_ENVS, dtype=torch.bool)
        first[0] = True
        return ec.Frames(views, first)

    def _find_floor(self) -> set[Cell]:
        cells = [(y, x) for y in range(SIZE) for x in range(SIZE)]
        centres = torch.tensor([[(x + 0.5) * CELL, (y + 0.5) * CELL] for y, x in cells])
        missing = -len(cells) % NUM_ENVS
        padded = torch.cat([centres, centres[:1].expand(missing, 2)]).split(NUM_ENVS)
        is_floor = torch.cat([self.world._on_floor(part) for part in padded])
        return {
            cell for cell, found in zip(cells, is_floor[: len(cells)], strict=True) if found
        }

    def _neighbours(self, cell: Cell) -> list[Cell]:
        y, x = cell
        around = ((y, x + 1), (y + 1, x), (y, x - 1), (y - 1, x))
        return [each for each in around if each in self.floor]

    def _path(self, start: Cell, end: Cell, *, without_step: bool = False) -> list[Cell]:
        """The shortest path; `without_step` from start to end, the shortest way round."""
        before: dict[Cell, Cell | None] = {start: None}
        waiting = deque([start])
        while waiting:
            cell = waiting.popleft()
            for neighbour in self._neighbours(cell):
                is_barred = without_step and (cell, neighbour) == (start, end)
                if neighbour not in before and not is_barred:
                    before[neighbour] = cell
                    waiting.append(neighbour)
        path: list[Cell] = []
        cell_before: Cell | None = end if end in before else None
        while cell_before is not None:
            path.insert(0, cell_before)
            cell_before = before[cell_before]
        return path


def walk_through(path: list[Cell]) -> Walk:
    """A walk at constant speed through the centres of cells, with rounded corners."""
    centres = (np.array(path)[:, ::-1] + 0.5) * CELL
    along = np.arange(0, (len(path) - 1) * CELL, SPEED) / CELL
    cells = np.arange(len(path))
    places = np.stack([np.interp(along, cells, axis) for axis in centres.T], axis=1)
    places = smoothed(places)
    ahead = smoothed(np.gradient(places, axis=0))
    yaws = np.degrees(np.arctan2(ahead[:, 1], ahead[:, 0]))
    return Walk(places.astype(np.float32), yaws.astype(np.float32))


def smoothed(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The moving average of (T, 2) values."""
    padded = np.pad(values, ((SMOOTH // 2, SMOOTH // 2), (0, 0)), "edge")
    window = np.ones(SMOOTH) / SMOOTH
    return np.stack([np.convolve(axis, window, "valid") for axis in padded.T], axis=1)


def fit(maze: OneMaze) -> tuple[ec.RNetwork, ec.Frames, float]:
    """An R-network fitted to wanderers, other ones to test it, and its accuracy on those."""
    held_out = maze.record(NUM_HELD_OUT, seed=1)
    torch.manual_seed(0)
    r_network = ec.RNetwork(tuple(held_out.all_views.shape[2:]), **ec.SMALL)
    report = ec.fit_r_network(r_network, maze.record(NUM_STEPS, 0), FIT, held_out=held_out)
    return r_network, held_out, report.held_out_accuracy
