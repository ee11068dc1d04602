"""Billboards and fences in front of the walls, in torch.

Shapes: N frames, w columns, Q quads, B billboards, D doors, K layers.
"""

import math
from typing import NamedTuple

import torch
from torch import Tensor

from episodic_curiosity.worlds.maze.render import camera as lens
from episodic_curiosity.worlds.maze.render import effects, textures
from episodic_curiosity.worlds.maze.render.level_map import LevelMap
from episodic_curiosity.worlds.maze.render.scene import Scene
from episodic_curiosity.worlds.maze.render.textures import Textures
from episodic_curiosity.worlds.maze.render.walk_torch import (
    Rays,
    TorchCamera,
    Walls,
    choose_mip,
    inverse,
    to_strip,
    to_texel,
)


class Quads(NamedTuple):
    """Upright rectangles with transparent parts: billboards and shut fences, (N, Q)."""

    x: Tensor  # centre, relative to the eye
    y: Tensor
    normal_x: Tensor
    normal_y: Tensor
    along_x: Tensor  # unit vector along the quad, divided by its width
    along_y: Tensor
    top: Tensor  # of the upper edge, above the eye
    height: Tensor
    half_depth: Tensor  # of the posts of a fence, else 0
    tile: Tensor  # int32; negative if there is no quad


class Layer(NamedTuple):
    """One quad per column, (N, w): texture row = top - up * fall."""

    depth: Tensor  # FAR if there is no quad
    strip: Tensor  # int32
    top: Tensor
    fall: Tensor


def gather_quads(level_map: LevelMap, pictures: Textures, scene: Scene, rays: Rays) -> Quads:
    sprite = scene.sprite.to(torch.int32)
    width, height, base, bob, thickness = pictures.items[sprite].unbind(-1)  # (N, B)
    turn = (scene.time * (2 * math.pi / textures.SPIN_PERIOD)).cos().abs()[:, None]
    wave = (scene.time * (2 * math.pi / textures.BOB_PERIOD)).sin()[:, None]
    width = width * (thickness + (1 - thickness) * turn)
    offset = scene.sprite_position - scene.position[:, None]
    ones = torch.ones_like(width)
    billboards = Quads(
        x=offset[..., 0],
        y=offset[..., 1],
        normal_x=rays.cos * ones,
        normal_y=rays.sin * ones,
        along_x=rays.sin / width,
        along_y=-rays.cos / width,
        top=base + bob * wave + height - lens.EYE,
        height=height,
        half_depth=torch.zeros_like(width),
        tile=torch.where(sprite == 0, -1, textures.SPRITES + sprite),
    )
    if level_map.fences.shape[1] == 0:
        return billboards
    x, y, in_x, colour = level_map.fences[scene.level].unbind(-1)  # (N, D)
    door = torch.arange(x.shape[1], device=x.device)
    is_open = (scene.open_doors[:, None] >> door) & 1
    width = torch.where(is_open == 1, effects.FENCE_OPEN_WIDTH, effects.FENCE_WIDTH)
    shift = is_open * effects.FENCE_OPEN_SHIFT
    tile = torch.where(is_open == 1, textures.POSTS, textures.FENCES)
    in_y, ones = 1 - in_x, torch.ones_like(x)
    fences = Quads(
        x=x + shift * in_x - scene.position[:, :1],
        y=y + shift * in_y - scene.position[:, 1:],
        normal_x=in_y,
        normal_y=in_x,
        along_x=in_x / width,
        along_y=in_y / width,
        top=(effects.FENCE_HEIGHT - lens.EYE) * ones,
        height=effects.FENCE_HEIGHT * ones,
        half_depth=effects.FENCE_HALF_DEPTH * ones,
        tile=(tile + colour).to(torch.int32),
    )
    return Quads(*(torch.cat(pair, 1) for pair in zip(billboards, fences, strict=True)))


def find_layers(camera: TorchCamera, rays: Rays, walls: Walls, quads: Quads) -> list[Layer]:
    """Returns up to MAX_LAYERS quads in front of each column's wall, nearest first."""
    every = Quads(*(field[:, :, None] for field in quads))  # (N, Q, 1)
    depth, aside = meet_quad(rays._replace(dx=rays.dx[:, None], dy=rays.dy[:, None]), every)
    covers = (aside.abs() < 0.5) & (depth > lens.NEAR) & (depth < walls.depth[:, None])
    depth = torch.where(covers & (every.tile >= 0), depth, lens.FAR)  # (N, Q, w)
    number = torch.arange(depth.shape[1], device=depth.device)[:, None]
    layers = []
    for _ in range(min(depth.shape[1], effects.MAX_LAYERS)):
        nearest, index = depth.min(1)  # (N, w)
        depth = torch.where(number == index[:, None], lens.FAR, depth)
        quad = Quads(*(field.gather(1, index) for field in quads))
        _, aside = meet_quad(rays, quad)
        mip = choose_mip(camera, nearest, quad.height)
        rows = textures.TILE_SIZE / quad.height
        strip = to_strip(quad.tile, mip, to_texel(aside + 0.5))
        layers.append(Layer(nearest, strip, quad.top * rows, nearest * rows))
    return layers


def meet_quad(rays: Rays, quad: Quads) -> tuple[Tensor, Tensor]:
    """Depth at which columns meet a quad's plane, and the offset from its centre in widths."""
    facing = quad.normal_x * rays.dx + quad.normal_y * rays.dy
    depth = (quad.x * quad.normal_x + quad.y * quad.normal_y) * inverse(facing)
    aside_x, aside_y = depth * rays.dx - quad.x, depth * rays.dy - quad.y
    aside = aside_x * quad.along_x + aside_y * quad.along_y
    # Posts are as deep as the fence: a ray that passes a post's middle aside may still meet it.
    slope = quad.along_x * rays.dx + quad.along_y * rays.dy
    reach = (quad.half_depth * inverse(facing) * slope).abs()
    post = ((aside - effects.FENCE_FIRST_POST) * (1 / effects.FENCE_POST_GAP)).round()
    post = post.clamp(0, effects.FENCE_POSTS - 1) * effects.FENCE_POST_GAP
    past = aside - (post + effects.FENCE_FIRST_POST)
    shift = past.clamp(-effects.FENCE_POST_EDGE, effects.FENCE_POST_EDGE) - past
    shift = torch.where(shift.abs() < reach, shift, 0.0)
    return depth + shift * inverse(slope), aside + shift
