"""Generates the puzzles of dense-1: keys, coloured doors and a goal in a small grid of rooms.

A chain of one to three links leads to the goal; each link is a key and a door of its colour.
Other rooms and doors waste a key. Rooms have 3 x 2 cells, with void between them.
Shapes: B puzzles, H x W cells stored south first, D doors, M items.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from itertools import count
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from episodic_curiosity.worlds.lab.elements import NO_DOOR, CellKind, Sprite
from episodic_curiosity.worlds.maze.levels.draws import random_bits
from episodic_curiosity.worlds.maze.levels.paths import path_lengths
from episodic_curiosity.worlds.maze.levels.stored import LevelPool, plain_levels

NUM_COLOURS = 5
NUM_ITEMS = 6  # M: the lolly and up to 5 keys
SLOTS_PER_ROOM = 2  # the lower left and the lower right cell
NUM_SPAWNS = 4

Room = tuple[int, int]  # a room's row and column, south first
T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class PuzzleLayout:
    """The grid of room places; a puzzle uses some of them."""

    rows: int = 3
    columns: int = 3

    def __post_init__(self) -> None:
        if self.rows < 3 or self.columns < 3:
            raise ValueError(
                "a puzzle must have at least 3 x 3 places for rooms, "
                f"got {self.rows} x {self.columns}"
            )

    @property
    def height(self) -> int:
        return 3 * self.rows + 3

    @property
    def width(self) -> int:
        return 4 * self.columns + 3

    @property
    def max_doors(self) -> int:
        return self.rows * (self.columns - 1) + self.columns * (self.rows - 1)


class OutOfSpace(Exception):
    """Raised if there is no free place; the puzzle is then generated again."""


class Kind(Enum):
    PLAIN = auto()
    HERRING = auto()  # empty, behind a door of one of the chain's colours
    TRAP = auto()  # the same, with a key inside
    SPARE = auto()  # behind a door without a key


class Dice:
    """An endless stream of random numbers for one puzzle."""

    def __init__(self, key: int) -> None:
        self._bits = self._stream(key)

    @staticmethod
    def _stream(key: int) -> Iterator[int]:
        for block in count():
            yield from random_bits(key, block, np.arange(64)).tolist()

    def below(self, limit: int) -> int:
        return next(self._bits) * limit >> 32

    def chance(self, percent: int) -> bool:
        return self.below(100) < percent

    def pick(self, things: Sequence[T]) -> T:
        return things[self.below(len(things))]

    def shuffled(self, things: Iterable[T]) -> list[T]:
        rest = list(things)
        return [rest.pop(self.below(len(rest))) for _ in range(len(rest))]


@dataclass
class Puzzle:
    """A puzzle under construction; all methods draw from the same dice."""

    layout: PuzzleLayout
    dice: Dice
    start: Room = (0, 0)
    kinds: dict[Room, Kind] = field(default_factory=dict)
    items: dict[Room, list[Sprite]] = field(default_factory=dict)
    passages: dict[tuple[Room, Room], int | None] = field(default_factory=dict)  # door colour

    def __post_init__(self) -> None:
        self.start = (self.dice.below(self.layout.rows), self.dice.below(self.layout.columns))
        self._open_room(self.start, Kind.PLAIN)

    def _open_room(self, place: Room, kind: Kind) -> None:
        self.kinds[place] = kind
        self.items[place] = []

    def neighbours(self, place: Room) -> list[Room]:
        row, column = place
        around = [(row + 1, column), (row - 1, column), (row, column + 1), (row, column - 1)]
        return [
            (y, x)
            for y, x in around
            if 0 <= y < self.layout.rows and 0 <= x < self.layout.columns
        ]

    def add_room(self, beside: Sequence[Room], kind: Kind, colour: int | None) -> Room:
        """Adds a room next to one of `beside`, at the free place nearest to the start."""
        free = [
            (3 * abs(place[0] - self.start[0]) + 4 * abs(place[1] - self.start[1]), room, place)
            for room in beside
            for place in self.neighbours(room)
            if place not in self.kinds
        ]
        if not free:
            raise OutOfSpace
        nearest = min(free)[0]
        room, place = self.dice.pick([(r, p) for far, r, p in free if far == nearest])
        self._open_room(place, kind)
        self.passages[min(room, place), max(room, place)] = colour
        return place

    def put(self, sprite: Sprite, rooms: Sequence[Room]) -> None:
        """Puts an item into one of these rooms that has a free slot."""
        with_space = [room for room in rooms if len(self.items[room]) < SLOTS_PER_ROOM]
        if not with_space:
            raise OutOfSpace
        self.items[self.dice.pick(with_space)].append(sprite)

    @property
    def plain(self) -> list[Room]:
        return [place for place, kind in self.kinds.items() if kind is Kind.PLAIN]

    def unlinked(self) -> list[tuple[Room, Room]]:
        """Returns the pairs of adjacent rooms without a passage between them."""
        return [
            (room, other)
            for room in self.kinds
            for other in self.neighbours(room)
            if other in self.kinds and room < other and (room, other) not in self.passages
        ]


def key_of(colour: int) -> Sprite:
    return Sprite(Sprite.KEY_RED + colour)


def draw_puzzle(layout: PuzzleLayout, dice: Dice) -> Puzzle:
    while True:
        try:
            return _try_puzzle(layout, dice)
        except OutOfSpace:
            continue


def _try_puzzle(layout: PuzzleLayout, dice: Dice) -> Puzzle:
    puzzle = Puzzle(layout, dice)
    length = 1 + dice.below(3)
    colours = dice.shuffled(range(NUM_COLOURS))
    chain, unused = colours[:length], colours[length:]
    empty_percent = {1: 80, 2: 50, 3: 0}[length]
    empties, herrings, traps = 1, 1, int(length > 1)  # numbers still to be placed

    def add_herring() -> None:
        puzzle.add_room(puzzle.plain, Kind.HERRING, dice.pick(chain))

    def add_trap(link: int) -> None:
        """A room that costs the previous link's key and holds a later one, then useless."""
        trap = puzzle.add_room(puzzle.plain, Kind.TRAP, chain[link - 1])
        puzzle.put(key_of(dice.pick(chain[link:])), [trap])

    last = puzzle.start
    for link, colour in enumerate(chain):
        if empties and dice.chance(empty_percent):
            last = puzzle.add_room([last], Kind.PLAIN, None)
            empties = 0
        herring_here = bool(herrings) and dice.chance(50)
        herrings -= herring_here
        before = dice.chance(50)
        if herring_here and before:
            add_herring()
        old = puzzle.plain
        if dice.chance(50):
            puzzle.put(key_of(colour), old)
            new = puzzle.add_room([last], Kind.PLAIN, colour)
        else:
            puzzle.put(key_of(colour), [last])
            new = puzzle.add_room([last] if traps else old, Kind.PLAIN, colour)
        hangs_off_last = (min(last, new), max(last, new)) in puzzle.passages
        if link > 0 and traps and hangs_off_last and dice.chance(50):
            add_trap(link)
            traps = 0
        if herring_here and not before:
            add_herring()
        last = new
    puzzle.put(Sprite.LOLLY, [last])

    if traps:
        add_trap(1 + dice.below(length - 1))
    if dice.chance(50):
        puzzle.add_room(list(puzzle.kinds), Kind.SPARE, dice.pick(unused))
    if herrings:
        add_herring()
    walls = dice.shuffled(puzzle.unlinked())
    for pair in walls[:2]:
        puzzle.passages[pair] = dice.pick(unused)
    for pair in walls[2 : 2 + dice.below(2)]:
        puzzle.passages[pair] = dice.pick(chain)
    useless = [colour for colour in unused if colour not in puzzle.passages.values()]
    if useless and dice.chance(50):
        puzzle.put(key_of(dice.pick(useless)), list(puzzle.kinds))
    return puzzle


def draw_puzzles(layout: PuzzleLayout, keys: NDArray[np.uint32]) -> LevelPool:
    """Generates one puzzle per key, in the south-west corner, as DeepMind Lab crops its map."""
    num, width = len(keys), layout.width
    cells = np.full((num, layout.height, width), CellKind.VOID, np.uint8)
    doors = np.full_like(cells, NO_DOOR)
    door_colours = np.zeros((num, layout.max_doors), np.uint8)
    spawns = np.zeros((num, NUM_SPAWNS), np.int64)
    goals = np.zeros((num, 1), np.int64)
    item_sprite = np.zeros((num, NUM_ITEMS), np.uint8)
    item_position = np.zeros((num, NUM_ITEMS, 2), np.float32)
    for index, key in enumerate(keys.tolist()):
        puzzle = draw_puzzle(layout, dice := Dice(key))
        south = min(row for row, _ in puzzle.kinds)
        west = min(column for _, column in puzzle.kinds)

        def corner(place: Room, south: int = south, west: int = west) -> tuple[int, int]:
            return 2 + 3 * (place[0] - south), 2 + 4 * (place[1] - west)

        num_keys = 0
        for place, sprites in puzzle.items.items():
            y, x = corner(place)
            cells[index, y : y + 2, x : x + 3] = CellKind.CORRIDOR
            slots = dice.shuffled((x, x + 2))
            for sprite, item_x in zip(sprites, slots, strict=False):
                num_keys += sprite != Sprite.LOLLY
                item = 0 if sprite == Sprite.LOLLY else num_keys
                item_sprite[index, item] = sprite
                item_position[index, item] = 100.0 * item_x + 50.0, 100.0 * y + 50.0
                if sprite == Sprite.LOLLY:
                    goals[index] = y * width + item_x
        num_doors = 0
        for (room, other), colour in puzzle.passages.items():
            y, x = corner(room)
            upwards = other[0] > room[0]
            y, x = (y + 2, x + 1) if upwards else (y + 1, x + 3)
            if colour is None:
                cells[index, y, x] = CellKind.CORRIDOR
                continue
            cells[index, y, x] = CellKind.DOOR_H if upwards else CellKind.DOOR_I
            doors[index, y, x] = num_doors
            door_colours[index, num_doors] = colour
            num_doors += 1
        y, x = corner(puzzle.start)
        upper = (y + 1) * width + x
        spawns[index] = upper, upper + 1, upper + 2, y * width + x + 1
    return plain_levels(
        cells,
        spawns=spawns,
        goals=goals,
        distance=path_lengths(cells != CellKind.VOID, goals, spawns),
        doors=doors,
        door_colours=door_colours,
        item_sprite=item_sprite,  # the lolly first
        item_position=item_position,
    )
