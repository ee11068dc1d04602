"""Body movement: the engine's friction, acceleration and sliding along walls.

Shapes: N bodies, T = 4 frames per step. The axes x, y come first, (2, N), so that each is a
contiguous row. All shapes are fixed; the code is the same on a CPU and inside a CUDA graph.

Only walls that meet the vertex nearest to a body can stop it during a step: it moves at most
71 units away from that vertex, and other walls stop it no nearer than 83 units. One lookup per
step gives the solid cells among the four around the vertex. A table then gives the bounds of x
for each band of y, and of y for each band of x.
"""

import math
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from episodic_curiosity.worlds.lab.elements import CellKind, DoorStyle, Theme

# Plain ints: under torch.compile, a tensor never equals a member of an enum.
WALL, DOOR_H, DOOR_I = int(CellKind.WALL), int(CellKind.DOOR_H), int(CellKind.DOOR_I)

FRAMES_PER_STEP = 4
FRAME_SECONDS = 0.016
STEP_SECONDS = FRAMES_PER_STEP * FRAME_SECONDS
MAX_SPEED = 320.0  # units per second
GAIN = 10 * FRAME_SECONDS * MAX_SPEED  # maximum speed gained per frame
FRICTION = 6 * FRAME_SECONDS  # fraction of the speed lost per frame ...
STOP_SPEED = 100.0  # ... or of this speed, if the body is slower

HALF_WIDTH = 15.0  # of the body
REACH = HALF_WIDTH + 0.126  # the engine keeps a gap to surfaces
SLAB = 1.0  # how far the walls of a text maze protrude from their cell
DOOR_HALF_WIDTH = 49.0
DOOR_HALF_DEPTH = {DoorStyle.SLAB: 1.0, DoorStyle.FENCE: 4.0}
DOOR_EDGE = 93.0  # where an open door begins in its cell
ROUNDING = 0.01  # keeps a body that rests against one wall from catching on another
NUM_BANDS = 5
NUM_ANGLES = 65536  # per full turn: the engine's resolution


class Ground(NamedTuple):
    """The collision tables of a pool's levels."""

    corners: Tensor  # (L, V) uint8, four bits: the solid cells around each of V vertices
    bounds: Tensor  # (2, 2, 16 * 5) axis, lower or upper, corner and band
    edges: Tensor  # (4,) borders between the bands
    doors: Tensor  # (6, 4) centre and half widths in a cell, by kind (none, H, I) and open
    origin: Tensor  # (2, 1)
    cell: Tensor  # (2, 1)
    directions: Tensor  # (2, 65536) cosine and sine of the engine's angles
    width: int  # W, cells along x


class Obstacle(NamedTuple):
    """A rectangle that a body's centre may not enter."""

    centre: Tensor  # (2, N)
    half: Tensor  # (2, N) half widths, negative if there is no obstacle


class Motion(NamedTuple):
    """N bodies after one step."""

    position: Tensor  # (2, N)
    velocity: Tensor  # (2, N) rounded to integers
    yaw: Tensor  # (N,) degrees
    path: Tensor  # (T, 2, N) positions after each frame


def make_ground(
    cells: NDArray[np.uint8], theme: Theme, slab: float, device: torch.device
) -> Ground:
    """Builds the tables of `move`; cells outside the grid repeat the border."""
    solid = np.pad(
        np.isin(cells, (CellKind.WALL, CellKind.VOID)), ((0, 0), (1, 1), (1, 1)), "edge"
    )
    solid = solid.astype(np.uint8)  # (L, H + 2, W + 2)
    corners = (
        solid[:, :-1, :-1]
        | solid[:, :-1, 1:] << 1
        | solid[:, 1:, :-1] << 2
        | solid[:, 1:, 1:] << 3
    )
    near, far = REACH, REACH + slab
    angles = torch.arange(NUM_ANGLES, dtype=torch.float64) * (2 * math.pi / NUM_ANGLES)
    return Ground(
        corners=torch.from_numpy(corners.reshape(len(corners), -1)).to(device),
        bounds=_bounds(near, far).to(device),
        edges=torch.tensor(
            [ROUNDING - far, ROUNDING - near, near - ROUNDING, far - ROUNDING], device=device
        ),
        doors=_door_shapes(theme).to(device),
        origin=torch.tensor(theme.origin, device=device)[:, None],
        cell=torch.tensor(theme.cell, device=device)[:, None],
        directions=torch.stack((angles.cos(), angles.sin())).float().to(device),
        width=cells.shape[2],
    )


def cell_at(ground: Ground, position: Tensor) -> Tensor:
    """Returns the index y * W + x of the cell at each position: (2, N) -> (N,) int64."""
    column_row = ((position - ground.origin) / ground.cell).floor().long()
    return column_row[1] * ground.width + column_row[0]


def centre_of(ground: Ground, cell: Tensor) -> Tensor:
    """Returns the centre of each cell: (N,) -> (2, N) float32."""
    column_row = torch.stack((cell % ground.width, cell // ground.width))
    return ground.origin + (column_row + 0.5) * ground.cell


def direction(ground: Ground, yaw: Tensor) -> Tensor:
    """Returns unit vectors along angles in degrees, at NUM_ANGLES: (...) -> (2, ...)."""
    angle = (yaw * (NUM_ANGLES / 360.0)).round().long() & (NUM_ANGLES - 1)
    return ground.directions[:, angle]


def door_obstacle(
    ground: Ground,
    level: Tensor,
    position: Tensor,
    cells: Tensor,
    doors: Tensor,
    open_doors: Tensor,
) -> Obstacle:
    """Returns the door in each body's cell; doors elsewhere are out of reach for a step.

    cells, doors: (L, H * W) of the pool; the obstacle is in world coordinates.
    """
    here = cell_at(ground, position)
    kind, door = cells[level, here], doors[level, here].long()
    is_open = (open_doors >> door.clamp(max=63)) & 1
    row = (kind == DOOR_H) * 2 + (kind == DOOR_I) * 4 + is_open
    shape = ground.doors[row].T  # (4, N)
    corner = ground.origin + ground.cell * ((position - ground.origin) / ground.cell).floor()
    return Obstacle(corner + shape[:2], shape[2:])


def move(
    ground: Ground,
    level: Tensor,
    position: Tensor,
    velocity: Tensor,
    yaw: Tensor,
    command: Tensor,
    obstacle: Obstacle | None,
) -> Motion:
    """Moves N bodies for one step; command (3, N): forward, right, degrees left per frame."""
    forward, right, turn = command
    frames = torch.arange(1, FRAMES_PER_STEP + 1, device=yaw.device)[:, None]
    cos, sin = direction(ground, yaw + turn * frames)  # (T, N) each
    wish = torch.stack(  # (T, 2, N)
        (forward * cos + right * sin, forward * sin - right * cos), dim=1
    )

    vertex = ((position - ground.origin) / ground.cell).round()  # (2, N)
    origin = ground.origin + vertex * ground.cell
    column, row = vertex.long()
    corner = ground.corners[level, row * (ground.width + 1) + column].long() * NUM_BANDS
    walls = _Walls(ground, corner, obstacle, position, origin)

    here, path = position - origin, []
    for frame in range(FRAMES_PER_STEP):
        velocity = _accelerate(velocity, wish[frame])
        target = torch.add(here, velocity, alpha=FRAME_SECONDS)
        x = walls.stop(0, target[0], here[1])
        y = walls.stop(1, target[1], x)
        here = torch.stack((x, y))
        velocity = velocity.masked_fill(here != target, 0.0).round()
        path.append(here)
    frames_at = torch.stack(path) + origin
    return Motion(frames_at[-1], velocity, (yaw + turn * FRAMES_PER_STEP) % 360.0, frames_at)


def _accelerate(velocity: Tensor, wish: Tensor) -> Tensor:
    """One frame of friction, then of acceleration towards MAX_SPEED along `wish`."""
    speed = torch.hypot(velocity[0], velocity[1])
    # At rest the quotient is infinite, which the clamp turns into a full stop.
    kept = (1.0 - (FRICTION * STOP_SPEED) / speed).clamp(0.0, 1.0 - FRICTION)
    velocity = velocity * kept
    missing = MAX_SPEED - (velocity * wish).sum(0)
    return torch.addcmul(velocity, wish, missing.clamp(0.0, GAIN))


class _Walls:
    """The walls and doors around N bodies during one step, relative to their vertices."""

    def __init__(
        self,
        ground: Ground,
        corner: Tensor,
        obstacle: Obstacle | None,
        position: Tensor,
        origin: Tensor,
    ) -> None:
        self.bounds, self.edges, self.corner = ground.bounds, ground.edges, corner
        self.obstacle = None
        if obstacle is not None:
            centre = obstacle.centre - origin
            above = position >= obstacle.centre  # a body stays on its side
            self.obstacle = Obstacle(centre, obstacle.half - ROUNDING)
            self.lower = (centre + obstacle.half).where(above, -torch.inf)
            self.upper = (centre - obstacle.half).where(~above, torch.inf)

    def stop(self, axis: int, target: Tensor, across: Tensor) -> Tensor:
        """Clamps `target` on one axis for a body at `across` on the other."""
        place = self.corner + torch.bucketize(across, self.edges)
        lower, upper = self.bounds[axis, 0][place], self.bounds[axis, 1][place]
        if self.obstacle is not None:
            centre, half = self.obstacle.centre[1 - axis], self.obstacle.half[1 - axis]
            beside = (across - centre).abs() < half
            lower = torch.maximum(lower, self.lower[axis].where(beside, -torch.inf))
            upper = torch.minimum(upper, self.upper[axis].where(beside, torch.inf))
        return torch.clamp(target, lower, upper)


def _bounds(near: float, far: float) -> Tensor:
    """The bounds of each axis by solid cells and band, (2, 2, 16 * 5).

    Bands are of the other axis. More than `far` below the vertex, a body meets only the lower
    two cells; within `near`, all four. In between, the upper two stop it at `near` instead of
    `far`: the notch at a convex corner.
    """
    bounds = torch.empty(2, 2, 16, NUM_BANDS)
    for axis in range(2):
        along, across = (1, 2) if axis == 0 else (2, 1)  # bit strides along each axis
        for corner in range(16):
            for band in range(NUM_BANDS):
                for end in range(2):  # lower, upper bound
                    low = bool(corner >> (end * along) & 1)
                    high = bool(corner >> (end * along + across) & 1)
                    own, other = (low, high) if band < 2 else (high, low)
                    if own or (band == 2 and other):
                        bound = far
                    elif other and band in (1, 3):
                        bound = near
                    else:
                        bound = -math.inf
                    bounds[axis, end, corner, band] = bound if end == 0 else -bound
    return bounds.reshape(2, 2, -1)


def _door_shapes(theme: Theme) -> Tensor:
    """(6, 4) centre and half widths of the doors none, H and I, each shut and open."""
    x, y = theme.cell[0] / 2, theme.cell[1] / 2
    none = (x, y, -1.0, -1.0)
    wide, deep = DOOR_HALF_WIDTH + REACH, DOOR_HALF_DEPTH[theme.door_style] + REACH
    shut_h, shut_i = (x, y, wide, deep), (x, y, deep, wide)
    middle, half = (DOOR_EDGE + 100.0) / 2, (100.0 - DOOR_EDGE) / 2 + REACH
    open_h, open_i = (middle, y, half, deep), (x, middle, deep, half)
    return torch.tensor([none, none, shut_h, open_h, shut_i, open_i])
