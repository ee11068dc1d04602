"""A maze without pictures, for tests of its rules: one pool, one state, played by hand."""

from collections import deque

import numpy as np
import torch
from torch import Tensor

from episodic_curiosity.worlds.lab.elements import NO_DOOR, CellKind, Sprite
from episodic_curiosity.worlds.maze.levels.stored import LevelPool, plain_levels
from episodic_curiosity.worlds.maze.rules.levels import make_levels
from episodic_curiosity.worlds.maze.rules.rules import Rules, TaskSignals
from episodic_curiosity.worlds.maze.rules.state import blank_state
from episodic_curiosity.worlds.maze.tasks import COMMANDS, MazeTask

CPU = torch.device("cpu")


class Game:
    """N environments of a task on a pool."""

    def __init__(self, task: MazeTask, pool: LevelPool, num_envs: int = 1) -> None:
        self.levels = make_levels(task, pool, CPU)
        self.rules = Rules(task, self.levels, always=False)
        blank = blank_state(torch.arange(num_envs) + 12345, self.rules.num_sprites)
        self.state = self.rules.new_episode(blank)

    def place(self, x: float, y: float, yaw: float | None = None) -> None:
        rest = torch.zeros_like(self.state.velocity)
        position = torch.tensor([[x, y]]).expand_as(rest)
        self.state = self.state._replace(position=position, velocity=rest)
        if yaw is not None:
            self.state = self.state._replace(yaw=torch.full_like(self.state.yaw, yaw))

    def play(self, action: str = "idle") -> TaskSignals:
        forward, right, turn, fire = COMMANDS[action]
        count = len(self.state.yaw)
        command = torch.tensor([[forward, right, turn]]).expand(count, 3).T.contiguous()
        self.state, outcome = self.rules.play(
            self.state, command, torch.full((count,), bool(fire))
        )
        return outcome

    def reward_at(self, x: float, y: float) -> float:
        """What standing there for a step pays."""
        self.place(x, y)
        return self.play().reward[0].item()


def puzzle(
    row: str, keys: dict[int, Sprite], door_colours: list[int], lolly: int | None = None
) -> LevelPool:
    """A one-row puzzle of '*', ' ' and 'I'; items stand in the middle of the columns given."""
    kinds = {"*": CellKind.VOID, " ": CellKind.CORRIDOR, "I": CellKind.DOOR_I}
    void = [CellKind.VOID] * len(row)
    cells = np.array([[void, [kinds[character] for character in row], void]], np.uint8)
    is_door = cells == CellKind.DOOR_I
    doors = np.where(is_door, is_door.cumsum(axis=2) - 1, NO_DOOR).astype(np.uint8)
    items = list(keys.items()) + ([(lolly, Sprite.LOLLY)] if lolly is not None else [])
    return plain_levels(
        cells,
        spawns=np.array([[len(row) + 1]]),
        goals=np.array([[-1]]),
        distance=np.full((1, 1, 1), 255, np.uint8),
        doors=doors,
        door_colours=np.array([door_colours], np.uint8),
        item_sprite=np.array([[sprite for _, sprite in items]], np.uint8),
        item_position=np.array([[(100 * x + 50, 150) for x, _ in items]], np.float32),
    )


def steps_between(cells: np.ndarray, start: int, shut: set[int] | None = None) -> np.ndarray:
    """Breadth-first distances (H * W,) from a cell, not over walls, void and shut doors."""
    height, width = cells.shape
    free = ~np.isin(cells, (CellKind.WALL, CellKind.VOID)).reshape(-1)
    for cell in shut or ():
        free[cell] = False
    distance = np.full(height * width, -1)
    distance[start] = 0
    queue = deque([start])
    while queue:
        here = queue.popleft()
        for there in (here + 1, here - 1, here + width, here - width):
            if free[there] and distance[there] < 0:
                distance[there] = distance[here] + 1
                queue.append(there)
    return distance


def cells_of(position: Tensor, width: int) -> list[int]:
    """Index of the cell of each (N, 2) position in a text maze."""
    column, row = (position // 100).long().T
    return (row * width + column).tolist()
