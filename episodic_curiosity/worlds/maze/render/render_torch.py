"""Renders frames in torch, written for torch.compile on a GPU.

Shapes: N frames, h x w pixels. Values that are constant along a column are computed once per
column, (N, w); then each pixel, (N, h, w), reads one texel. Never synchronises with the GPU.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from episodic_curiosity.worlds.lab.elements import Theme
from episodic_curiosity.worlds.maze.render import camera as lens
from episodic_curiosity.worlds.maze.render import effects, textures
from episodic_curiosity.worlds.maze.render import level_map as maps
from episodic_curiosity.worlds.maze.render.layers_torch import Layer, find_layers, gather_quads
from episodic_curiosity.worlds.maze.render.level_map import LevelMap
from episodic_curiosity.worlds.maze.render.scene import Scene
from episodic_curiosity.worlds.maze.render.shine_torch import (
    Flashes,
    Mark,
    add_flashes,
    find_flashes,
    find_marks,
    spawn_ring,
)
from episodic_curiosity.worlds.maze.render.textures import Textures
from episodic_curiosity.worlds.maze.render.walk_torch import (
    STRIP_BITS,
    Rays,
    TorchCamera,
    Walk,
    Walls,
    begin_walk,
    cast_rays,
    down_strip,
    dress,
    end_walk,
    light_at,
    look_up,
    num_paces,
    to_texel,
    walk_on,
    wrap_texel,
)

SKY_SCALE = textures.SKY_ROWS / (2 * lens.TAN_Y)


class Columns(NamedTuple):
    """The inputs of the pixels, computed once per column or frame."""

    rays: Rays
    sky: Tensor  # (N, w) int32, index of the column's topmost sky texel
    walls: Walls
    layers: list[Layer]
    mark: Mark
    flashes: Flashes


def name_columns(columns: Columns) -> Columns:
    """Restores the named tuples, which torch.compile may return as plain ones."""
    rays, sky, walls, layers, mark, flashes = columns
    named = [Layer(*layer) for layer in layers]
    return Columns(Rays(*rays), sky, Walls(*walls), named, Mark(*mark), Flashes(*flashes))


class Passes(NamedTuple):
    """The rendering passes, in order; they may be compiled."""

    begin: Callable[..., tuple[Rays, Walk]]
    walk_on: Callable[..., Walk]
    find_columns: Callable[..., Columns]
    fill: Callable[..., Tensor]
    paces: int  # per call of walk_on


def render(
    theme: Theme,
    level_map: LevelMap,
    pictures: Textures,
    camera: TorchCamera,
    scene: Scene,
    *,
    passes: Passes | None = None,
) -> Tensor:
    """Draws frames, (N, 3, h, w) uint8; `passes` default to the functions below."""
    passes = passes or Passes(
        begin, walk_on, find_columns, fill, paces=num_paces(level_map) or 1
    )
    rays, walk = passes.begin(theme, level_map, camera, scene)
    rays = Rays(*rays)
    for _ in range(0, num_paces(level_map), passes.paces):
        walk = passes.walk_on(theme, level_map, scene, rays, Walk(*walk), passes.paces)
    columns = passes.find_columns(theme, level_map, pictures, camera, scene, rays, Walk(*walk))
    return passes.fill(theme, level_map, pictures, camera, scene, name_columns(columns))


def begin(
    theme: Theme, level_map: LevelMap, camera: TorchCamera, scene: Scene
) -> tuple[Rays, Walk]:
    rays = cast_rays(theme, level_map, camera, scene)
    return rays, begin_walk(theme, level_map, rays)


def find_columns(
    theme: Theme,
    level_map: LevelMap,
    pictures: Textures,
    camera: TorchCamera,
    scene: Scene,
    rays: Rays,
    walk: Walk,
) -> Columns:
    turn = scene.yaw[:, None] * (1 / 360) + camera.bearing
    sky_column = ((turn - turn.floor()) * textures.SKY_COLUMNS).to(torch.int32)
    hit = end_walk(theme, level_map, scene, rays, walk)
    walls = dress(theme, level_map, camera, scene, rays, hit)
    return Columns(
        rays=rays,
        sky=textures.SKY + sky_column.clamp(max=textures.SKY_COLUMNS - 1),
        walls=walls,
        layers=find_layers(camera, rays, walls, gather_quads(level_map, pictures, scene, rays)),
        mark=find_marks(camera, scene, rays, walls),
        flashes=find_flashes(scene),
    )


def fill(
    theme: Theme,
    level_map: LevelMap,
    pictures: Textures,
    camera: TorchCamera,
    scene: Scene,
    columns: Columns,
) -> Tensor:
    """Computes every pixel, (N, 3, h, w) uint8."""
    texels = pictures.texels
    rays = Rays(*(field[:, None] for field in columns.rays))  # (N, 1, ...)
    walls = Walls(*(field[:, None] for field in columns.walls))  # (N, 1, w)
    height = camera.up * walls.depth  # of the wall above the eye, (N, h, w)
    is_floor = height < -lens.EYE
    is_above = ~is_floor & ((height > theme.wall_height - lens.EYE) | (walls.depth == lens.FAR))

    # The floor.
    x, y = rays.x + camera.floor_depth * rays.dx, rays.y + camera.floor_depth * rays.dy
    cell_x, cell_y = x * (1 / theme.cell[0]), y * (1 / theme.cell[1])
    whole_x, whole_y = cell_x.floor(), cell_y.floor()
    code = look_up(level_map, rays, whole_x.to(torch.int32), whole_y.to(torch.int32))
    kind = code & maps.KIND_MASK
    is_void = (kind == maps.VOID) | (kind == maps.RIM)
    is_sky = is_above | (is_floor & is_void)
    look = torch.where(kind == maps.ROOM, scene.floor_look[:, None, None].to(torch.int32), 0)
    column = wrap_texel(x) >> (camera.floor_strip >> STRIP_BITS)
    strip = camera.floor_strip + (textures.FLOORS + look) * textures.TILE_TEXELS + column
    floor_texel = down_strip(strip, wrap_texel(y))
    floor_light = blend(code, cell_x - whole_x, cell_y - whole_y)

    # The wall, or a decal on it.
    wall_texel = down_strip(walls.strip, wrap_texel(-(height + lens.EYE)))
    on_decal = (walls.decal > 0) & (height.abs() < effects.DECAL_UNITS / 2)
    decal_row = to_texel(0.5 - height * (1 / effects.DECAL_UNITS))
    wall_texel = torch.where(on_decal, down_strip(walls.decal, decal_row), wall_texel)

    texel = torch.where(is_floor, floor_texel, wall_texel)
    light = torch.where(is_floor, floor_light, walls.light)
    if theme.ceiling:
        texel = texels[torch.where(is_above, 0, texel)]
        texel = torch.where(is_above, effects.CEILING, texel)
    else:
        sky_row = (lens.TAN_Y - camera.up * camera.upright) * SKY_SCALE
        sky_row = sky_row.to(torch.int32).clamp(0, textures.SKY_ROWS - 1)
        sky_texel = columns.sky[:, None] + sky_row * textures.SKY_COLUMNS
        texel = texels[torch.where(is_sky, sky_texel, texel)]
    light = torch.where(is_sky, 1.0, light)

    depth = torch.where(is_floor, camera.floor_depth, walls.depth)
    is_solid, is_wall = ~is_sky, ~is_sky & ~is_floor
    for layer in reversed(columns.layers):
        layer = Layer(*(field[:, None] for field in layer))
        row = layer.top - camera.up * layer.fall
        covers = (row >= 0) & (row < textures.TILE_SIZE) & (layer.depth < lens.FAR)
        front = texels[torch.where(covers, down_strip(layer.strip, row.to(torch.int32)), 0)]
        covers = covers & (front >= textures.OPAQUE)
        texel, light = torch.where(covers, front, texel), torch.where(covers, 1.0, light)
        depth = torch.where(covers, layer.depth, depth)
        is_solid, is_wall = is_solid | covers, is_wall & ~covers

    blue = torch.zeros_like(light)
    if scene.mark_age.shape[1] > 0:
        mark = Mark(*(field[:, None] for field in columns.mark))  # (N, 1, w)
        x, y, z = depth * rays.dx, depth * rays.dy, camera.up * depth  # relative to the eye
        flashes = add_flashes(columns.flashes, x, y, z)
        on_mark = is_wall & (mark.strip > 0) & (height.abs() < effects.MARK_RADIUS)
        mark_row = to_texel(0.5 - height * (0.5 / effects.MARK_RADIUS))
        glow = texels[torch.where(on_mark, down_strip(mark.strip, mark_row), 0)] & 255
        blue = torch.where(is_solid, flashes, 0.0)
        blue = blue + torch.where(on_mark, glow * mark.fade * (1 / 255), 0.0)
    white, yellow = spawn_ring(camera, scene)
    packed = torch.zeros_like(texel)  # (N, h, w) int32: red | green << 8 | blue << 16
    for channel in range(3):
        colour = (texel >> 8 * channel & 255).to(torch.float32) * light
        colour = colour + effects.FLASH_COLOUR[channel] * blue
        colour = (
            colour
            + effects.SPAWN_ABOVE[channel] * white
            + effects.SPAWN_BELOW[channel] * yellow
        )
        packed = packed | colour.clamp(max=255).to(torch.int32) << 8 * channel
    shift = torch.arange(0, 24, 8, dtype=torch.int32, device=packed.device)[:, None, None]
    return ((packed[:, None] >> shift) & 255).to(torch.uint8)


def blend(code: Tensor, east: Tensor, north: Tensor) -> Tensor:
    """Interpolates the light inside a cell between its four corners."""
    sw, se, nw, ne = (light_at(code, corner) for corner in range(4))
    south = sw + (se - sw) * east
    return maps.LIGHT_MIN + maps.LIGHT_STEP * (south + (nw + (ne - nw) * east - south) * north)
