"""Starts far from the goal, for builds of Lab without the authors' minGoalDistance.

A layout of Lab's explore levels has many possible goals `G` and starts `P`, from which Lab
draws. The rewritten layout has one goal and the starts that are far from it, so that every
spawn and respawn is far from the goal.
"""

import random
from collections.abc import Sequence

WALL, START, GOAL, FLOOR = "*PG "
GridCell = tuple[int, int]  # row, column


def with_far_starts(layout: str, distance: int, seed: int) -> str:
    """Keeps one goal, drawn by the seed, and the starts at least `distance` cells from it."""
    rows = layout.splitlines()
    goals = [cell for cell in _cells(rows) if _at(rows, cell) == GOAL]
    random.Random(seed).shuffle(goals)
    for goal in goals:
        lengths = path_lengths(rows, goal)
        far = {cell for cell, length in lengths.items() if length >= distance}
        if any(_at(rows, cell) == START for cell in far):
            return _rewritten(rows, goal, far)
    raise ValueError(f"no goal of this layout has a start at least {distance} cells away")


def path_lengths(rows: Sequence[str], goal: GridCell) -> dict[GridCell, int]:
    """Path length from the goal to every reachable cell; doors count as open."""
    lengths = {goal: 0}
    reached = [goal]
    for row, column in reached:  # breadth-first: the list grows while iterating
        for down, right in ((-1, 0), (1, 0), (0, -1), (0, 1)):
            cell = (row + down, column + right)
            if cell not in lengths and _at(rows, cell) != WALL:
                lengths[cell] = lengths[row, column] + 1
                reached.append(cell)
    return lengths


def _rewritten(rows: Sequence[str], goal: GridCell, far: set[GridCell]) -> str:
    """Replaces all other goals, and the starts that are not far, by floor."""
    lines = [list(row) for row in rows]
    for cell in _cells(rows):
        is_start, is_goal = _at(rows, cell) == START, _at(rows, cell) == GOAL
        if (is_start and cell not in far) or (is_goal and cell != goal):
            lines[cell[0]][cell[1]] = FLOOR
    return "".join("".join(line) + "\n" for line in lines)


def _cells(rows: Sequence[str]) -> list[GridCell]:
    return [(row, column) for row, line in enumerate(rows) for column in range(len(line))]


def _at(rows: Sequence[str], cell: GridCell) -> str:
    row, column = cell
    inside = 0 <= row < len(rows) and 0 <= column < len(rows[row])
    return rows[row][column] if inside else WALL
