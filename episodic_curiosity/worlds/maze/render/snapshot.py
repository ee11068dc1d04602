"""Packs a scene into at most 256 bytes per row, from which its frame can be redrawn exactly.

Shapes: N rows, B sprites, F fire marks.
"""

import math
from itertools import groupby

import torch
from torch import Tensor

from episodic_curiosity.worlds.lab.elements import Sprite
from episodic_curiosity.worlds.maze.render.scene import (
    NUM_FLOOR_LOOKS,
    NUM_MARKS,
    NUM_WALL_LOOKS,
    Scene,
)

# Fields stored in a smaller type: there are fewer than 2**31 levels, and sprite positions are
# integers.
STORED = {"level": torch.int32, "sprite_position": torch.int16}
B = -1  # placeholder for the number of sprites
# `contiguous()` would keep the strides of a single row, which `view` rejects.
CONTIGUOUS = torch.contiguous_format
FIELDS: dict[str, tuple[torch.dtype, tuple[int, ...]]] = {
    "level": (torch.int64, ()),
    "position": (torch.float32, (2,)),
    "yaw": (torch.float32, ()),
    "wall_look": (torch.uint8, ()),
    "floor_look": (torch.uint8, ()),
    "open_doors": (torch.int64, ()),
    "sprite": (torch.uint8, (B,)),
    "sprite_position": (torch.float32, (B, 2)),
    "time": (torch.float32, ()),
    "mark_position": (torch.float32, (NUM_MARKS, 2)),
    "mark_side": (torch.uint8, (NUM_MARKS,)),
    "mark_age": (torch.float32, (NUM_MARKS,)),
    "spawn_age": (torch.float32, ()),
}
assert tuple(FIELDS) == Scene._fields


def pack(scene: Scene) -> Tensor:
    """Returns a scene as (N, bytes) uint8."""
    columns = [_stored(name, field) for name, field in scene._asdict().items()]
    runs = groupby(columns, key=lambda column: column.dtype)  # of one dtype, converted together
    return torch.cat([_to_bytes(torch.cat(list(run), dim=1)) for _, run in runs], dim=1)


def _stored(name: str, field: Tensor) -> Tensor:
    """Converts an (N, ...) field to (N, ...) integers of its stored size."""
    if name in STORED:
        field = field.to(STORED[name])
    elif field.dtype == torch.float32:
        field = field.contiguous().view(torch.int32)
    return field.reshape(len(field), -1)


def _to_bytes(numbers: Tensor) -> Tensor:
    """Returns the (N, bytes) of (N, ...) integers, in little-endian order."""
    if numbers.dtype == torch.uint8:
        return numbers
    if not torch.compiler.is_compiling():
        return numbers.view(torch.uint8)
    # The compiler cannot view integers as smaller ones; shifts work.
    shifts = torch.arange(0, 8 * numbers.dtype.itemsize, 8, device=numbers.device)
    return ((numbers[..., None] >> shifts) & 0xFF).to(torch.uint8).flatten(1)


def unpack(rows: Tensor, num_sprites: int) -> Scene:
    """Returns the packed scene; rows may be of different calls of `pack`."""
    size = num_bytes(num_sprites)
    if rows.dtype != torch.uint8 or rows.dim() != 2 or rows.shape[1] != size:
        raise ValueError(
            f"snapshots of this world must be (rows, {size}) of dtype uint8, "
            f"got {tuple(rows.shape)} of {rows.dtype}"
        )
    fields, start = {}, 0
    for name, (dtype, dims) in FIELDS.items():
        shape = [num_sprites if size == B else size for size in dims]
        stored = STORED.get(name, dtype)
        count = stored.itemsize * math.prod(shape)
        column = rows[:, start : start + count].clone(memory_format=CONTIGUOUS).view(stored)
        fields[name] = column.reshape(len(rows), *shape).to(dtype)
        start += count
    return Scene(**fields)


def num_bytes(num_sprites: int) -> int:
    """Returns the size of one row."""
    return sum(
        STORED.get(name, dtype).itemsize
        * math.prod(num_sprites if size == B else size for size in dims)
        for name, (dtype, dims) in FIELDS.items()
    )


def within_bounds(scene: Scene, num_levels: int) -> tuple[Scene, Tensor]:
    """Clamps a scene into its valid range; also returns whether it was outside, () bool."""
    limits = {
        "level": num_levels,
        "wall_look": NUM_WALL_LOOKS,
        "floor_look": NUM_FLOOR_LOOKS,
        "sprite": len(Sprite),
    }
    fields = {name: getattr(scene, name) for name in limits}
    bad = [((field < 0) | (field >= limits[name])).any() for name, field in fields.items()]
    is_bad = torch.stack([*bad, ~scene.position.isfinite().all()]).any()
    clamped = {name: field.clamp(0, limits[name] - 1) for name, field in fields.items()}
    position = scene.position.nan_to_num(0.0, 0.0, 0.0)
    return scene._replace(**clamped, position=position), is_bad
