"""The light of shots, in Numba; the same as shine_torch."""

from typing import Any

import numpy as np

from episodic_curiosity.worlds.maze.render import camera as lens
from episodic_curiosity.worlds.maze.render import effects, textures
from episodic_curiosity.worlds.maze.render.walk_numba import (
    HALF,
    ONE,
    ZERO,
    choose_mip,
    f32,
    part_of_kernel,
    to_strip,
    to_texel,
)

FLASH_LIFE, PER_FLASH_LIFE = f32(effects.FLASH_LIFE), f32(1 / effects.FLASH_LIFE)
FLASH_RADIUS, FLASH_GROWTH = f32(effects.FLASH_RADIUS), f32(effects.FLASH_GROWTH)
TWICE_FLASH_WIDTH = f32(2 * effects.FLASH_WIDTH)
FLASH_HAZE = f32(effects.FLASH_HAZE)
PER_MARK_LIFE = f32(1 / effects.MARK_LIFE)
MARK_RADIUS, PER_MARK = f32(effects.MARK_RADIUS), f32(0.5 / effects.MARK_RADIUS)
MARK_SCALE = f32(lens.TILE_UNITS / (2 * effects.MARK_RADIUS))


@part_of_kernel
def find_marks(columns: Any, mip_depth: Any, scene: Any, n: Any) -> None:
    """Finds the newest fire mark in each column of wall: its texture strip and its light."""
    # Numba counts references on every field access of a tuple: read each field once.
    all_dx, all_dy, depths, facings = columns.dx, columns.dy, columns.depth, columns.facing
    texels, mips, fades = columns.mark_texel, columns.mark_mip, columns.mark_fade
    for mark in range(scene.mark_age.shape[1]):
        left = ONE - scene.mark_age[n, mark] * PER_MARK_LIFE
        if left <= ZERO:
            continue
        x = scene.mark_position[n, mark, 0] - scene.position[n, 0]
        y = scene.mark_position[n, mark, 1] - scene.position[n, 1]
        side = int(scene.mark_side[n, mark])
        for i in range(len(all_dx)):
            if facings[i] == side and left > fades[i]:
                from_x, from_y = depths[i] * all_dx[i] - x, depths[i] * all_dy[i] - y
                if max(abs(from_x), abs(from_y)) < MARK_RADIUS:
                    column = to_texel(HALF + (from_x + from_y) * PER_MARK)
                    mips[i] = choose_mip(mip_depth, depths[i] * MARK_SCALE)
                    texels[i] = to_strip(textures.MARK, mips[i], column)
                    fades[i] = left


@part_of_kernel
def find_flashes(columns: Any, scene: Any, n: Any) -> Any:
    """Returns x, y, scale, offset and strength of active flashes, (S, 5), as in Flashes.

    Also marks the columns that pass through one, in `columns.lit`.
    """
    all_dx, all_dy, lit = columns.dx, columns.dy, columns.lit
    flashes = np.empty((scene.mark_age.shape[1], 5), np.float32)
    count = 0
    for mark in range(len(flashes)):
        age = scene.mark_age[n, mark]
        if age < FLASH_LIFE:
            x = scene.mark_position[n, mark, 0] - scene.position[n, 0]
            y = scene.mark_position[n, mark, 1] - scene.position[n, 1]
            radius = FLASH_RADIUS + FLASH_GROWTH * age
            scale = ONE / (radius * TWICE_FLASH_WIDTH)
            flashes[count, 0], flashes[count, 1] = x, y
            flashes[count, 2], flashes[count, 3] = scale, radius * radius * scale
            flashes[count, 4] = ONE - age * PER_FLASH_LIFE
            count += 1
            # The light ends outside the rim; 1 more covers rounding.
            reach_square = radius * radius + radius * TWICE_FLASH_WIDTH + ONE
            for i in range(len(all_dx)):
                dx, dy = all_dx[i], all_dy[i]
                aside = x * dy - y * dx
                lit[i] |= aside * aside < reach_square * (dx * dx + dy * dy)
    return flashes[:count]


@part_of_kernel
def flash_at(flashes: Any, x: Any, y: Any, z: Any) -> Any:
    """Returns the summed light of all flashes at a position relative to the eye."""
    glow = ZERO
    for flash in range(len(flashes)):
        from_x, from_y = x - flashes[flash, 0], y - flashes[flash, 1]
        square = from_x * from_x + from_y * from_y + z * z
        rim = square * flashes[flash, 2] - flashes[flash, 3]
        if rim < ONE:
            glow += flashes[flash, 4] * min(ONE - rim, max(ONE + rim, FLASH_HAZE))
    return glow
