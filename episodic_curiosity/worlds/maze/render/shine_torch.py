"""The light of shots and of spawning, in torch.

Shapes: N frames, h x w pixels, F fire marks. Shots hit at eye height, so the columns of
wall that a mark covers are the same in all rows.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from episodic_curiosity.worlds.maze.render import effects, textures
from episodic_curiosity.worlds.maze.render.scene import Scene
from episodic_curiosity.worlds.maze.render.walk_torch import (
    Rays,
    TorchCamera,
    Walls,
    choose_mip,
    to_strip,
    to_texel,
)


class Mark(NamedTuple):
    """The newest fire mark in each column of wall, (N, w)."""

    strip: Tensor  # int32, 0 for no mark
    fade: Tensor  # from 1 to 0


class Flashes(NamedTuple):
    """The flash of each shot, (N, F): a ball with a bright rim."""

    x: Tensor  # centre, relative to the eye
    y: Tensor
    scale: Tensor  # distance ** 2 * scale - offset is 0 on the rim, 1 about FLASH_WIDTH outside
    offset: Tensor
    strength: Tensor  # from 1 to 0


def find_flashes(scene: Scene) -> Flashes:
    age = scene.mark_age.clamp(max=effects.FLASH_LIFE)
    radius = effects.FLASH_RADIUS + effects.FLASH_GROWTH * age
    scale = 1 / (radius * (2 * effects.FLASH_WIDTH))
    x, y = (scene.mark_position - scene.position[:, None]).unbind(-1)
    return Flashes(x, y, scale, radius * radius * scale, 1 - age * (1 / effects.FLASH_LIFE))


def find_marks(camera: TorchCamera, scene: Scene, rays: Rays, walls: Walls) -> Mark:
    if scene.mark_age.shape[1] == 0:
        return Mark(torch.zeros_like(walls.strip), torch.zeros_like(walls.depth))
    # One batch, (N, F, w): a loop over marks would take a third of the compile time.
    hit_x, hit_y = (scene.mark_position - scene.position[:, None]).unbind(-1)  # (N, F)
    x, y = walls.depth * rays.dx, walls.depth * rays.dy  # (N, w)
    from_x, from_y = x[:, None] - hit_x[..., None], y[:, None] - hit_y[..., None]
    touches = torch.maximum(from_x.abs(), from_y.abs()) < effects.MARK_RADIUS
    seen = touches & (walls.facing[:, None] == scene.mark_side[..., None])
    left = 1 - scene.mark_age * (1 / effects.MARK_LIFE)
    fade, newest = torch.where(seen, left[..., None], 0.0).max(1)  # (N, w)
    aside = x - hit_x.gather(1, newest) + (y - hit_y.gather(1, newest))  # one is 0 on a wall
    column = to_texel(0.5 + aside * (0.5 / effects.MARK_RADIUS))
    mip = choose_mip(camera, walls.depth, 2 * effects.MARK_RADIUS)
    strip = to_strip(textures.MARK, mip, column)
    return Mark(torch.where(fade > 0, strip, 0), fade.clamp(min=0))


def add_flashes(flashes: Flashes, x: Tensor, y: Tensor, z: Tensor) -> Tensor:
    """Returns the summed light of all flashes, (N, h, w), at positions relative to the eye."""
    light = torch.zeros_like(z)
    z_square = z * z
    for fields in zip(*(field[..., None, None].unbind(1) for field in flashes), strict=True):
        flash = Flashes(*fields)  # (N, 1, 1)
        from_x, from_y = x - flash.x, y - flash.y
        square = from_x * from_x + from_y * from_y + z_square
        rim = square * flash.scale - flash.offset
        ball = torch.minimum(1 - rim, (1 + rim).clamp(min=effects.FLASH_HAZE))
        light = light + flash.strength * ball.clamp(min=0)
    return light


def spawn_ring(camera: TorchCamera, scene: Scene) -> tuple[Tensor, Tensor]:
    """Brightness of the ring around a new spawn, above and below the horizon."""
    age = scene.spawn_age[:, None, None]
    steep = camera.up * camera.upright  # (h, w)
    edge = effects.SPAWN_RING + effects.SPAWN_GROWTH * age
    glow = ((steep.abs() - edge) * (1 / effects.SPAWN_EDGE)).clamp(0, 1)
    glow = glow * (1 - age * (1 / effects.SPAWN_LIFE)).clamp(min=0)
    return torch.where(steep > 0, glow, 0.0), torch.where(steep > 0, 0.0, glow)
