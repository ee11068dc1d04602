"""The light of shots and of spawning, in plain torch operations.

Shapes: N frames, h x w pixels, F fire marks. A shot hits at eye height, so whether its mark
lies in a column of wall is the same for all rows.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from episodic_curiosity.worlds.maze import effects, textures
from episodic_curiosity.worlds.maze.scene import Scene
from episodic_curiosity.worlds.maze.walk_torch import (
    Camera,
    Rays,
    Walls,
    choose_mip,
    to_strip,
    to_texel,
)


class Mark(NamedTuple):
    """The newest fire mark in each column of wall, (N, w)."""

    strip: Tensor  # int32, 0 where there is none
    fade: Tensor  # from 1 to 0


class Flashes(NamedTuple):
    """The flash of each shot, (N, F): a ball whose rim is bright."""

    x: Tensor  # of its middle, relative to the eye
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


def find_marks(camera: Camera, scene: Scene, rays: Rays, walls: Walls) -> Mark:
    strip, fade = torch.zeros_like(walls.strip), torch.zeros_like(walls.depth)
    mip = choose_mip(camera, walls.depth, 2 * effects.MARK_RADIUS)
    for mark in range(scene.mark_age.shape[1]):
        hit = scene.mark_position[:, mark] - scene.position
        x, y = walls.depth * rays.dx - hit[:, :1], walls.depth * rays.dy - hit[:, 1:]
        touches = torch.maximum(x.abs(), y.abs()) < effects.MARK_RADIUS
        left = 1 - scene.mark_age[:, mark, None] * (1 / effects.MARK_LIFE)
        newest = touches & (walls.facing == scene.mark_side[:, mark, None]) & (left > fade)
        aside = x + y  # one of them is zero on a wall
        column = to_texel(0.5 + aside * (0.5 / effects.MARK_RADIUS))
        strip = torch.where(newest, to_strip(textures.MARK, mip, column), strip)
        fade = torch.where(newest, left, fade)
    return Mark(strip, fade)


def add_flashes(flashes: Flashes, x: Tensor, y: Tensor, z: Tensor) -> Tensor:
    """The light of all flashes, (N, h, w), at places relative to the eye."""
    light = torch.zeros_like(z)
    z_square = z * z
    for number in range(flashes.x.shape[1]):
        flash = Flashes(*(field[:, number, None, None] for field in flashes))  # (N, 1, 1)
        from_x, from_y = x - flash.x, y - flash.y
        square = from_x * from_x + from_y * from_y + z_square
        rim = square * flash.scale - flash.offset
        ball = torch.minimum(1 - rim, (1 + rim).clamp(min=effects.FLASH_HAZE))
        light = light + flash.strength * ball.clamp(min=0)
    return light


def spawn_ring(camera: Camera, scene: Scene) -> tuple[Tensor, Tensor]:
    """How bright the ring around a newly spawned player is above and below the horizon."""
    age = scene.spawn_age[:, None, None]
    steep = camera.up * camera.upright  # (h, w)
    edge = effects.SPAWN_RING + effects.SPAWN_GROWTH * age
    glow = ((steep.abs() - edge) * (1 / effects.SPAWN_EDGE)).clamp(0, 1)
    glow = glow * (1 - age * (1 / effects.SPAWN_LIFE)).clamp(min=0)
    return torch.where(steep > 0, glow, 0.0), torch.where(steep > 0, 0.0, glow)
