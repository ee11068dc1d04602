"""Generates batches of mazes of rooms and corridors, as DeepMind Lab does.

Rooms and corridors lie on the odd cells of the grid. Each stage handles the complete batch:
rooms, corridors, connectors, simplification (simplify.py), spawns and goals.
Shapes: B mazes, H x W cells, stored south first: [y, x].
"""

from dataclasses import dataclass
from enum import IntEnum
from itertools import product

import numpy as np
from numpy.typing import NDArray

from episodic_curiosity.support.checks import check_at_least, check_type
from episodic_curiosity.worlds.lab.elements import CellKind
from episodic_curiosity.worlds.lab.text import Bools, Mazes
from episodic_curiosity.worlds.maze.levels.draws import random_below, random_bits, random_unit
from episodic_curiosity.worlds.maze.levels.simplify import without_bends, without_dead_ends

MAX_SIDE = 63  # larger mazes take too long to generate
LONGEST_PATH = 254  # longer paths are clipped: a length is a uint8

Keys = NDArray[np.uint32]  # (B,) random key of each maze
Ints = NDArray[np.int64]


class Draw(IntEnum):
    """The purpose of a random number."""

    ROOM = 0
    REJECTIONS = 1
    CORRIDOR = 2
    CONNECTOR = 3
    PLACE = 4
    GOAL = 5
    START = 6
    WALK = 7
    DOOR = 8
    FACE = 9
    IMAGE = 10


@dataclass(frozen=True, kw_only=True)
class MazeLayout:
    """The parameters of a maze; the defaults are those of the paper's sparse task."""

    height: int = 17
    width: int = 17
    max_rooms: int = 9
    room_min: int = 3
    room_max: int = 3
    retries: int = 1000  # rejected rooms before a maze counts as full
    spawns_per_room: int = 5
    goals_per_room: int = 5  # at most; spawns are placed first
    doors: bool = False  # doors, instead of bare floor, where regions meet
    min_goal_distance: int = 0  # least path length from a spawn to its goal, in cells

    def __post_init__(self) -> None:
        for name in ("max_rooms", "retries", "spawns_per_room", "goals_per_room"):
            check_at_least(f"a maze's {name}", getattr(self, name), 1)
        check_at_least("min_goal_distance", self.min_goal_distance, 0)
        check_type("doors", self.doors, bool)
        for name in ("height", "width", "room_min", "room_max"):
            check_at_least(f"a maze's {name}", getattr(self, name), 1)
            if getattr(self, name) % 2 == 0:
                raise ValueError(f"a maze's {name} must be odd, got {getattr(self, name)}")
        if max(self.height, self.width) > MAX_SIDE:
            raise ValueError(
                f"a maze must have at most {MAX_SIDE} x {MAX_SIDE} cells, got {self.height} x "
                f"{self.width}"
            )
        inner_height, inner_width = self.height - 2, self.width - 2
        if self.room_min > self.room_max:
            raise ValueError(
                f"room_min must be at most room_max ({self.room_max}), got {self.room_min}"
            )
        if self.room_max > min(inner_height, inner_width):
            raise ValueError(
                f"a room of {self.room_max} x {self.room_max} cells does not fit inside the "
                f"walls of a maze of {self.height} x {self.width}"
            )
        if self.spawns_per_room >= self.room_min**2:
            raise ValueError(
                f"spawns_per_room must leave a cell for a goal in a room of {self.room_min} x "
                f"{self.room_min}, got {self.spawns_per_room}"
            )
        # The longest possible path visits every cell inside the walls.
        longest = min(inner_height * inner_width - 1, LONGEST_PATH)
        if self.min_goal_distance > longest:
            raise ValueError(
                f"min_goal_distance must be at most {longest} in a maze of {self.height} x "
                f"{self.width}, got {self.min_goal_distance}"
            )


def draw_mazes(layout: MazeLayout, keys: Keys) -> Mazes:
    """Generates one maze per key; it does not depend on the other keys."""
    room = place_rooms(layout, keys)
    region = carve_corridors(room, keys)
    north_south, east_west = connect_regions(region, keys)
    corridor = (region > 0) & (room == 0)
    others = (room > 0) | north_south | east_west
    corridor = without_bends(without_dead_ends(corridor, others), others)

    # A connector is kept if both its sides are still floor.
    floor = np.pad((room > 0) | corridor, ((0, 0), (1, 1), (1, 1)))
    north_south &= floor[:, :-2, 1:-1] & floor[:, 2:, 1:-1]
    east_west &= floor[:, 1:-1, :-2] & floor[:, 1:-1, 2:]
    cells = np.full(room.shape, CellKind.WALL, np.uint8)
    cells[corridor] = CellKind.CORRIDOR
    cells[room > 0] = CellKind.ROOM
    cells[north_south] = CellKind.DOOR_H if layout.doors else CellKind.CORRIDOR
    cells[east_west] = CellKind.DOOR_I if layout.doors else CellKind.CORRIDOR

    rank = rank_within_rooms(room, keys)
    spawn = (room > 0) & (rank < layout.spawns_per_room)
    goal = (room > 0) & ~spawn & (rank < layout.spawns_per_room + layout.goals_per_room)
    return Mazes(cells, spawn, goal)


def place_rooms(layout: MazeLayout, keys: Keys) -> Ints:
    """Places rooms 1, 2, ... on a background of 0, (B, H, W), with walls between them.

    DeepMind Lab tries rooms until one fits. Drawing a room among those that fit, and drawing
    the number of rejected tries, gives the same distribution.
    """
    masks, chance = _possible_rooms(layout)  # (C, H * W), (C,)
    clash = masks @ masks.T > 0  # (C, C)
    fits = np.ones((len(keys), len(masks)), bool)
    rejected = np.zeros(len(keys))
    room = np.zeros((len(keys), layout.height * layout.width), np.int64)
    for number in range(1, layout.max_rooms + 1):
        cumulative = np.cumsum(fits * chance, axis=1)  # (B, C)
        acceptance = np.minimum(cumulative[:, -1], 1.0)
        luck = 1.0 - random_unit(keys, Draw.REJECTIONS, number)  # in (0, 1]
        with np.errstate(divide="ignore", invalid="ignore"):
            tries = np.floor(np.log(luck) / np.log1p(-acceptance))
        rejected += np.where(acceptance > 0, tries, np.inf)
        target = random_unit(keys, Draw.ROOM, number) * cumulative[:, -1]
        pick = np.argmax(cumulative > target[:, None], axis=1)
        accepted = rejected < layout.retries
        room += number * (masks[pick].astype(bool) & accepted[:, None])
        fits &= ~clash[pick]
    return room.reshape(-1, layout.height, layout.width)


def _possible_rooms(layout: MazeLayout) -> tuple[NDArray[np.float32], NDArray[np.float64]]:
    """Masks of all rooms on the odd lattice, (C, H * W), and the probability of each, (C,)."""
    sizes = range(layout.room_min, layout.room_max + 1, 2)
    masks, chance = [], []
    for height, width in product(sizes, sizes):
        corners = list(
            product(range(1, layout.height - height, 2), range(1, layout.width - width, 2))
        )
        for south, west in corners:
            mask = np.zeros((layout.height, layout.width), np.float32)
            mask[south : south + height, west : west + width] = 1.0
            masks.append(mask.ravel())
            chance.append(1.0 / (len(sizes) ** 2 * len(corners)))
    return np.stack(masks), np.array(chance)


def carve_corridors(room: Ints, keys: Keys) -> Ints:
    """Fills the space between rooms with depth-first mazes, one region each: (B, H, W)."""
    num_mazes, height, width = room.shape
    region = room.reshape(num_mazes, -1).copy()
    lattice = np.zeros((height, width), bool)
    lattice[1::2, 1::2] = True
    done = (region > 0) | ~lattice.ravel()  # (B, H * W)
    came_from = np.zeros_like(region)
    here = np.zeros(num_mazes, np.int64)  # 0, a corner of the border, means nowhere
    newest = region.max(axis=1)
    steps = np.array([1, width, -1, -width])
    turn = 0
    while len(at_work := np.flatnonzero((here > 0) | ~done.all(axis=1))):
        # A search that is back at its origin restarts at the first cell that is still solid.
        lost = at_work[here[at_work] == 0]
        here[lost] = done[lost].argmin(axis=1)
        newest[lost] += 1
        done[lost, here[lost]] = True
        region[lost, here[lost]] = newest[lost]

        ahead = here[at_work, None] + 2 * steps  # (A, 4)
        inside = (ahead > 0) & (ahead < height * width)
        free = inside & ~done[at_work[:, None], np.where(inside, ahead, 0)]
        way = choose(free, random_below(free.sum(axis=1), keys[at_work], Draw.CORRIDOR, turn))
        goes = free.any(axis=1)
        mover, back = at_work[goes], at_work[~goes]
        for stride in (1, 2):
            region[mover, here[mover] + stride * steps[way[goes]]] = newest[mover]
        next_cell = here[mover] + 2 * steps[way[goes]]
        done[mover, next_cell] = True
        came_from[mover, next_cell] = here[mover]
        here[mover] = next_cell
        here[back] = came_from[back, here[back]]
        turn += 1
    return region.reshape(room.shape)


def choose(free: Bools, which: Ints) -> Ints:
    """Returns the column of the which-th true entry of each row, counted from 0."""
    index: Ints = np.argmax(np.cumsum(free, axis=1) > which[:, None], axis=1)
    return index


def connect_regions(region: Ints, keys: Keys) -> tuple[Bools, Bools]:
    """Connects each pair of adjacent regions by one random cell of the wall between them.

    Returns masks of the north-south and of the east-west connectors, (B, H, W) each.
    """
    num_mazes, height, width = region.shape
    lower = np.stack([np.roll(region, 1, axis) for axis in (1, 2)], axis=-1)
    upper = np.stack([np.roll(region, -1, axis) for axis in (1, 2)], axis=-1)
    lattice = np.zeros((height, width, 2), bool)  # (H, W, 2) north-south, east-west
    lattice[2:-1:2, 1::2, 0] = True
    lattice[1::2, 2:-1:2, 1] = True
    candidate = np.flatnonzero(lattice & (lower != upper))
    maze = candidate // lattice.size
    first = np.minimum(lower, upper).ravel()[candidate]
    second = np.maximum(lower, upper).ravel()[candidate]
    num_regions = int(region.max()) + 1
    pair = (maze * num_regions + first) * num_regions + second
    order = np.lexsort(
        (random_bits(keys[maze], Draw.CONNECTOR, candidate % lattice.size), pair)
    )
    chosen = order[np.diff(pair[order], prepend=-1) > 0]
    connector = np.zeros(num_mazes * lattice.size, bool)
    connector[candidate[chosen]] = True
    connector = connector.reshape(num_mazes, height, width, 2)
    return connector[..., 0].copy(), connector[..., 1].copy()


def rank_within_rooms(room: Ints, keys: Keys) -> Ints:
    """Shuffles the cells of each room; returns each cell's rank in its room, (B, H, W)."""
    flat = room.reshape(len(room), -1)
    cell = np.arange(flat.shape[1])
    order = np.argsort(flat + random_unit(keys[:, None], Draw.PLACE, cell), axis=1)
    sorted_room = np.take_along_axis(flat, order, axis=1)
    opens = np.diff(sorted_room, axis=1, prepend=-1) > 0
    begin = np.maximum.accumulate(np.where(opens, cell, 0), axis=1)
    rank = np.empty_like(flat)
    np.put_along_axis(rank, order, cell - begin, axis=1)
    return rank.reshape(room.shape)
