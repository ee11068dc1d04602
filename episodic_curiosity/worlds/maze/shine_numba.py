"""The light of shots, as Numba functions: shine's rules."""

from typing import Any

import numpy as np
from numba import njit

from episodic_curiosity.worlds.maze import camera as lens
from episodic_curiosity.worlds.maze import effects, textures
from episodic_curiosity.worlds.maze.walk_numba import (
    HALF,
    ONE,
    ZERO,
    choose_mip,
    down_strip,
    f32,
    to_strip,
    to_texel,
)

FLASH_LIFE, PER_FLASH_LIFE = f32(effects.FLASH_LIFE), f32(1 / effects.FLASH_LIFE)
FLASH_RADIUS, FLASH_GROWTH = f32(effects.FLASH_RADIUS), f32(effects.FLASH_GROWTH)
TWICE_FLASH_WIDTH = f32(2 * effects.FLASH_WIDTH)
FLASH_HAZE, PER_BYTE = f32(effects.FLASH_HAZE), f32(1 / 255)
MARK_LIFE, PER_MARK_LIFE = f32(effects.MARK_LIFE), f32(1 / effects.MARK_LIFE)
MARK_RADIUS, PER_MARK = f32(effects.MARK_RADIUS), f32(0.5 / effects.MARK_RADIUS)
MARK_SCALE = f32(lens.TILE_UNITS / (2 * effects.MARK_RADIUS))


@njit
def newest_shots(columns: Any, scene: Any, n: Any) -> Any:
    """(S, 4): x and y from the eye, age, side of the marks that have not faded.

    Also finds the columns they touch.
    """
    shots = np.empty((scene.mark_age.shape[1], 4), np.float32)
    count = 0
    for mark in range(len(shots)):
        if scene.mark_age[n, mark] < MARK_LIFE:
            x = scene.mark_position[n, mark, 0] - scene.position[n, 0]
            y = scene.mark_position[n, mark, 1] - scene.position[n, 1]
            side = int(scene.mark_side[n, mark])
            shots[count, 0], shots[count, 1] = x, y
            shots[count, 2], shots[count, 3] = scene.mark_age[n, mark], f32(side)
            count += 1
            for i in range(len(columns.dx)):
                depth = columns.depth[i]
                near_x = abs(depth * columns.dx[i] - x) < MARK_RADIUS
                near_y = abs(depth * columns.dy[i] - y) < MARK_RADIUS
                columns.marked[i] |= near_x and near_y and columns.facing[i] == side
    return shots[:count]


@njit
def flash_at(shots: Any, x: Any, y: Any, z: Any) -> Any:
    """The light of flashes at a place relative to the eye: they add up."""
    glow = ZERO
    for shot in range(len(shots)):
        age = shots[shot, 2]
        if age < FLASH_LIFE:
            from_x, from_y = x - shots[shot, 0], y - shots[shot, 1]
            square = from_x * from_x + from_y * from_y + z * z
            radius = FLASH_RADIUS + FLASH_GROWTH * age
            scale = ONE / (radius * TWICE_FLASH_WIDTH)
            rim = square * scale - radius * radius * scale
            if rim < ONE:
                ball = min(ONE - rim, max(ONE + rim, FLASH_HAZE))
                glow += (ONE - age * PER_FLASH_LIFE) * ball
    return glow


@njit
def mark_at(
    texels: Any, shots: Any, mip_depth: Any, depth: Any, x: Any, y: Any, z: Any, facing: Any
) -> Any:
    """The light of the newest mark at a place on a wall."""
    fade, pattern = ZERO, 0
    for shot in range(len(shots)):
        from_x, from_y = x - shots[shot, 0], y - shots[shot, 1]
        reach = max(max(abs(from_x), abs(from_y)), abs(z))
        left = ONE - shots[shot, 2] * PER_MARK_LIFE
        if facing == int(shots[shot, 3]) and reach < MARK_RADIUS and left > fade:
            mip = choose_mip(mip_depth, depth * MARK_SCALE)
            column = to_texel(HALF + (from_x + from_y) * PER_MARK)
            row = to_texel(HALF - z * PER_MARK)
            pattern = to_strip(textures.MARK, mip, column) + down_strip(row, mip)
            fade = left
    return f32(texels[pattern] & 255) * fade * PER_BYTE
