"""The levels of a pool as the renderers read them: one integer per cell.

Shapes: L levels, H x W cells, D doors. A rim one cell wide surrounds every level, so that rays
stop before they leave the array.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from episodic_curiosity.support.randomness import random_bits
from episodic_curiosity.worlds.lab.elements import NO_DOOR, CellKind, DoorStyle, Theme
from episodic_curiosity.worlds.maze.levels.stored import LevelPool
from episodic_curiosity.worlds.maze.render.scene import Side

KIND_MASK = 7  # bits 0-2 of a code: CellKind, or RIM
RIM = 6
# CellKind as plain ints: Numba and torch.compile cannot compare with members of an enum.
ROOM, WALL, VOID = int(CellKind.ROOM), int(CellKind.WALL), int(CellKind.VOID)
DOOR_H, DOOR_I = int(CellKind.DOOR_H), int(CellKind.DOOR_I)
EAST, NORTH, WEST, SOUTH = (int(side) for side in Side)
STOP_MASK, STOP = 3, 2  # code & STOP_MASK == STOP for WALL and RIM only
DOOR_SHIFT, DOOR_MASK = 3, 63  # bits 3-8: index of the door, or 63 for none
LIGHT_SHIFT, LIGHT_BITS, LIGHT_MASK = 9, 5, 31  # then light at the corners SW, SE, NW, NE
LIGHT_MIN, LIGHT_STEP = 0.84, 0.0095  # brightness = LIGHT_MIN + LIGHT_STEP * light


class LevelMap(NamedTuple):
    code: Tensor  # (L, H + 2, W + 2) int32
    decals: Tensor  # (L, H, W, 4) uint8
    fences: Tensor  # (L, D, 4) float32: centre x and y, 1 if along x, colour; D may be 0
    has_walls: bool
    has_slabs: bool


def make_level_map(theme: Theme, pool: LevelPool, device: torch.device | str) -> LevelMap:
    """Converts a pool; synchronises with the device, unlike drawing."""
    cells, doors, colours, decals = (
        torch.from_numpy(part).to(device)
        for part in (pool.cells, pool.doors, pool.door_colours, pool.decals)
    )
    is_door = (cells == CellKind.DOOR_H) | (cells == CellKind.DOOR_I)
    fenced = theme.door_style == DoorStyle.FENCE
    door = torch.where(is_door & (doors != NO_DOOR), doors, DOOR_MASK).to(torch.int32)
    code = cells.to(torch.int32) | door << DOOR_SHIFT | _light(cells) << LIGHT_SHIFT
    return LevelMap(
        code=torch.nn.functional.pad(code, (1, 1, 1, 1), value=RIM),
        decals=decals.contiguous(),
        fences=_fences(theme, cells, doors, colours)
        if fenced
        else torch.zeros((len(cells), 0, 4), device=cells.device),
        has_walls=bool((cells == CellKind.WALL).any()),
        has_slabs=bool(is_door.any()) and not fenced,
    )


def _light(cells: Tensor) -> Tensor:
    """Random light at the corners of the grid, packed per cell: (L, H, W) int32."""
    levels, height, width = cells.shape
    corner = torch.arange((height + 1) * (width + 1), device=cells.device)
    level = torch.arange(levels, device=cells.device)[:, None]
    bits = random_bits(level, corner).view(levels, height + 1, width + 1) >> 20 & LIGHT_MASK
    south, north = bits[:, :-1], bits[:, 1:]
    corners = (south[:, :, :-1], south[:, :, 1:], north[:, :, :-1], north[:, :, 1:])
    packed = sum(light << LIGHT_BITS * place for place, light in enumerate(corners))
    return torch.as_tensor(packed).to(torch.int32)


def _fences(theme: Theme, cells: Tensor, doors: Tensor, colours: Tensor) -> Tensor:
    """Geometry of each door as in LevelMap; doors that a level lacks are far away."""
    levels, num_doors = colours.shape
    fences = torch.tensor([1e8, 1e8, 1.0, 0.0], device=cells.device)
    fences = fences.repeat(levels, num_doors, 1)
    level, y, x = (doors != NO_DOOR).nonzero(as_tuple=True)
    door = doors[level, y, x].long()
    fences[level, door, 0] = theme.origin[0] + theme.cell[0] * (x + 0.5)
    fences[level, door, 1] = theme.origin[1] + theme.cell[1] * (y + 0.5)
    fences[level, door, 2] = (cells[level, y, x] == CellKind.DOOR_H).float()
    fences[:, :, 3] = colours.float()
    return fences
