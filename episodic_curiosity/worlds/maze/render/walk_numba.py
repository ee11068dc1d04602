"""Ray casting in Numba: finds the wall of one column of pixels; the same as walk_torch.

All numbers are float32; a bare float literal would promote them to float64.
"""

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from numba import njit

from episodic_curiosity.worlds.maze.render import camera as lens
from episodic_curiosity.worlds.maze.render import effects, textures
from episodic_curiosity.worlds.maze.render import level_map as maps

Function = TypeVar("Function", bound=Callable[..., Any])
f32 = np.float32
# Numba compiles module-level numbers into the kernel as constants.
ZERO, HALF, ONE = f32(0), f32(0.5), f32(1)
FAR, TINY = f32(lens.FAR), f32(1e-9)
TEXELS_PER_UNIT = f32(textures.TILE_SIZE / lens.TILE_UNITS)
LIGHT_MIN, LIGHT_STEP = f32(maps.LIGHT_MIN), f32(maps.LIGHT_STEP)
SIDE_SHADE, SHADE_MIN = f32(effects.SIDE_SHADE), f32(effects.SHADE_MIN)
SHADE_PER_UNIT = f32(effects.SHADE_PER_UNIT)
SLAB_LOW, SLAB_HIGH = f32(effects.SLAB_LOW), f32(effects.SLAB_HIGH)
SLAB_OPEN_EDGE = f32(effects.SLAB_OPEN_EDGE)
HALF_DECAL, PER_DECAL = f32(effects.DECAL_UNITS / 2), f32(1 / effects.DECAL_UNITS)
DECAL_SCALE = f32(lens.TILE_UNITS / effects.DECAL_UNITS)


def part_of_kernel(function: Function) -> Function:
    """Compiles a function that is only called by kernels, without entry points from Python.

    The entry points would take a quarter of the time until the first frame.
    """
    options = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    compiled: Function = njit(**options)(function)  # type: ignore[call-overload]
    return compiled


@part_of_kernel
def inverse(slope: Any) -> Any:
    return ONE / (TINY if abs(slope) < TINY else slope)


@part_of_kernel
def to_texel(share: Any) -> Any:
    """Maps 0..1 to a column or row of the full-size tile."""
    return min(max(int(share * f32(textures.TILE_SIZE)), 0), textures.TILE_SIZE - 1)


@part_of_kernel
def wrap_texel(units: Any) -> Any:
    """Maps units to a column or row of a tile that repeats every 100 units."""
    return int(np.floor(units * TEXELS_PER_UNIT)) & (textures.TILE_SIZE - 1)


@part_of_kernel
def choose_mip(mip_depth: Any, scaled_depth: Any) -> Any:
    mip = 0
    for limit in mip_depth:
        mip += scaled_depth > limit
    return mip


@part_of_kernel
def to_strip(tile: Any, mip: Any, column: Any) -> Any:
    return tile * textures.TILE_TEXELS + textures.MIP_OFFSETS[mip] + (column >> mip)


@part_of_kernel
def down_strip(row: Any, mip: Any) -> Any:
    return (row >> mip) << (textures.TILE_BITS - mip)


@part_of_kernel
def light_at(code: Any, corner: Any) -> Any:
    return f32(code >> (maps.LIGHT_SHIFT + maps.LIGHT_BITS * corner) & maps.LIGHT_MASK)


@part_of_kernel
def look_up(codes: Any, x: Any, y: Any) -> Any:
    """Returns the code of a cell; RIM outside the grid."""
    height, width = codes.shape
    if x < -1 or x > width - 2 or y < -1 or y > height - 2:
        return maps.RIM
    return int(codes[y + 1, x + 1])


@part_of_kernel
def meet_slab(
    code: Any, border: Any, inverse_slope: Any, east: Any, north: Any, open_doors: Any
) -> Any:
    """Returns whether the ray hits the cell's slab, the depth, and whether on an x face."""
    door = code >> maps.DOOR_SHIFT & maps.DOOR_MASK
    begin = SLAB_OPEN_EDGE if (open_doors >> door) & 1 else ZERO
    if code & maps.KIND_MASK == maps.DOOR_H:
        low_x, high_x, low_y, high_y = begin, ONE, SLAB_LOW, SLAB_HIGH
    else:
        low_x, high_x, low_y, high_y = SLAB_LOW, SLAB_HIGH, begin, ONE
    x_a = border[0] + (low_x - f32(east)) * inverse_slope[0]
    x_b = border[0] + (high_x - f32(east)) * inverse_slope[0]
    y_a = border[1] + (low_y - f32(north)) * inverse_slope[1]
    y_b = border[1] + (high_y - f32(north)) * inverse_slope[1]
    enter_x, enter_y = min(x_a, x_b), min(y_a, y_b)
    enter = max(enter_x, enter_y)
    leave = min(max(x_a, x_b), max(y_a, y_b))
    return enter < leave and enter > ZERO, enter, enter_x > enter_y


@part_of_kernel
def walk(codes: Any, grid: Any, slope: Any, has_slabs: Any, open_doors: Any) -> Any:
    """Returns (depth, x, y, code, side, slab) of a hit; x, y, code are of the cell in front."""
    height, width = codes.shape
    inverse_x, inverse_y = inverse(slope[0]), inverse(slope[1])
    east, north = int(inverse_x > 0), int(inverse_y > 0)
    x = min(max(int(np.floor(grid[0])), 0), width - 3)
    y = min(max(int(np.floor(grid[1])), 0), height - 3)
    border_x = (f32(x + east) - grid[0]) * inverse_x
    border_y = (f32(y + north) - grid[1]) * inverse_y
    code = look_up(codes, x, y)
    while True:
        if has_slabs and (
            code & maps.KIND_MASK == maps.DOOR_H or code & maps.KIND_MASK == maps.DOOR_I
        ):
            slab, depth, in_x = meet_slab(
                code, (border_x, border_y), (inverse_x, inverse_y), east, north, open_doors
            )
            if slab:
                side = 2 - 2 * east if in_x else 3 - 2 * north
                return max(depth, ONE), x, y, code, side, True
        in_x = border_x < border_y
        new_x, new_y = (x + 2 * east - 1, y) if in_x else (x, y + 2 * north - 1)
        new_code = look_up(codes, new_x, new_y)
        if new_code & maps.STOP_MASK == maps.STOP:
            is_wall = new_code & maps.KIND_MASK == maps.WALL
            depth = max(min(border_x, border_y), ONE) if is_wall else FAR
            return depth, x, y, code, 2 - 2 * east if in_x else 3 - 2 * north, False
        if in_x:
            border_x += abs(inverse_x)
        else:
            border_y += abs(inverse_y)
        x, y, code = new_x, new_y, new_code


@part_of_kernel
def dress(
    hit: Any, decals: Any, wall_look: Any, eye: Any, slope: Any, cell: Any, mip_depth: Any
) -> Any:
    """Returns (texel, mip, decal, decal_mip, light) of a column that hit something."""
    depth, x, y, code, side, slab = hit
    in_x = side in (maps.EAST, maps.WEST)
    if in_x:
        along, begin, extent = eye[1] + depth * slope[1], f32(y) * cell[1], cell[1]
    else:
        along, begin, extent = eye[0] + depth * slope[0], f32(x) * cell[0], cell[0]
    mirrored = side in (maps.EAST, maps.SOUTH)
    column = wrap_texel(along)
    column = textures.TILE_SIZE - 1 - column if mirrored else column
    look = wall_look if code & maps.KIND_MASK == maps.ROOM else 0
    tile = textures.SLAB if slab else textures.WALLS + look
    mip = choose_mip(mip_depth, depth)

    aside = along - begin - extent * HALF
    decal, decal_mip = -1, choose_mip(mip_depth, depth * DECAL_SCALE)
    if not slab and abs(aside) < HALF_DECAL and decals[y, x, side] > 0:
        decal_column = to_texel((-aside if mirrored else aside) * PER_DECAL + HALF)
        decal_tile = textures.DECALS - 1 + int(decals[y, x, side])
        decal = to_strip(decal_tile, decal_mip, decal_column)

    if side == maps.EAST:
        low, high = light_at(code, 1), light_at(code, 3)
    elif side == maps.NORTH:
        low, high = light_at(code, 2), light_at(code, 3)
    elif side == maps.WEST:
        low, high = light_at(code, 0), light_at(code, 2)
    else:
        low, high = light_at(code, 0), light_at(code, 1)
    light = LIGHT_MIN + LIGHT_STEP * (low + (high - low) * ((along - begin) / extent))
    light *= SIDE_SHADE if in_x else ONE
    light *= max(ONE - SHADE_PER_UNIT * depth, SHADE_MIN)
    return to_strip(tile, mip, column), mip, decal, decal_mip, light
