"""Renders frames with Numba kernels on the CPU; the same frames as render_torch.

Shapes: N frames, R of them to draw, h x w pixels, K layers. Arithmetic is float32 in the order
of the torch code, so that nearly all pixels are bit-identical.
"""

import hashlib
import math
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numba import prange
from numpy.typing import NDArray
from torch import Tensor

from episodic_curiosity.support.numba_setup import cached, match_threads
from episodic_curiosity.worlds.lab.elements import Theme
from episodic_curiosity.worlds.maze.render import camera as lens
from episodic_curiosity.worlds.maze.render import effects, textures
from episodic_curiosity.worlds.maze.render import level_map as maps
from episodic_curiosity.worlds.maze.render.camera import Camera
from episodic_curiosity.worlds.maze.render.layers_numba import place_billboards, place_fences
from episodic_curiosity.worlds.maze.render.level_map import LevelMap
from episodic_curiosity.worlds.maze.render.scene import Scene
from episodic_curiosity.worlds.maze.render.shine_numba import (
    MARK_RADIUS,
    PER_MARK,
    find_flashes,
    find_marks,
    flash_at,
)
from episodic_curiosity.worlds.maze.render.textures import Textures
from episodic_curiosity.worlds.maze.render.walk_numba import (
    FAR,
    HALF,
    HALF_DECAL,
    LIGHT_MIN,
    LIGHT_STEP,
    ONE,
    PER_DECAL,
    ZERO,
    down_strip,
    dress,
    f32,
    light_at,
    look_up,
    part_of_kernel,
    to_strip,
    to_texel,
    walk,
    wrap_texel,
)

EYE, BRIGHTEST, TILE_SIZE = f32(lens.EYE), f32(255), f32(textures.TILE_SIZE)
RADIANS, TURNS = f32(math.pi / 180), f32(1 / 360)
SKY_TOP, SKY_SCALE = f32(lens.TAN_Y), f32(textures.SKY_ROWS / (2 * lens.TAN_Y))
FLASH_COLOUR = tuple(f32(colour) for colour in effects.FLASH_COLOUR)
PER_SPAWN_LIFE, PER_SPAWN_EDGE = f32(1 / effects.SPAWN_LIFE), f32(1 / effects.SPAWN_EDGE)
SPAWN_RING, SPAWN_GROWTH = f32(effects.SPAWN_RING), f32(effects.SPAWN_GROWTH)
PER_BYTE = f32(1 / 255)
SPAWN_ABOVE = tuple(f32(colour) for colour in effects.SPAWN_ABOVE)
SPAWN_BELOW = tuple(f32(colour) for colour in effects.SPAWN_BELOW)


class Space(NamedTuple):
    """The Theme in float32."""

    origin: Any  # (2,)
    cell: Any  # (2,)
    per_cell: Any  # (2,)
    wall_top: Any  # height above the eye
    ceiling: bool


class Columns(NamedTuple):
    """The columns of one frame: walls, (w,) each, and layers in front of them, (K, w)."""

    dx: Any
    dy: Any
    depth: Any
    light: Any
    texel: Any
    mip: Any
    decal: Any
    decal_mip: Any
    facing: Any
    mark_texel: Any
    mark_mip: Any
    mark_fade: Any  # brightness of the fire mark on the wall, 0 for none
    lit: Any  # true if the column passes through a flash
    sky: Any
    layer_depth: Any
    layer_top: Any
    layer_fall: Any
    layer_texel: Any
    layer_mip: Any


def render_into(
    theme: Theme,
    level_map: LevelMap,
    pictures: Textures,
    camera: Camera,
    scene: Scene,
    out: Tensor,
    rows: Tensor | None = None,
) -> None:
    """Draws frame rows[r] of the scene into out[r], (R, 3, h, w) uint8; all if None."""
    if rows is None:
        rows = torch.arange(len(scene.level))
    origin, cell = np.array(theme.origin, np.float32), np.array(theme.cell, np.float32)
    space = Space(origin, cell, 1 / cell, f32(theme.wall_height - lens.EYE), theme.ceiling)
    match_threads()
    _render(
        source_stamp(),
        space,
        _arrays(level_map),
        _arrays(pictures),
        camera,
        _arrays(scene),
        rows.numpy(),
        out.numpy(),
    )


def _arrays(fields: Any) -> Any:
    """Converts the tensors of a NamedTuple to contiguous NumPy arrays.

    Another memory layout would be another Numba type and recompile the kernel.
    """
    return fields._make(x.contiguous().numpy() if isinstance(x, Tensor) else x for x in fields)


@cache
def source_stamp() -> NDArray[np.void]:
    """Returns an empty array whose dtype contains a hash of all sources of the kernel.

    Numba's cache only detects changes in the file of `_render`, although the kernel contains
    constants and functions of other files. A new argument type makes it recompile.
    """
    worlds = Path(__file__).parents[2]
    sources = sorted([*worlds.glob("maze/**/*.py"), *worlds.glob("lab/*.py")])
    digest = hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()
    return np.empty(0, [(f"sources_{digest[:16]}", np.uint8)])


@cached(parallel=True)
def _render(
    _: Any,
    space: Any,
    level_map: Any,
    pictures: Any,
    camera: Any,
    scene: Any,
    rows: Any,
    out: Any,
) -> None:
    for r in prange(len(rows)):
        draw_frame(space, level_map, pictures, camera, scene, rows[r], out[r])


@part_of_kernel
def draw_frame(
    space: Any, level_map: Any, pictures: Any, camera: Any, scene: Any, n: Any, out: Any
) -> None:
    angle = scene.yaw[n] * RADIANS
    cos, sin = f32(math.cos(angle)), f32(math.sin(angle))
    columns = find_walls(space, level_map, camera, scene, n, cos, sin)
    place_billboards(columns, pictures, camera, scene, n, cos, sin)
    place_fences(columns, level_map, camera, scene, n)
    find_marks(columns, camera.mip_depth, scene, n)
    flashes = find_flashes(columns, scene, n)
    fill(space, level_map, pictures, camera, scene, n, columns, flashes, out)


@part_of_kernel
def find_walls(
    space: Any, level_map: Any, camera: Any, scene: Any, n: Any, cos: Any, sin: Any
) -> Any:
    width, num_layers = len(camera.across), effects.MAX_LAYERS
    floats = np.empty((5, width), np.float32)
    dx, dy, depth, light, mark_fade = floats[0], floats[1], floats[2], floats[3], floats[4]
    whole = np.empty((9, width), np.int32)
    texel, mip, decal, decal_mip = whole[0], whole[1], whole[2], whole[3]
    facing, mark_texel, mark_mip = whole[4], whole[5], whole[6]
    lit, sky = whole[7], whole[8]
    code, decals = level_map.code[scene.level[n]], level_map.decals[scene.level[n]]
    eye = scene.position[n, 0] - space.origin[0], scene.position[n, 1] - space.origin[1]
    grid = eye[0] * space.per_cell[0], eye[1] * space.per_cell[1]
    for i in range(width):
        dx[i], dy[i] = cos + camera.across[i] * sin, sin - camera.across[i] * cos
        depth[i], facing[i], mark_fade[i], lit[i] = FAR, -1, ZERO, 0
        if level_map.has_walls:
            slope = dx[i] * space.per_cell[0], dy[i] * space.per_cell[1]
            hit = walk(code, grid, slope, level_map.has_slabs, scene.open_doors[n])
            if hit[0] < FAR:
                depth[i], facing[i] = hit[0], hit[4] + 2 & 3
                texel[i], mip[i], decal[i], decal_mip[i], light[i] = dress(
                    hit, decals, int(scene.wall_look[n]), eye, (dx[i], dy[i]), space.cell,
                    camera.mip_depth,
                )  # fmt: skip
        turn = scene.yaw[n] * TURNS + camera.bearing[i]
        turn -= np.floor(turn)
        sky_column = min(int(turn * f32(textures.SKY_COLUMNS)), textures.SKY_COLUMNS - 1)
        sky[i] = textures.SKY + sky_column
    layers = np.full((3, num_layers, width), FAR, np.float32)
    strips = np.empty((2, num_layers, width), np.int32)
    return Columns(
        dx, dy, depth, light, texel, mip, decal, decal_mip, facing,
        mark_texel, mark_mip, mark_fade, lit, sky,
        layers[0], layers[1], layers[2], strips[0], strips[1],
    )  # fmt: skip


@part_of_kernel
def fill(
    space: Any, level_map: Any, pictures: Any, camera: Any, scene: Any, n: Any,
    columns: Any, flashes: Any, out: Any,
) -> None:  # fmt: skip
    """Computes every pixel: texel, light and effects."""
    # Numba counts references on every field access of a tuple: read each field once.
    texels, code = pictures.texels, level_map.code[scene.level[n]]
    ups, floor_depths, floor_mips = camera.up, camera.floor_depth, camera.floor_mip
    uprights = camera.upright
    all_dx, all_dy, depths, lights = columns.dx, columns.dy, columns.depth, columns.light
    wall_texels, wall_mips, decals = columns.texel, columns.mip, columns.decal
    decal_mips, facings, skies = columns.decal_mip, columns.facing, columns.sky
    mark_texels, mark_mips, mark_fades = columns.mark_texel, columns.mark_mip, columns.mark_fade
    lit = columns.lit
    layer_depths, layer_tops, layer_falls = (
        columns.layer_depth,
        columns.layer_top,
        columns.layer_fall,
    )
    layer_texels, layer_mips = columns.layer_texel, columns.layer_mip
    per_x, per_y, wall_top, ceiling = (
        space.per_cell[0],
        space.per_cell[1],
        space.wall_top,
        space.ceiling,
    )
    eye_x, eye_y = (
        scene.position[n, 0] - space.origin[0],
        scene.position[n, 1] - space.origin[1],
    )
    room_look = int(scene.floor_look[n])
    has_layers = scene.sprite.shape[1] + level_map.fences.shape[1] > 0
    spawning = max(ONE - scene.spawn_age[n] * PER_SPAWN_LIFE, ZERO)
    spawn_edge = SPAWN_RING + SPAWN_GROWTH * scene.spawn_age[n]
    for j in range(len(ups)):
        up, floor_depth, mip = ups[j], floor_depths[j], floor_mips[j]
        for i in range(len(all_dx)):
            dx, dy, depth = all_dx[i], all_dy[i], depths[i]
            height = up * depth
            light, facing, is_sky, texel = ONE, -1, False, effects.CEILING
            if height < -EYE:
                depth = floor_depth
                x, y = eye_x + depth * dx, eye_y + depth * dy
                cell_x, cell_y = x * per_x, y * per_y
                whole_x, whole_y = np.floor(cell_x), np.floor(cell_y)
                here = look_up(code, int(whole_x), int(whole_y))
                kind = here & maps.KIND_MASK
                is_sky = kind in (maps.VOID, maps.RIM)
                if not is_sky:
                    look = textures.FLOORS + (room_look if kind == maps.ROOM else 0)
                    strip = to_strip(look, mip, wrap_texel(x))
                    texel = texels[strip + down_strip(wrap_texel(y), mip)]
                    sw, nw, east = light_at(here, 0), light_at(here, 2), cell_x - whole_x
                    south = sw + (light_at(here, 1) - sw) * east
                    north = nw + (light_at(here, 3) - nw) * east
                    light = south + (north - south) * (cell_y - whole_y)
                    light = LIGHT_MIN + LIGHT_STEP * light
            elif height > wall_top or depth == FAR:
                is_sky = True
            else:
                facing, light = facings[i], lights[i]
                strip, wall_mip = wall_texels[i], wall_mips[i]
                row = wrap_texel(-(height + EYE))
                if decals[i] >= 0 and abs(height) < HALF_DECAL:
                    strip, wall_mip = decals[i], decal_mips[i]
                    row = to_texel(HALF - height * PER_DECAL)
                texel = texels[strip + down_strip(row, wall_mip)]
            if is_sky and not ceiling:
                sky_row = int((SKY_TOP - up * uprights[i]) * SKY_SCALE)
                sky_row = min(max(sky_row, 0), textures.SKY_ROWS - 1)
                texel = texels[skies[i] + sky_row * textures.SKY_COLUMNS]

            if has_layers:
                for k in range(effects.MAX_LAYERS):
                    if layer_depths[k, i] >= FAR:
                        break
                    rows = layer_tops[k, i] - up * layer_falls[k, i]
                    if ZERO <= rows < TILE_SIZE:
                        row = down_strip(int(rows), layer_mips[k, i])
                        front = texels[layer_texels[k, i] + row]
                        if front >= textures.OPAQUE:
                            texel, light, is_sky, facing = front, ONE, False, -1
                            depth = layer_depths[k, i]
                            break

            red, green = f32(texel & 255) * light, f32(texel >> 8 & 255) * light
            blue = f32(texel >> 16 & 255) * light
            glow = ZERO
            if lit[i] and not is_sky:
                glow = flash_at(flashes, depth * dx, depth * dy, up * depth)
            if mark_fades[i] > ZERO and facing >= 0 and abs(height) < MARK_RADIUS:
                row = down_strip(to_texel(HALF - height * PER_MARK), mark_mips[i])
                glow += f32(texels[mark_texels[i] + row] & 255) * mark_fades[i] * PER_BYTE
            if glow > ZERO:
                red += FLASH_COLOUR[0] * glow
                green += FLASH_COLOUR[1] * glow
                blue += FLASH_COLOUR[2] * glow
            if spawning > ZERO:
                steep = up * uprights[i]
                ring = (
                    min(max((abs(steep) - spawn_edge) * PER_SPAWN_EDGE, ZERO), ONE) * spawning
                )
                colour = SPAWN_ABOVE if steep > ZERO else SPAWN_BELOW
                red += colour[0] * ring
                green += colour[1] * ring
                blue += colour[2] * ring
            out[0, j, i] = int(min(red, BRIGHTEST))
            out[1, j, i] = int(min(green, BRIGHTEST))
            out[2, j, i] = int(min(blue, BRIGHTEST))
