"""Batched ray casting for shots: finds the first wall or shut door ahead.

Shapes: N shots, H x W cells, K grid lines across each axis. A wall's face lies on a grid line,
a door halfway between two. For both axes, (2, N, K), the distance to each line and the cell
behind it are computed; the nearest cell that stops a shot is the hit.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from episodic_curiosity.worlds.lab.elements import DoorStyle
from episodic_curiosity.worlds.maze.render.scene import Side
from episodic_curiosity.worlds.maze.rules import body
from episodic_curiosity.worlds.maze.rules.body import DOOR_EDGE, DOOR_HALF_DEPTH, Ground

FAR = 1e6  # beyond the extent of any level


class Hit(NamedTuple):
    """The hits of N shots; invisible walls (VOID) do not stop them."""

    position: Tensor  # (N, 2)
    side: Tensor  # (N,) uint8, the Side that the surface faces
    distance: Tensor  # (N,) units, FAR if nothing was hit


class Doors(NamedTuple):
    """The doors of a pool, and those open for each shot."""

    number: Tensor  # (L, H * W) uint8
    open_doors: Tensor  # (N,) int64 bit mask
    style: DoorStyle


class _Crossing(NamedTuple):
    """Intersections of shots with grid lines, (2, N, K): lines across x, then across y."""

    distance: Tensor  # FAR for lines behind the shot
    across: Tensor  # coordinate on the other axis
    cell: Tensor  # int64, index of the cell in the pool, clamped into its level
    inside: Tensor  # bool, the cell is inside the level


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
    """Distance to the first wall face perpendicular to each axis: (2, N)."""
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
    """Distance to the first door perpendicular to each axis: (2, N)."""
    numbers = _numbers(ground, cells, 0)
    middles = ground.origin + (numbers + 0.5) * ground.cell  # (2, K)
    half_depth = DOOR_HALF_DEPTH[doors.style]
    faces = middles[:, None] - half_depth * direction.sign()[..., None]  # (2, N, K)
    own = numbers.expand(2, position.shape[1], -1)
    met = _cross(ground, level, cells, position, direction, faces, own)
    door = _read(doors.number, met).long().clamp(max=63)
    shut = (doors.open_doors[:, None] >> door) & 1 == 0
    offset = (met.across - ground.origin.flip(0)[..., None]) % ground.cell.flip(0)[..., None]
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
    """Intersects each shot with each line; `along` is the cell's index along the axis."""
    distance = (lines - position[..., None]) / direction[..., None]
    distance = distance.where((distance > 0) & (distance < FAR), FAR)
    across = torch.addcmul(position.flip(0)[..., None], distance, direction.flip(0)[..., None])
    origin, cell = ground.origin.flip(0)[..., None], ground.cell.flip(0)[..., None]
    # A floor for values from -1 on, at half the cost; lower values stay negative, so outside.
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
