"""Renders views with torch operations, for torch.compile on a GPU; never synchronises.

Shapes: N frames, h x w pixels.
"""

import math
from typing import NamedTuple

import torch
from torch import Tensor

from episodic_curiosity.worlds.ant.scene import (
    ASPECT,
    FIELD_OF_VIEW,
    FLOOR_TILES,
    TILE,
    Scene,
    camera_axes,
    tile_texture,
)
from episodic_curiosity.worlds.ant.textures import (
    FAR,
    NUM_LEVELS,
    SIZE,
    SKY,
    SKY_TEXELS,
    TILE_TEXELS,
)


class Lens(NamedTuple):
    """Directions of the pixels' rays in the camera's frame, at a depth of 1."""

    right: Tensor  # (w,) float32
    up: Tensor  # (h,) float32
    shorten: Tensor  # (h, w) float32, one over the length of the ray
    pixel: float  # a pixel's height


def make_lens(height: int, width: int, device: torch.device) -> Lens:
    """The field of view of 160 x 120 at every size: other aspect ratios distort the picture."""
    top = math.tan(math.radians(FIELD_OF_VIEW / 2))
    up = top * (1 - 2 * (torch.arange(height) + 0.5) / height)
    right = ASPECT * top * (2 * (torch.arange(width) + 0.5) / width - 1)
    shorten = (1 + right**2 + up[:, None] ** 2).rsqrt()
    return Lens(right.to(device), up.to(device), shorten.to(device), 2 * top / height)


def render(lens: Lens, texels: Tensor, scene: Scene) -> Tensor:
    """(N, 3, h, w) uint8."""
    axes = camera_axes(scene.turn)[..., None, None]  # (N, 3, 3, 1, 1)
    x, y, height = scene.position[..., None, None].unbind(1)  # (N, 1, 1)
    along = (axes[:, 2] + axes[:, 1] * lens.up[:, None]) + axes[:, 0] * lens.right
    east, north, rise = along.unbind(1)  # (N, h, w), of the pixels' rays
    # The depth at which a ray meets the floor. A ray that does not point down meets it far
    # beyond the floor's edge, where there is sky.
    shallow = 1 / (-rise).clamp(min=1e-9)
    depth = height.clamp(min=1e-3) * shallow
    column = (x + depth * east) * (1 / TILE)
    row = (y + depth * north) * (-1 / TILE)
    is_floor = torch.maximum(column.abs(), row.abs()) < FLOOR_TILES / 2

    # A pixel covers pixel * depth ** 2 / height of the floor along its ray. The mipmap level
    # is log2 of that in texels, rounded: the float's exponent.
    covered = depth * shallow * (math.sqrt(2) * SIZE / TILE * lens.pixel)
    level = (covered.view(torch.int32) >> 23) - 127
    side = SIZE >> level.clamp(0, NUM_LEVELS - 1)
    tile_column, tile_row = column.floor(), row.floor()
    tile = tile_texture(
        scene.floor[:, None, None],
        tile_column.to(torch.int32),
        tile_row.to(torch.int32),
        scene.floor_period,
    )
    tile = torch.where(level < NUM_LEVELS, tile, FAR)
    left, right, across = _neighbours(column - tile_column, side)
    upper, lower, down = _neighbours(row - tile_row, side)
    upper = tile * TILE_TEXELS + (side + upper) * side
    lower = tile * TILE_TEXELS + (side + lower) * side

    sky = ((1 + rise * lens.shorten) * (SKY_TEXELS / 2)).to(torch.int32)
    sky = SKY + sky.clamp(0, SKY_TEXELS - 1)
    corners = [
        texels[torch.where(is_floor, line + place, sky)]
        for line in (upper, lower)
        for place in (left, right)
    ]
    return torch.stack([_blend(corners, shift, across, down) for shift in (0, 8, 16)], dim=1)


def _neighbours(place: Tensor, side: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The texels on both sides of a point in 0..1, and the weight of the second."""
    texel = (place * side - 0.5).clamp(min=0)
    first = texel.to(torch.int32)
    return first, torch.minimum(first + 1, side - 1), texel - first


def _blend(corners: list[Tensor], shift: int, across: Tensor, down: Tensor) -> Tensor:
    """Interpolates one channel of four texels, (N, h, w) uint8."""
    a, b, c, d = ((corner >> shift & 255).to(torch.float32) for corner in corners)
    above = a + (b - a) * across
    return (above + (c + (d - c) * across - above) * down + 0.5).to(torch.uint8)
