"""The tiles and the sky as one lookup table for the renderers.

A texel is red | green << 8 | blue << 16. Shapes: S x S pixels of a tile.
"""

import math
from functools import cache

import torch
from torch import Tensor
from torch.nn import functional

from episodic_curiosity.worlds.ant.textures import NUM_TEXTURES, SIZE, textures

NUM_LEVELS = SIZE.bit_length()  # mipmap levels, each half the size of the one before
# A level of side * side texels starts at offset side * side, after the coarser ones.
TILE_TEXELS = 2 * SIZE * SIZE
FAR = NUM_TEXTURES  # the mean of all tiles, for pixels that cover many
# The sky comes after the tiles, indexed by the sine of the elevation, nadir first.
SKY = (NUM_TEXTURES + 1) * TILE_TEXELS
SKY_TEXELS = 1024


@cache
def make_texels() -> Tensor:
    """(SKY + SKY_TEXELS,) int32, on the CPU."""
    tiles = torch.from_numpy(textures().copy()).permute(0, 3, 1, 2).float()  # (190, 3, S, S)
    tiles = torch.cat((tiles, tiles.mean((0, 2, 3)).expand(1, SIZE, SIZE, 3).movedim(3, 1)))
    table = torch.zeros(NUM_TEXTURES + 1, TILE_TEXELS, dtype=torch.int32)
    for level in range(NUM_LEVELS):
        side = SIZE >> level
        smaller = functional.avg_pool2d(tiles, 1 << level)
        table[:, side * side : 2 * side * side] = _pack(smaller).flatten(1)
    return torch.cat((table.flatten(), _pack(_sky()).flatten()))


def _sky() -> Tensor:
    """(1, 3, SKY_TEXELS): MuJoCo's gradient from a black nadir to a white zenith."""
    sine = (torch.arange(SKY_TEXELS) + 0.5) * (2 / SKY_TEXELS) - 1
    elevation = sine.asin() / (math.pi / 2)  # -1..1
    brightness = 0.5 + elevation / (2 * (1 + elevation**2)).sqrt()
    return (255 * brightness).expand(1, 3, -1)


def _pack(pictures: Tensor) -> Tensor:
    """(P, 3, ...) in 0..255 to (P, ...) int32."""
    red, green, blue = pictures.round().to(torch.int32).unbind(1)
    return red | green << 8 | blue << 16
