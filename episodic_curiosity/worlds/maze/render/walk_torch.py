"""Ray casting in torch: finds the wall that each column of pixels sees.

Shapes: N frames, w columns, L levels, H x W cells. Every column walks the grid from the eye
until a wall or a slab stops it. The number of paces is fixed: no synchronisation with the GPU.
"""

import math
from typing import NamedTuple

import torch
from torch import Tensor

from episodic_curiosity.worlds.lab.elements import Theme
from episodic_curiosity.worlds.maze.render import camera as lens
from episodic_curiosity.worlds.maze.render import effects, textures
from episodic_curiosity.worlds.maze.render import level_map as maps
from episodic_curiosity.worlds.maze.render.level_map import LevelMap
from episodic_curiosity.worlds.maze.render.scene import Scene

STRIP_BITS, STRIP_MASK = 24, (1 << 24) - 1


class TorchCamera(NamedTuple):
    """camera.Camera as tensors: columns are (w,), rows (h, 1)."""

    across: Tensor
    upright: Tensor
    bearing: Tensor
    up: Tensor
    floor_depth: Tensor
    floor_strip: Tensor  # int32, strip of tile 0 and column 0 at each row's mip level
    mip_depth: Tensor  # (M,) depth from which each smaller mip level is used


class Rays(NamedTuple):
    """The eye of each frame and the directions of its columns."""

    first_cell: Tensor  # (N, 1) int32, index into `code` of the level's cell [0, 0]
    x: Tensor  # (N, 1) the eye, relative to the grid's corner
    y: Tensor
    cos: Tensor  # (N, 1) of the yaw
    sin: Tensor
    dx: Tensor  # (N, w) per unit of depth
    dy: Tensor


class Stride(NamedTuple):
    """The increments of each column from cell to cell, (N, w)."""

    inverse_x: Tensor  # signed depth between two borders
    inverse_y: Tensor
    east: Tensor  # int32, 1 if it goes east
    north: Tensor
    step_x: Tensor  # int32, index offset of the next cell in x
    step_y: Tensor


class Walk(NamedTuple):
    """The progress of each column, (N, w)."""

    cell: Tensor  # int32, index into `code` of its present cell
    code: Tensor  # int32, of that cell
    border_x: Tensor  # depth of the next border in x
    border_y: Tensor


class Hit(NamedTuple):
    """The surface that stopped each column, (N, w)."""

    depth: Tensor  # FAR if nothing did
    cell: Tensor  # int32, index into `code` of the cell in front of it
    code: Tensor  # int32, of that cell
    side: Tensor  # int32, the Side of that cell
    in_x: Tensor  # bool, side is EAST or WEST
    slab: Tensor  # bool, a slab instead of a wall


class Walls(NamedTuple):
    """The texture and light of each column's wall, (N, w)."""

    depth: Tensor
    strip: Tensor  # int32, texture strip of the column
    decal: Tensor  # int32, strip of the decal, 0 for none
    light: Tensor
    facing: Tensor  # int32, Side


def make_camera(height: int, width: int, device: torch.device | str) -> TorchCamera:
    tables = (torch.from_numpy(table).to(device) for table in lens.make_camera(height, width))
    across, upright, bearing, *rows, mip_depth = tables
    up, floor_depth, mip = (row[:, None] for row in rows)
    floor_strip = to_strip(0, mip, torch.zeros_like(mip))
    return TorchCamera(across, upright, bearing, up, floor_depth, floor_strip, mip_depth)


def cast_rays(theme: Theme, level_map: LevelMap, camera: TorchCamera, scene: Scene) -> Rays:
    _, height, width = level_map.code.shape
    yaw = scene.yaw[:, None] * (math.pi / 180)
    cos, sin = yaw.cos(), yaw.sin()
    return Rays(
        first_cell=scene.level[:, None].to(torch.int32) * (height * width) + width + 1,
        x=scene.position[:, :1] - theme.origin[0],
        y=scene.position[:, 1:] - theme.origin[1],
        cos=cos,
        sin=sin,
        dx=cos + camera.across * sin,
        dy=sin - camera.across * cos,
    )


def begin_walk(theme: Theme, level_map: LevelMap, rays: Rays) -> Walk:
    """Puts every column into the cell of its eye."""
    _, height, width = level_map.code.shape
    stride = _stride(theme, level_map, rays)
    grid_x, grid_y = rays.x * (1 / theme.cell[0]), rays.y * (1 / theme.cell[1])
    x = grid_x.floor().to(torch.int32).clamp(0, width - 3)
    y = grid_y.floor().to(torch.int32).clamp(0, height - 3)
    cell = (rays.first_cell + y * width + x).expand_as(stride.step_x).contiguous()
    return Walk(
        cell=cell,
        code=level_map.code.view(-1)[cell],
        border_x=(x + stride.east - grid_x) * stride.inverse_x,
        border_y=(y + stride.north - grid_y) * stride.inverse_y,
    )


def num_paces(level_map: LevelMap) -> int:
    """The maximum number of cells that a column passes before it is stopped."""
    _, height, width = level_map.code.shape
    return height + width - 4 if level_map.has_walls else 0


def walk_on(
    theme: Theme, level_map: LevelMap, scene: Scene, rays: Rays, walk: Walk, paces: int
) -> Walk:
    """Advances by a number of paces; stopped columns stay in the cell in front of the wall."""
    codes, stride = level_map.code.view(-1), _stride(theme, level_map, rays)
    cell, code, border_x, border_y = walk
    for _ in range(paces):
        in_x = border_x < border_y
        next_cell = cell + torch.where(in_x, stride.step_x, stride.step_y)
        next_code = codes[next_cell]
        stopped = (next_code & maps.STOP_MASK) == maps.STOP
        if level_map.has_slabs:
            stopped = stopped | _meet_slab(scene, stride, code, border_x, border_y)[0]
        border_x = torch.where(in_x & ~stopped, border_x + stride.inverse_x.abs(), border_x)
        border_y = torch.where(in_x | stopped, border_y, border_y + stride.inverse_y.abs())
        cell, code = (
            torch.where(stopped, cell, next_cell),
            torch.where(stopped, code, next_code),
        )
    return Walk(cell, code, border_x, border_y)


def end_walk(theme: Theme, level_map: LevelMap, scene: Scene, rays: Rays, walk: Walk) -> Hit:
    """Returns the surfaces that stopped the columns."""
    stride = _stride(theme, level_map, rays)
    cell, code, border_x, border_y = walk
    in_x = border_x < border_y
    depth = torch.minimum(border_x, border_y)
    beyond = level_map.code.view(-1)[cell + torch.where(in_x, stride.step_x, stride.step_y)]
    hit = (beyond & maps.KIND_MASK) == maps.WALL
    slab = torch.zeros_like(hit)
    if level_map.has_slabs:
        slab, slab_depth, slab_in_x = _meet_slab(scene, stride, code, border_x, border_y)
        depth = torch.where(slab, slab_depth, depth)
        in_x = torch.where(slab, slab_in_x, in_x)
    depth = torch.where(hit | slab, depth.clamp(min=1.0), lens.FAR)
    # EAST or WEST, NORTH or SOUTH
    side = torch.where(in_x, 2 - 2 * stride.east, 3 - 2 * stride.north)
    return Hit(depth, cell, code, side, in_x, slab)


def _stride(theme: Theme, level_map: LevelMap, rays: Rays) -> Stride:
    width = level_map.code.shape[2]
    inverse_x = inverse(rays.dx * (1 / theme.cell[0]))
    inverse_y = inverse(rays.dy * (1 / theme.cell[1]))
    east, north = (inverse_x > 0).to(torch.int32), (inverse_y > 0).to(torch.int32)
    return Stride(inverse_x, inverse_y, east, north, east * 2 - 1, (north * 2 - 1) * width)


def _meet_slab(
    scene: Scene, stride: Stride, code: Tensor, border_x: Tensor, border_y: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Returns whether the ray hits the cell's slab, the depth, and whether on an x face."""
    along_x = (code & maps.KIND_MASK) == maps.DOOR_H
    is_door = along_x | ((code & maps.KIND_MASK) == maps.DOOR_I)
    is_open = (scene.open_doors[:, None] >> (code >> maps.DOOR_SHIFT & maps.DOOR_MASK)) & 1
    begin = torch.where(is_open == 1, effects.SLAB_OPEN_EDGE, 0.0)
    low, high = effects.SLAB_LOW, effects.SLAB_HIGH
    low_x, high_x = torch.where(along_x, begin, low), torch.where(along_x, 1.0, high)
    low_y, high_y = torch.where(along_x, low, begin), torch.where(along_x, high, 1.0)
    x_a = border_x + (low_x - stride.east) * stride.inverse_x
    x_b = border_x + (high_x - stride.east) * stride.inverse_x
    y_a = border_y + (low_y - stride.north) * stride.inverse_y
    y_b = border_y + (high_y - stride.north) * stride.inverse_y
    enter_x, enter_y = torch.minimum(x_a, x_b), torch.minimum(y_a, y_b)
    enter = torch.maximum(enter_x, enter_y)
    leave = torch.minimum(torch.maximum(x_a, x_b), torch.maximum(y_a, y_b))
    return is_door & (enter < leave) & (enter > 0), enter, enter_x > enter_y


def dress(
    theme: Theme, level_map: LevelMap, camera: TorchCamera, scene: Scene, rays: Rays, hit: Hit
) -> Walls:
    """Finds the texture strip and the light of each column."""
    _, height, width = level_map.code.shape
    place = hit.cell - rays.first_cell + width + 1  # index within the level, including its rim
    x, y = place % width - 1, place // width - 1
    mirrored = (hit.side == maps.EAST) | (hit.side == maps.SOUTH)
    along = torch.where(hit.in_x, rays.y + hit.depth * rays.dy, rays.x + hit.depth * rays.dx)
    begin = torch.where(hit.in_x, y * theme.cell[1], x * theme.cell[0])
    middle = torch.where(hit.in_x, theme.cell[1] / 2, theme.cell[0] / 2)

    column = wrap_texel(along)
    column = torch.where(mirrored, textures.TILE_SIZE - 1 - column, column)
    room = (hit.code & maps.KIND_MASK) == maps.ROOM
    tile = textures.WALLS + torch.where(room, scene.wall_look[:, None].to(torch.int32), 0)
    tile = torch.where(hit.slab, textures.SLAB, tile)

    aside = along - begin - middle
    aside = torch.where(mirrored, -aside, aside)
    wall = scene.level[:, None] * ((height - 2) * (width - 2)) + y * (width - 2) + x
    decal = level_map.decals.view(-1)[wall * 4 + hit.side].to(torch.int32)
    shown = (decal > 0) & (aside.abs() < effects.DECAL_UNITS / 2) & ~hit.slab
    decal_strip = to_strip(
        textures.DECALS - 1 + decal,
        choose_mip(camera, hit.depth, effects.DECAL_UNITS),
        to_texel(aside * (1 / effects.DECAL_UNITS) + 0.5),
    )

    # The light at the face's two corners: SE and NE, NW and NE, SW and NW, or SW and SE.
    east, north = hit.side == maps.EAST, hit.side == maps.NORTH
    first = torch.where(east, 1, torch.where(north, 2, 0))
    second = torch.where(east | north, 3, torch.where(hit.side == maps.WEST, 2, 1))
    low, high = light_at(hit.code, first), light_at(hit.code, second)
    light = low + (high - low) * ((along - begin) / (2 * middle))
    light = maps.LIGHT_MIN + maps.LIGHT_STEP * light
    light = light * torch.where(hit.in_x, effects.SIDE_SHADE, 1.0)
    return Walls(
        depth=hit.depth,
        strip=to_strip(tile, choose_mip(camera, hit.depth, lens.TILE_UNITS), column),
        decal=torch.where(shown, decal_strip, 0),
        light=light * (1 - effects.SHADE_PER_UNIT * hit.depth).clamp(min=effects.SHADE_MIN),
        facing=(hit.side + 2) & 3,
    )


def look_up(level_map: LevelMap, rays: Rays, x: Tensor, y: Tensor) -> Tensor:
    """Returns the codes of cells; RIM outside the grid."""
    _, height, width = level_map.code.shape
    cell = y.clamp(-1, height - 2) * width + x.clamp(-1, width - 2)
    return level_map.code.view(-1)[rays.first_cell + cell]


def light_at(code: Tensor, corner: Tensor | int) -> Tensor:
    shift = maps.LIGHT_SHIFT + maps.LIGHT_BITS * corner
    return (code >> shift & maps.LIGHT_MASK).to(torch.float32)


def inverse(slope: Tensor) -> Tensor:
    tiny = slope.abs() < 1e-9
    return 1 / torch.where(tiny, 1e-9, slope)


def to_texel(share: Tensor) -> Tensor:
    """Maps 0..1 to a column or row of the full-size tile."""
    last = textures.TILE_SIZE - 1
    return (share * textures.TILE_SIZE).to(torch.int32).clamp(0, last)


def wrap_texel(units: Tensor) -> Tensor:
    """Maps units to a column or row of a tile that repeats every 100 units."""
    texel = (units * (textures.TILE_SIZE / lens.TILE_UNITS)).floor().to(torch.int32)
    return texel & (textures.TILE_SIZE - 1)


def choose_mip(camera: TorchCamera, depth: Tensor, extent: Tensor | float) -> Tensor:
    """Returns the mip level for a tile of `extent` units at this depth."""
    scaled = depth * (lens.TILE_UNITS / extent)
    return torch.bucketize(scaled, camera.mip_depth, out_int32=True)


def to_strip(tile: Tensor | int, mip: Tensor, column: Tensor) -> Tensor:
    """Packs a column of a tile's mip level: index of its topmost texel, mip from bit 24."""
    offset = ((1 << 12) - ((1 << 12) >> (2 * mip))) * 4 // 3  # MIP_OFFSETS[mip]
    return (mip << STRIP_BITS) + tile * textures.TILE_TEXELS + offset + (column >> mip)


def down_strip(strip: Tensor, row: Tensor) -> Tensor:
    """Returns the index of the texel in a strip for a row of the full-size tile."""
    mip = strip >> STRIP_BITS
    return (strip & STRIP_MASK) + ((row >> mip) << (textures.TILE_BITS - mip))
