"""Where a shot hits: the first wall or shut door ahead, found for all shots at once.

Shapes: N shots, H x W cells, K grid lines across each axis. A wall's face lies on a grid line
and a door in the middle between two; for both axes at once, (2, N, K), it is worked out how far
each line is, which cell is met there, and which of these cells stop a shot.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from episodic_curiosity.worlds.lab.elements import DoorStyle
from episodic_curiosity.worlds.maze.render.scene import Side
from episodic_curiosity.worlds.maze.rules import body
from episodic_curiosity.worlds.maze.rules.body import DOOR_EDGE, DOOR_HALF_DEPTH, Ground

FAR = 1e6  # further than any level reaches


class Hit(NamedTuple):
    """What N shots hit; an invisible wall stops none of them."""

    position: Tensor  # (N, 2)
    side: Tensor  # (N,) uint8, Side the surface faces
    distance: Tensor  # (N,) units, FAR where there is nothing


class Doors(NamedTuple):
    """The doors of a pool, and which of them are open in each shot's level."""

    number: Tensor  # (L, H * W) uint8
    open_doors: Tensor  # (N,) int64 bit mask
    style: DoorStyle


class _Crossing(NamedTuple):
    """Shots meeting lines, (2, N, K); the first axis is the one the lines lie across."""

    distance: Tensor  # FAR behind the shot
    across: Tensor  # where on the other axis
    cell: Tensor  # int64 index of the cell met in the pool, clamped into its level
    inside: Tensor  # bool, whether there is such a cell


def first_hit(
    ground: Ground,
    level: Tensor,
    cells: Tensor,
    doors: Doors | None,
    position: Tensor,
    yaw: Tensor,
) -> Hit:
    """Traces N shots; cells (L, H * W) of the pool, position (2, N)."""
    direction = body.direction(ground, yaw)  # (2, N)
    distance = _first_wall(ground, level, cells, position, direction)  # (2, N)
    if doors is not None:
        distance = distance.minimum(
            _first_door(ground, level, cells, doors, position, direction)
        )
    ahead = direction > 0
    facing_x = torch.where(ahead[0], int(Side.WEST), int(Side.EAST))
    facing_y = torch.where(ahead[1], int(Side.SOUTH), int(Side.NORTH))
    side = torch.where(distance[0] < distance[1], facing_x, facing_y).to(torch.uint8)
    nearest = distance.amin(0)
    return Hit((position + nearest * direction).T, side, nearest)


def _first_wall(
    ground: Ground, level: Tensor, cells: Tensor, position: Tensor, direction: Tensor
) -> Tensor:
    """Distance to the first wall whose face lies across each axis: (2, N)."""
    numbers = _numbers(ground, cells, 1)  # K
    lines = ground.origin + numbers * ground.cell  # (2, K)
    behind_line = numbers - (direction <= 0).long()[..., None]  # the cell entered, (2, N, K)
    met = _cross(ground, level, cells, position, direction, lines[:, None], behind_line)
    return _nearest(met.distance, met.inside & (_read(cells, met) == body.WALL))


def _first_door(
    ground: Ground,
    level: Tensor,
    cells: Tensor,
    doors: Doors,
    position: Tensor,
    direction: Tensor,
) -> Tensor:
    """Distance to the first door across each axis, in the middle of its cell: (2, N)."""
    numbers = _numbers(ground, cells, 0)
    middles = ground.origin + (numbers + 0.5) * ground.cell  # (2, K)
    faces = middles[:, None] - DOOR_HALF_DEPTH * direction.sign()[..., None]  # (2, N, K)
    own = numbers.expand(2, position.shape[1], -1)
    met = _cross(ground, level, cells, position, direction, faces, own)
    door = _read(doors.number, met).long().clamp(max=63)
    shut = (doors.open_doors[:, None] >> door) & 1 == 0
    if doors.style == DoorStyle.SLAB:
        offset = (met.across - ground.origin.flip(0)[..., None]) % ground.cell.flip(0)[
            ..., None
        ]
        shut = shut | (offset > DOOR_EDGE)
    kind = _read(cells, met)
    is_door = torch.stack((kind[0] == body.DOOR_I, kind[1] == body.DOOR_H))
    return _nearest(met.distance, met.inside & is_door & shut)


def _numbers(ground: Ground, cells: Tensor, more: int) -> Tensor:
    longer = max(ground.width, cells.shape[1] // ground.width)
    return torch.arange(longer + more, device=cells.device)


def _cross(
    ground: Ground,
    level: Tensor,
    cells: Tensor,
    position: Tensor,
    direction: Tensor,
    lines: Tensor,
    along: Tensor,
) -> _Crossing:
    """Follows each shot to each line; `along` says which cell is met there along the axis."""
    distance = (lines - position[..., None]) / direction[..., None]
    distance = distance.where((distance > 0) & (distance < FAR), FAR)
    across = torch.addcmul(position.flip(0)[..., None], distance, direction.flip(0)[..., None])
    origin, cell = ground.origin.flip(0)[..., None], ground.cell.flip(0)[..., None]
    # Rounds down from -1 on, and what is further out stays outside, at half of floor's price.
    beside = ((across - origin) / cell + 1.0).long() - 1

    width, height = ground.width, cells.shape[1] // ground.width
    column = torch.stack((along[0], beside[1]))
    row = torch.stack((beside[0], along[1]))
    inside = (column >= 0) & (column < width) & (row >= 0) & (row < height)
    met = (row * width + column).clamp(0, width * height - 1)
    met = met + level[:, None] * (width * height)
    return _Crossing(distance, across, met, inside)


def _read(table: Tensor, met: _Crossing) -> Tensor:
    """The entries of an (L, H * W) table in the cells met: (2, N, K)."""
    return table.take(met.cell)


def _nearest(distance: Tensor, stops: Tensor) -> Tensor:
    return distance.where(stops, FAR).amin(2)
