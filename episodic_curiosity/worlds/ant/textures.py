"""The 190 pictures a floor tile can show, made by code: ten patterns, each in 19 ways.

Shapes: S x S pixels of a tile, top row first.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

Plane = NDArray[np.floating[Any]]
Shade = NDArray[np.int64]

SIZE = 128  # S
FINE = 2 * SIZE  # painted at, then averaged, which smooths the edges
NUM_TEXTURES = 190

_WALK = (np.arange(FINE, dtype=np.float32) + 0.5) / FINE
X, Y = np.meshgrid(_WALK, _WALK)  # 0..1, Y downwards


@cache
def textures() -> NDArray[np.uint8]:
    """(190, S, S, 3), the same in every process; do not write to them."""
    rng = np.random.default_rng(190)
    pictures = [paint(PATTERNS[n % len(PATTERNS)], rng) for n in range(NUM_TEXTURES)]
    tiles = np.stack(pictures).astype(np.uint8)
    tiles.flags.writeable = False
    return tiles


def paint(pattern: Callable[[np.random.Generator], Shade], rng: np.random.Generator) -> Plane:
    """(S, S, 3) in 0..255."""
    fine = palette(rng)[pattern(rng)]  # (FINE, FINE, 3)
    step = FINE // SIZE
    small: Plane = fine.reshape(SIZE, step, SIZE, step, 3).mean((1, 3), dtype=np.float32)
    return small


def palette(rng: np.random.Generator) -> Plane:
    """(4, 3): colours of different hues and clearly different brightness, in random order."""
    hue = rng.uniform() + np.array([0.0, 0.37, 0.61, 0.83]) + rng.uniform(-0.1, 0.1, 4)
    ramp = np.abs((hue[:, None] * 6 + np.array([0.0, 4.0, 2.0])) % 6 - 3) - 1  # (4, 3)
    pure = ramp.clip(0, 1)
    brightness = np.array([0.95, 0.72, 0.5, 0.28])
    saturation = rng.uniform(0.35, 0.95, 4)
    colours = 255 * brightness[:, None] * (1 - saturation[:, None] * (1 - pure))
    return rng.permutation(colours).astype(np.float32)


# Each pattern says which of the four colours a pixel has, (FINE, FINE).


def stripes(rng: np.random.Generator) -> Shade:
    turn, number = rng.uniform(0, np.pi), rng.integers(3, 8)
    along = number * (X * np.cos(turn) + Y * np.sin(turn)) + rng.uniform()
    return in_turn(along, rng.integers(2, 5))


def checks(rng: np.random.Generator) -> Shade:
    columns, rows = rng.integers(2, 7, 2)
    return in_turn(np.floor(X * columns) + np.floor(Y * rows), rng.integers(2, 5))


def patchwork(rng: np.random.Generator) -> Shade:
    columns, rows = rng.integers(3, 8, 2)
    return pick(rng.integers(0, 4, (rows, columns)), Y * rows, X * columns)


def dots(rng: np.random.Generator) -> Shade:
    number = rng.integers(2, 6)
    column = X * number
    row = Y * number + 0.5 * rng.integers(0, 2) * (np.floor(column) % 2)
    radius = np.hypot(column % 1 - 0.5, row % 1 - 0.5)
    outer = rng.uniform(0.3, 0.46)
    return np.where(radius < outer * rng.uniform(0.3, 0.6), 2, radius < outer).astype(np.int64)


def rings(rng: np.random.Generator) -> Shade:
    x, y = rng.uniform(0.2, 0.8, 2)
    return in_turn(np.hypot(X - x, Y - y) * rng.integers(4, 11), rng.integers(2, 5))


def fan(rng: np.random.Generator) -> Shade:
    x, y = rng.uniform(0.3, 0.7, 2)
    turn = np.arctan2(Y - y, X - x) / (2 * np.pi)
    twist = rng.uniform(-1.5, 1.5) * np.hypot(X - x, Y - y)
    return in_turn((turn + twist) * 4 * rng.integers(1, 5), rng.choice([2, 4]))


def waves(rng: np.random.Generator) -> Shade:
    a, b = (X, Y) if rng.integers(2) else (Y, X)
    bend = rng.uniform(0.3, 1.0) * np.sin(2 * np.pi * (rng.integers(1, 4) * a + rng.uniform()))
    return in_turn(rng.integers(3, 8) * b + bend, rng.integers(2, 5))


def bricks(rng: np.random.Generator) -> Shade:
    rows, columns = rng.integers(4, 8), rng.integers(2, 5)
    along = X * columns + 0.5 * (np.floor(Y * rows) % 2)
    brick = pick(rng.integers(1, 4, (rows, columns + 1)), Y * rows, along)
    return np.where((along % 1 < 0.06) | (Y * rows % 1 < 0.12), 0, brick)


def pebbles(rng: np.random.Generator) -> Shade:
    first = second = np.full_like(X, np.inf)  # squared distances to the two nearest centres
    stone = np.zeros(X.shape, np.int64)
    for x, y in rng.uniform(0, 1, (rng.integers(12, 40), 2)).astype(np.float32):
        distance = (X - x) ** 2 + (Y - y) ** 2
        stone = np.where(distance < first, rng.integers(1, 4), stone)
        second = np.minimum(second, np.maximum(first, distance))
        first = np.minimum(first, distance)
    return np.where(np.sqrt(second) - np.sqrt(first) < 0.025, 0, stone)


def triangles(rng: np.random.Generator) -> Shade:
    number = rng.integers(2, 6)
    column, row = X * number, Y * number
    colours = rng.integers(0, 4, (2, number, number))
    above, below = (pick(half, row, column) for half in colours)
    return np.where(column % 1 + row % 1 < 1, above, below)


def in_turn(along: Plane, count: int | np.int64) -> Shade:
    """Another of `count` colours with every whole number."""
    shade: Shade = np.floor(along).astype(np.int64) % count
    return shade


def pick(colours: Shade, row: Plane, column: Plane) -> Shade:
    """The colour of the cell that a place is in."""
    shade: Shade = colours[row.astype(np.int64), column.astype(np.int64)]
    return shade


PATTERNS = (
    stripes,
    checks,
    patchwork,
    dots,
    rings,
    fan,
    waves,
    bricks,
    pebbles,
    triangles,
)
