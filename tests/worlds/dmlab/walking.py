"""Somebody who reads a layout and knows the way."""

import math
from collections.abc import Iterator

import torch
from torch import Tensor

from episodic_curiosity.worlds.base import World
from episodic_curiosity.worlds.dmlab.far_starts import GridCell, path_lengths

NEAR = 15.0  # units from the middle of a cell to have reached it
AIM = 5.0  # degrees off that still are straight ahead


class Walker:
    """Visits the places of goals in turn, until one of them pays."""

    def __init__(self, layout: str, position: Tensor, goal: GridCell | None = None) -> None:
        self.rows = layout.splitlines()
        self._here = self.cell(position)
        goals = list(self.places("G")) if goal is None else [goal]
        self._left = sorted(goals, key=self.distance)
        self.goal = self._left.pop(0)
        self.way = self._way()

    def places(self, kind: str) -> Iterator[GridCell]:
        for row, line in enumerate(self.rows):
            for column, character in enumerate(line):
                if character == kind:
                    yield row, column

    def cell(self, position: Tensor) -> GridCell:
        x, y, _ = position.tolist()
        return len(self.rows) - 1 - int(y // 100), int(x // 100)

    def distance(self, cell: GridCell) -> int:
        """Cells on the way from the only goal, or from here where there are several."""
        goals = list(self.places("G"))
        return path_lengths(self.rows, goals[0] if len(goals) == 1 else self._here)[cell]

    def act(self, position: Tensor, heading: float, world: World) -> Tensor:
        names = world.spec.action_names
        if not self.way:
            self._here = self.cell(position)
            self.goal = self._left.pop(0)
            self.way = self._way()
        row, column = self.way[0]
        x, y, _ = position.tolist()
        east = 100 * (column + 0.5) - x
        north = 100 * (len(self.rows) - row - 0.5) - y
        if math.hypot(east, north) < NEAR:
            self.way.pop(0)
        off = (math.degrees(math.atan2(north, east)) - heading + 180.0) % 360.0 - 180.0
        name = "forward" if abs(off) <= AIM else "look left" if off > 0 else "look right"
        return torch.tensor([names.index(name)])

    def _way(self) -> list[GridCell]:
        """The cells from here to the goal, each one step nearer to it."""
        lengths = path_lengths(self.rows, self.goal)
        way, here = [], self._here
        while here != self.goal:
            row, column = here
            around = (
                (row - 1, column),
                (row + 1, column),
                (row, column - 1),
                (row, column + 1),
            )
            here = min((cell for cell in around if cell in lengths), key=lengths.__getitem__)
            way.append(here)
        return way
