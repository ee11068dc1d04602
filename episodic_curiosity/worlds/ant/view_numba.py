"""Renders views with Numba on a CPU: the same picture as view_torch, pixel by pixel.

Shapes: N frames, h x w pixels. Arithmetic is float32 and in the order of the torch code, so
that the two agree to the last bit almost everywhere.
"""

import math
from typing import Any, NamedTuple

import numpy as np
import torch
from numba import njit, prange
from torch import Tensor

from episodic_curiosity.support.numba_setup import cached, match_threads
from episodic_curiosity.worlds.ant import textures
from episodic_curiosity.worlds.ant.scene import FLOOR_TILES, TILE, Scene, camera_axes
from episodic_curiosity.worlds.ant.view_torch import Lens

f32, i32, u64 = np.float32, np.int32, np.uint64
# Numba compiles a module's constants into the kernel; a bare literal would be a float64.
ZERO, HALF, ONE, TWO = f32(0), f32(0.5), f32(1), f32(2)
TINY, LOWEST = f32(1e-9), f32(1e-3)
WORD = 0xFFFFFFFF


class Numbers(NamedTuple):
    """Constants of other modules: Numba's cache only notices changes in this file."""

    per_tile: Any  # tiles per unit
    half_floor: Any  # tiles
    period: int  # tiles; 0: the floor does not repeat
    sharpness: Any  # texels per pixel at a depth of 1, rounding included
    size: int
    num_textures: int
    tile_texels: int
    sky: int
    sky_texels: int


def render(lens: Lens, texels: Tensor, scene: Scene) -> Tensor:
    """(N, 3, h, w) uint8."""
    height, width = lens.shorten.shape
    numbers = Numbers(
        per_tile=f32(1 / TILE),
        half_floor=f32(FLOOR_TILES / 2),
        period=scene.floor_period or 0,
        sharpness=f32(math.sqrt(2) * textures.SIZE / TILE * lens.pixel),
        size=textures.SIZE,
        num_textures=textures.NUM_TEXTURES,
        tile_texels=textures.TILE_TEXELS,
        sky=textures.SKY,
        sky_texels=textures.SKY_TEXELS,
    )
    frames = torch.empty(len(scene.floor), 3, height, width, dtype=torch.uint8)
    match_threads()
    _render(
        numbers,
        lens.right.numpy(),
        lens.up.numpy(),
        lens.shorten.numpy(),
        texels.numpy(),
        camera_axes(scene.turn).numpy(),
        scene.position.contiguous().numpy(),  # another layout would recompile
        scene.floor.contiguous().numpy(),
        frames.numpy(),
    )
    return frames


@cached(parallel=True)
def _render(
    numbers: Any,
    right: Any,
    up: Any,
    shorten: Any,
    texels: Any,
    axes: Any,
    position: Any,
    floor: Any,
    frames: Any,
) -> None:
    num_lines = len(up)
    # Threads share lines rather than frames: there may be a single frame.
    for number in prange(len(frames) * num_lines):
        n, i = number // num_lines, number % num_lines
        middle = axes[n, 2] + axes[n, 1] * up[i]  # direction of the line's centre
        draw_line(
            numbers,
            right,
            shorten[i],
            texels,
            middle,
            axes[n, 0],
            position[n],
            floor[n],
            frames[n, :, i],
        )


@njit
def draw_line(
    numbers: Any,
    right: Any,
    shorten: Any,
    texels: Any,
    middle: Any,
    aside: Any,
    position: Any,
    floor: Any,
    line: Any,
) -> None:
    """Draws one line of a frame, (3, w)."""
    height = max(position[2], LOWEST)
    for j in range(len(right)):
        east = middle[0] + aside[0] * right[j]
        north = middle[1] + aside[1] * right[j]
        rise = middle[2] + aside[2] * right[j]
        shallow = ONE / max(-rise, TINY)
        depth = height * shallow
        column = (position[0] + depth * east) * numbers.per_tile
        row = (position[1] + depth * north) * -numbers.per_tile
        if max(abs(column), abs(row)) < numbers.half_floor:
            covered = depth * shallow * numbers.sharpness
            side = numbers.size
            while covered >= TWO and side > 0:
                covered *= HALF
                side >>= 1
            tile_column, tile_row = np.floor(column), np.floor(row)
            if side > 0:
                tile = tile_texture(numbers, floor, i32(tile_column), i32(tile_row))
            else:
                tile, side = numbers.num_textures, 1  # the mean of all tiles
            left, next_left, across = neighbours(column - tile_column, side)
            upper, lower, down = neighbours(row - tile_row, side)
            upper = tile * numbers.tile_texels + (side + upper) * side
            lower = tile * numbers.tile_texels + (side + lower) * side
            a, b = texels[u64(upper + left)], texels[u64(upper + next_left)]
            c, d = texels[u64(lower + left)], texels[u64(lower + next_left)]
        else:
            sky = i32((ONE + rise * shorten[j]) * f32(numbers.sky_texels / 2))
            a = texels[numbers.sky + min(max(sky, 0), numbers.sky_texels - 1)]
            b = c = d = a
            across = down = ZERO
        line[0, j] = blend(a & 255, b & 255, c & 255, d & 255, across, down)
        line[1, j] = blend(a >> 8 & 255, b >> 8 & 255, c >> 8 & 255, d >> 8 & 255, across, down)
        line[2, j] = blend(a >> 16, b >> 16, c >> 16, d >> 16, across, down)


@njit
def tile_texture(numbers: Any, floor: Any, column: Any, row: Any) -> Any:
    """scene.tile_texture; the masks emulate 32-bit overflow."""
    if numbers.period > 0:
        column, row = i32(column % numbers.period), i32(row % numbers.period)
    bits = (np.int64(column) * 0x2C1B3C6D + np.int64(row) * 0x297A2D39 + floor) & WORD
    bits = ((bits ^ (bits >> 15)) * 0x5BD1E995) & WORD
    bits = ((bits ^ (bits >> 13)) * 0x3C6EF35F) & WORD
    return (bits >> 16) * numbers.num_textures >> 16


@njit
def neighbours(place: Any, side: Any) -> Any:
    texel = max(place * f32(side) - HALF, ZERO)
    first = i32(texel)
    return first, min(first + 1, side - 1), texel - f32(first)


@njit
def blend(a: Any, b: Any, c: Any, d: Any, across: Any, down: Any) -> Any:
    above = f32(a) + (f32(b) - f32(a)) * across
    below = f32(c) + (f32(d) - f32(c)) * across
    return i32(above + (below - above) * down + HALF)
