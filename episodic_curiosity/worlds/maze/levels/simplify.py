"""Simplifies corridors: removes dead ends, then bends that leave a line and return to it.

Shapes: B mazes, H x W cells. Connectors count as open, but not as corridors.
"""

from collections.abc import Iterator
from itertools import product

import numpy as np
from numpy.typing import NDArray

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]


def num_open_neighbours(is_open: Bools) -> NDArray[np.uint8]:
    """The number of open neighbours, 0..4, of each cell, (B, H, W); outside counts as shut."""
    padded = np.pad(is_open, ((0, 0), (1, 1), (1, 1))).view(np.uint8)
    south, north = padded[:, :-2, 1:-1], padded[:, 2:, 1:-1]
    west, east = padded[:, 1:-1, :-2], padded[:, 1:-1, 2:]
    return south + north + west + east


def without_dead_ends(corridor: Bools, others: Bools) -> Bools:
    """Walls up corridor cells with at most one open neighbour, until there are none."""
    corridor = corridor.copy()
    pending = np.arange(len(corridor))
    while len(pending):
        now = corridor[pending]
        dead = now & (num_open_neighbours(now | others[pending]) <= 1)
        corridor[pending] = now & ~dead
        pending = pending[dead.any(axis=(1, 2))]
    return corridor


def without_bends(corridor: Bools, others: Bools) -> Bools:
    """Replaces each corridor that leaves a straight line and returns to it by that line.

    Removes one bend per maze at a time, narrowest first, until none is left. DeepMind Lab keeps
    a second bend in about 3% of mazes.
    """
    num_mazes, height, width = corridor.shape
    bends_by_size = list(_bends(height, width))
    result = corridor.reshape(num_mazes, height * width).copy()
    others = others.reshape(result.shape)
    pending = np.arange(num_mazes)
    while len(pending):
        now = result[pending]
        is_open = now | others[pending]
        degree = num_open_neighbours(is_open.reshape(-1, height, width)).reshape(now.shape)
        passage = now & (degree == 2)
        found = np.zeros(len(pending), bool)
        for feet, detour, shortcut in bends_by_size:
            rest = np.flatnonzero(~found)
            fits = now[rest][:, feet].all(axis=-1) & passage[rest][:, detour].all(axis=-1)
            fits &= ~is_open[rest][:, shortcut].any(axis=-1)  # (mazes, bends)
            hit = fits.any(axis=1)
            bend, maze = fits[hit].argmax(axis=1), pending[rest[hit], None]
            result[maze, detour[bend]] = False
            result[maze, shortcut[bend]] = True
            found[rest[hit]] = True
        pending = pending[found]
    return result.reshape(corridor.shape)


def _bends(height: int, width: int) -> Iterator[tuple[Ints, Ints, Ints]]:
    """Yields the feet, detours and shortcuts of all bends of a size: indices, one row per bend.

    Sizes ascend. The feet are two lattice cells in line, the shortcut is between them, and the
    detour runs parallel to it at a distance of two cells.
    """
    sides = (((0, 2), (1, 0)), ((0, 2), (-1, 0)), ((2, 0), (0, 1)), ((2, 0), (0, -1)))
    for size in range(1, max(height, width) // 2):
        feet, detours, shortcuts = [], [], []
        for y, x, ((along_y, along_x), (out_y, out_x)) in product(
            range(1, height, 2), range(1, width, 2), sides
        ):
            far_y, far_x = y + along_y * size, x + along_x * size
            if not (far_y < height and far_x < width):
                continue
            if not (0 < y + 2 * out_y < height and 0 < x + 2 * out_x < width):
                continue
            line = [
                (y + along_y // 2 * step) * width + x + along_x // 2 * step
                for step in range(2 * size + 1)
            ]
            out = out_y * width + out_x
            feet.append([line[0], line[-1]])
            shortcuts.append(line[1:-1])
            detours.append([line[0] + out, line[-1] + out, *(cell + 2 * out for cell in line)])
        if feet:
            yield np.array(feet), np.array(detours), np.array(shortcuts)
