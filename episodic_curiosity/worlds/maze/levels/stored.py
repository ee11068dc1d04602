"""The storage form of levels: generated once, shared by the worlds of a run.

Shapes: L levels, H x W cells, D doors, S spawns, G goals, R prepared starts, M items.
Arrays are stored south first, [y, x]; a cell index is y * W + x.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from episodic_curiosity.worlds.lab.elements import NO_DOOR


class LevelPool(NamedTuple):
    """L levels of one layout."""

    cells: NDArray[np.uint8]  # (L, H, W) CellKind
    doors: NDArray[np.uint8]  # (L, H, W) index of the door in a door cell, else NO_DOOR
    door_colours: NDArray[np.uint8]  # (L, D), D >= 1
    decals: NDArray[np.uint8]  # (L, H, W, 4) image on each Side, 1..80, or 0 for none
    spawns: NDArray[np.int16]  # (L, S) possible start cells, padded with -1
    goals: NDArray[np.int16]  # (L, G) possible goal cells, padded with -1
    distance: NDArray[np.uint8]  # (L, G, S) path length, doors count as open; 255: none
    starts: NDArray[np.int16]  # (L, R) prepared spawns for goals[:, 0] in mazes with doors
    start_doors: NDArray[np.int64]  # (L, R) bit masks of the doors open after each start
    item_sprite: NDArray[np.uint8]  # (L, M) Sprite: the keys and the lolly of a puzzle
    item_position: NDArray[np.float32]  # (L, M, 2) world coordinates


def plain_levels(
    cells: NDArray[np.uint8],
    *,
    spawns: NDArray[Any],
    goals: NDArray[Any],
    distance: NDArray[np.uint8],
    **more: NDArray[Any],
) -> LevelPool:
    """Makes a pool; doors, decals, starts and items are empty unless given in `more`."""
    num_levels = len(cells)
    none = {
        "doors": np.full_like(cells, NO_DOOR),
        "door_colours": np.zeros((num_levels, 1), np.uint8),
        "decals": np.zeros((*cells.shape, 4), np.uint8),
        "starts": np.zeros((num_levels, 0), np.int16),
        "start_doors": np.zeros((num_levels, 0), np.int64),
        "item_sprite": np.zeros((num_levels, 0), np.uint8),
        "item_position": np.zeros((num_levels, 0, 2), np.float32),
    }
    return LevelPool(
        cells=cells,
        spawns=spawns.astype(np.int16),
        goals=goals.astype(np.int16),
        distance=distance,
        **(none | more),
    )
