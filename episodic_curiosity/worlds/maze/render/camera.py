"""The camera: 90 x 73.74 degrees at every frame size, 50 units above the floor.

Both renderers share these tables of rows and columns.
"""

from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from episodic_curiosity.worlds.maze.render.textures import NUM_MIPS, TILE_SIZE

EYE = 50.0
TAN_X, TAN_Y = 1.0, 0.75  # tangents of half the field of view
FAR = 1e6  # depth if nothing was hit
NEAR = 4.0  # near clipping depth
TILE_UNITS = 100.0  # side of a wall or floor tile

RowsF = NDArray[np.float32]
RowsI = NDArray[np.int32]


class Camera(NamedTuple):
    across: RowsF  # (w,) tangent of each column's angle to the right
    upright: RowsF  # (w,) 1 / sqrt(1 + across ** 2)
    bearing: RowsF  # (w,) each column's angle to the left in turns, -0.125..0.125
    up: RowsF  # (h,) tangent of each row's elevation
    floor_depth: RowsF  # (h,) depth at which a row meets the floor, 0 above the horizon
    floor_mip: RowsI  # (h,) mip level of the floor in each row
    mip_depth: (
        RowsF  # (NUM_MIPS - 1,) depth beyond which a 100-unit tile uses the next mip level
    )


@cache
def make_camera(height: int, width: int) -> Camera:
    if height < 1 or width < 1:
        raise ValueError(f"frames must be at least 1 x 1 pixels, got {height} x {width}")
    across = TAN_X * (2 * (np.arange(width) + 0.5) / width - 1)
    up = TAN_Y * (1 - 2 * (np.arange(height) + 0.5) / height)
    below = up < -1e-6
    floor_depth = np.where(below, EYE / np.where(below, -up, 1), 0)
    texel = TILE_UNITS / TILE_SIZE
    # Units of floor that a pixel covers sideways and in depth.
    sideways = floor_depth * 2 * TAN_X / width
    deep = floor_depth**2 / EYE * 2 * TAN_Y / height
    spread = np.log2(np.maximum(np.sqrt(sideways * deep) / texel, 1e-6))
    mip_depth = (
        texel
        * 2 ** (np.arange(NUM_MIPS - 1) + 0.5)
        / max(2 * TAN_X / width, 2 * TAN_Y / height)
    )
    return Camera(
        across=across.astype(np.float32),
        upright=(1 / np.sqrt(1 + across**2)).astype(np.float32),
        bearing=(-np.arctan(across) / (2 * np.pi)).astype(np.float32),
        up=up.astype(np.float32),
        floor_depth=floor_depth.astype(np.float32),
        floor_mip=np.clip(np.round(spread), 0, NUM_MIPS - 1).astype(np.int32),
        mip_depth=mip_depth.astype(np.float32),
    )
