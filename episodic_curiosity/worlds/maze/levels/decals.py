"""Pictures on the walls, which make places distinguishable.

Shapes: L levels, H x W cells, F wall faces.
"""

import numpy as np

from episodic_curiosity.worlds.lab.elements import CellKind
from episodic_curiosity.worlds.lab.text import Bytes
from episodic_curiosity.worlds.maze.levels.draws import random_bits
from episodic_curiosity.worlds.maze.levels.layouts import Draw, Keys

NUM_DECALS = 80


def draw_decals(cells: Bytes, keys: Keys) -> Bytes:
    """Places distinct images on a random tenth of the wall faces: (L, H, W, 4)."""
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
