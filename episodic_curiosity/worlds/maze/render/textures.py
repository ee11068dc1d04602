"""All textures of the mazes in one tensor, so that any surface is read by one gather.

A tile is 64 x 64 texels plus four mip levels (32, 16, 8, 4), which avoid aliasing on distant
surfaces. A texel is red | green << 8 | blue << 16 | opaque << 24.
"""

from functools import cache
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from episodic_curiosity.worlds.lab.elements import COLOURS, Sprite
from episodic_curiosity.worlds.maze.levels.pool import NUM_DECALS
from episodic_curiosity.worlds.maze.render import paint, paint_items
from episodic_curiosity.worlds.maze.render.scene import NUM_FLOOR_LOOKS, NUM_WALL_LOOKS

TILE_BITS = 6
TILE_SIZE = 1 << TILE_BITS
NUM_MIPS = 5
MIP_OFFSETS = (0, 4096, 5120, 5376, 5440)  # of each mip level within its tile
TILE_TEXELS = 5456
OPAQUE = 1 << 24

# The first tile of each kind; decals count from 1, so decal d is tile DECALS + d - 1.
WALLS = 0
FLOORS = WALLS + NUM_WALL_LOOKS
DECALS = FLOORS + NUM_FLOOR_LOOKS
SPRITES = DECALS + NUM_DECALS
FENCES = SPRITES + len(Sprite)
POSTS = FENCES + len(COLOURS)  # of open fences
SLAB = POSTS + len(COLOURS)
MARK = SLAB + 1
NUM_TILES = MARK + 1
# The sky follows the tiles.
SKY = NUM_TILES * TILE_TEXELS
SKY_ROWS, SKY_COLUMNS = (size // 2 for size in paint.SKY_SHAPE)

# A look is 4 * style + 2 * colour + bright, see WALL_STYLES and FLOOR_STYLES in paint.py.
CORRIDOR_LOOK = 0  # green panels above orange hexagons
BRIGHT_BLUE_FLOOR = 5  # style 2
BRIGHT_RED_WALL = 17  # style 5


class Item(NamedTuple):
    """Size and motion of a billboard, in units."""

    width: float
    height: float
    base: float  # mean height of its lower edge above the floor
    bob: float  # amplitude of its vertical motion
    thickness: float  # fraction of its width when seen edge-on; 1: no spin


BOB_PERIOD, SPIN_PERIOD = 1.26, 2.05  # engine seconds
ITEMS = (
    Item(1.0, 1.0, 0.0, 0.0, 1.0),  # NONE
    Item(25.0, 32.5, 19.0, 4.0, 0.7),  # GOAL
    Item(42.5, 92.3, 19.0, 4.0, 0.3),  # LOLLY
    *(Item(47.0, 83.0, 19.0, 4.0, 0.15) for _ in COLOURS),  # KEY_...
    Item(62.0, 37.0, 19.0, 0.0, 1.0),  # HAT
    Item(40.0, 51.0, 19.0, 0.0, 1.0),  # CAN
    Item(53.0, 23.0, 19.0, 0.0, 1.0),  # CAKE
    Item(45.0, 60.0, 19.0, 0.0, 1.0),  # BALLOON
)


class Textures(NamedTuple):
    texels: Tensor  # (SKY + SKY_ROWS * SKY_COLUMNS,) int32
    items: Tensor  # (len(Sprite), 5) float32, the fields of Item

    def to(self, device: torch.device | str) -> "Textures":
        return Textures(self.texels.to(device), self.items.to(device))


@cache
def textures() -> Textures:
    """Paints all textures on the CPU, once per process."""
    pictures = [
        *map(paint.wall, range(NUM_WALL_LOOKS)),
        *map(paint.floor, range(NUM_FLOOR_LOOKS)),
        *map(paint_items.decal, range(NUM_DECALS)),
        np.zeros((paint.SIZE, paint.SIZE, 4), np.float32),  # NONE
        paint_items.goal(),
        paint_items.lolly(),
        *map(paint_items.key, COLOURS),
        paint_items.hat(),
        paint_items.can(),
        paint_items.cake(),
        paint_items.balloon(),
        *map(paint_items.fence, COLOURS),
        *map(paint_items.post, COLOURS),
        paint.slab(),
        paint_items.circuit(),
    ]
    tiles = np.stack(pictures)  # (NUM_TILES, S, S, 4)
    copies = []
    for _ in range(NUM_MIPS):
        tiles = halve(tiles)
        copies.append(pack(tiles).reshape(NUM_TILES, -1))
    texels = np.concatenate(
        [np.concatenate(copies, 1).ravel(), pack(halve(paint.sky())).ravel()]
    )
    return Textures(torch.from_numpy(texels), torch.tensor(ITEMS))


def halve(pictures: paint.Image) -> paint.Image:
    """Averages blocks of 2 x 2 pixels of (..., S, S, 4)."""
    *batch, rows, columns, channels = pictures.shape
    quads = pictures.reshape(*batch, rows // 2, 2, columns // 2, 2, channels)
    smaller: paint.Image = quads.mean((-4, -2), dtype=np.float32)
    return smaller


def pack(pictures: paint.Image) -> NDArray[np.int32]:
    """Converts (..., 4) float32 to texels; alpha from 40% is opaque, to keep thin shapes."""
    red, green, blue = np.moveaxis(np.clip(pictures[..., :3], 0, 255).astype(np.int32), -1, 0)
    opaque = (pictures[..., 3] >= 0.4 * 255).astype(np.int32)
    texels: NDArray[np.int32] = red | green << 8 | blue << 16 | opaque << 24
    return texels
