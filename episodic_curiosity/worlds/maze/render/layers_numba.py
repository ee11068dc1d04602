"""Billboards and fences in front of the walls, in Numba; the same as layers_torch."""

import math
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
    inverse,
    part_of_kernel,
    to_strip,
    to_texel,
)

EYE, NEAR, TILE_UNITS = f32(lens.EYE), f32(lens.NEAR), f32(lens.TILE_UNITS)
TILE_SIZE = f32(textures.TILE_SIZE)
SPIN, BOB = f32(2 * math.pi / textures.SPIN_PERIOD), f32(2 * math.pi / textures.BOB_PERIOD)
FENCE_TOP, FENCE_HEIGHT = f32(effects.FENCE_HEIGHT - lens.EYE), f32(effects.FENCE_HEIGHT)
FENCE_WIDTH, FENCE_HALF_DEPTH = f32(effects.FENCE_WIDTH), f32(effects.FENCE_HALF_DEPTH)
OPEN_WIDTH, OPEN_SHIFT = f32(effects.FENCE_OPEN_WIDTH), f32(effects.FENCE_OPEN_SHIFT)
FIRST_POST, LAST_POST = f32(effects.FENCE_FIRST_POST), f32(effects.FENCE_POSTS - 1)
POST_GAP, PER_POST_GAP = f32(effects.FENCE_POST_GAP), f32(1 / effects.FENCE_POST_GAP)
POST_EDGE = f32(effects.FENCE_POST_EDGE)


@part_of_kernel
def place_quad(
    columns: Any, mip_depth: Any, quad: Any, tile: Any, first: Any, last: Any
) -> None:
    """Inserts a billboard or a fence into the layers of its columns, sorted by depth."""
    x, y, normal_x, normal_y, along_x, along_y, top, height, half_depth = quad
    scale, rows = TILE_UNITS / height, TILE_SIZE / height
    for i in range(first, last):
        dx, dy = columns.dx[i], columns.dy[i]
        per_facing = inverse(normal_x * dx + normal_y * dy)
        depth = (x * normal_x + y * normal_y) * per_facing
        if depth <= NEAR or depth >= columns.depth[i]:
            continue
        aside = (depth * dx - x) * along_x + (depth * dy - y) * along_y
        if half_depth > ZERO:
            # Posts are as deep as the fence: a ray that passes a post's middle aside may
            # still meet it.
            slope = along_x * dx + along_y * dy
            post = min(max(np.rint((aside - FIRST_POST) * PER_POST_GAP), ZERO), LAST_POST)
            past = aside - (post * POST_GAP + FIRST_POST)
            shift = min(max(past, -POST_EDGE), POST_EDGE) - past
            if abs(shift) < abs(half_depth * per_facing * slope):
                depth, aside = depth + shift * inverse(slope), aside + shift
        if abs(aside) >= HALF:
            continue
        k = 0
        while k < effects.MAX_LAYERS and columns.layer_depth[k, i] <= depth:
            k += 1
        if k == effects.MAX_LAYERS:
            continue
        for later in range(effects.MAX_LAYERS - 1, k, -1):
            columns.layer_depth[later, i] = columns.layer_depth[later - 1, i]
            columns.layer_top[later, i] = columns.layer_top[later - 1, i]
            columns.layer_fall[later, i] = columns.layer_fall[later - 1, i]
            columns.layer_texel[later, i] = columns.layer_texel[later - 1, i]
            columns.layer_mip[later, i] = columns.layer_mip[later - 1, i]
        mip = choose_mip(mip_depth, depth * scale)
        columns.layer_depth[k, i], columns.layer_mip[k, i] = depth, mip
        columns.layer_top[k, i], columns.layer_fall[k, i] = top * rows, depth * rows
        columns.layer_texel[k, i] = to_strip(tile, mip, to_texel(aside + HALF))


@part_of_kernel
def place_billboards(
    columns: Any, pictures: Any, camera: Any, scene: Any, n: Any, cos: Any, sin: Any
) -> None:
    turn, wave = abs(f32(math.cos(scene.time[n] * SPIN))), f32(math.sin(scene.time[n] * BOB))
    num_columns = len(columns.dx)
    for b in range(scene.sprite.shape[1]):
        sprite = int(scene.sprite[n, b])
        x = scene.sprite_position[n, b, 0] - scene.position[n, 0]
        y = scene.sprite_position[n, b, 1] - scene.position[n, 1]
        ahead = x * cos + y * sin
        if sprite == 0 or ahead <= HALF:
            continue
        item = pictures.items[sprite]
        width, height = item[0] * (item[4] + (ONE - item[4]) * turn), item[1]
        # The columns it can cover, with a margin of one.
        middle, reach = (x * sin - y * cos) / ahead, HALF * width / ahead
        first = int((middle - reach + ONE) * HALF * f32(num_columns)) - 1
        last = int((middle + reach + ONE) * HALF * f32(num_columns)) + 2
        top = item[2] + item[3] * wave + height - EYE
        quad = x, y, cos, sin, sin / width, -cos / width, top, height, ZERO
        first, last = max(first, 0), min(last, num_columns)
        place_quad(columns, camera.mip_depth, quad, textures.SPRITES + sprite, first, last)


@part_of_kernel
def place_fences(columns: Any, level_map: Any, camera: Any, scene: Any, n: Any) -> None:
    for door in range(level_map.fences.shape[1]):
        fence = level_map.fences[scene.level[n], door]
        x, y = fence[0] - scene.position[n, 0], fence[1] - scene.position[n, 1]
        in_x, in_y = fence[2], ONE - fence[2]
        width, tile = FENCE_WIDTH, textures.FENCES + int(fence[3])
        if scene.open_doors[n] >> door & 1:
            x, y = x + OPEN_SHIFT * in_x, y + OPEN_SHIFT * in_y
            width, tile = OPEN_WIDTH, textures.POSTS + int(fence[3])
        quad = (
            x, y, in_y, in_x, in_x / width, in_y / width,
            FENCE_TOP, FENCE_HEIGHT, FENCE_HALF_DEPTH,
        )  # fmt: skip
        place_quad(columns, camera.mip_depth, quad, tile, 0, len(columns.dx))
