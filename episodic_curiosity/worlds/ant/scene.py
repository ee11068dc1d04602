"""The inputs of a view: position and rotation of the ant, and its floor.

Shapes: N ants.
"""

from typing import NamedTuple, TypeVar

import torch
from torch import Tensor

from episodic_curiosity.worlds.ant.textures import NUM_TEXTURES

TILE = 4.0  # units, the side of a tile
FLOOR_TILES = 100  # per side of the floor, whose centre is the origin
# The camera is at the torso's centre and looks along its x axis, 32 degrees down. The rotation
# is a quaternion, w first, for a camera that looks along -z with y up.
CAMERA_TURN = (0.61872185, 0.34232043, -0.34232043, -0.61872185)
FIELD_OF_VIEW = 45.0  # degrees, vertical
ASPECT = 4 / 3  # width over height

Number = TypeVar("Number", float, Tensor)


class Scene(NamedTuple):
    """Everything that N views depend on."""

    position: Tensor  # (N, 3) float32, of the torso, in units
    turn: Tensor  # (N, 4) float32, of the torso: a non-zero quaternion, w first
    floor: Tensor  # (N,) int32, seed of the tiles
    floor_period: int | None = None  # tiles after which they repeat; None: never


def camera_axes(turn: Tensor) -> Tensor:
    """The camera's right, up and forward axes in world coordinates, (N, 3, 3), one per row."""
    torso = _axes(*turn.unbind(1))
    # Written out, since a matrix product may round differently in another batch.
    axes = [
        [x * torso[0][i] + y * torso[1][i] + z * torso[2][i] for i in range(3)]
        for x, y, z in (_RIGHT, _UP, _AHEAD)
    ]
    return torch.stack([torch.stack(axis, dim=1) for axis in axes], dim=1)


def tile_texture(
    floor: Tensor, column: Tensor, row: Tensor, period: int | None = None
) -> Tensor:
    """The texture of each tile, int32 in 0..189: a hash of the floor's seed and the position.

    Tiles are counted from the floor's centre, columns along x, rows along -y. With a period,
    the same tiles come again after that many columns and rows.
    """
    if period is not None:
        column, row = column % period, row % period
    bits = column * 0x2C1B3C6D + row * 0x297A2D39 + floor  # overflow wraps around
    bits = (bits ^ (bits >> 15 & 0x1FFFF)) * 0x5BD1E995
    bits = (bits ^ (bits >> 13 & 0x7FFFF)) * 0x3C6EF35F
    return (bits >> 16 & 0xFFFF) * NUM_TEXTURES >> 16


def _axes(w: Number, x: Number, y: Number, z: Number) -> list[tuple[Number, Number, Number]]:
    """The x, y and z axes rotated by a quaternion."""
    twice = 2 / (w * w + x * x + y * y + z * z)
    return [
        (1 - twice * (y * y + z * z), twice * (x * y + w * z), twice * (x * z - w * y)),
        (twice * (x * y - w * z), 1 - twice * (x * x + z * z), twice * (y * z + w * x)),
        (twice * (x * z + w * y), twice * (y * z - w * x), 1 - twice * (x * x + y * y)),
    ]


_RIGHT, _UP, _BACK = _axes(*CAMERA_TURN)
_AHEAD = tuple(-part for part in _BACK)
