"""Generates the puzzles of dense-1: keys, coloured doors and a goal in a small grid of rooms.

A chain of one to three links leads to the goal; each link is a key and a door of its colour.
Other rooms and doors waste a key. Rooms have 3 x 2 cells, with void between them.
Shapes: B puzzles, H x W cells stored south first, D doors, M items.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from episodic_curiosity.worlds.lab.elements import NO_DOOR, CellKind, Sprite
from episodic_curiosity.worlds.maze.levels.draws import Dice
from episodic_curiosity.worlds.maze.levels.paths import path_lengths
from episodic_curiosity.worlds.maze.levels.stored import LevelPool, plain_levels

NUM_COLOURS = 5
NUM_ITEMS = 6  # M: the lolly and up to 5 keys
SLOTS_PER_ROOM = 2  # the lower left and the lower right cell
NUM_SPAWNS = 4
EMPTY_PERCENT = {1: 80, 2: 50, 3: 0}  # by the length of the chain, tried at every link

Room = tuple[int, int]  # a room's row and column, south first
Site = tuple[Room, Room]  # the entrance and the place of a new room


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


@dataclass
class Puzzle:
    """A puzzle under construction; all methods draw from the same dice."""

    layout: PuzzleLayout
    dice: Dice
    start: Room = (0, 0)
    items: dict[Room, list[Sprite]] = field(default_factory=dict)  # rooms in order of creation
    passages: dict[tuple[Room, Room], int | None] = field(default_factory=dict)  # door colour
    closed: set[Room] = field(default_factory=set)  # no key or link of the chain goes there
    has_trap: bool = False
    has_herring: bool = False

    def __post_init__(self) -> None:
        self.start = (self.dice.below(self.layout.rows), self.dice.below(self.layout.columns))
        self.items[self.start] = []

    @property
    def rooms(self) -> list[Room]:
        return list(self.items)

    @property
    def open_rooms(self) -> list[Room]:
        return [room for room in self.items if room not in self.closed]

    def neighbours(self, place: Room) -> list[Room]:
        row, column = place
        around = [(row + 1, column), (row, column + 1), (row - 1, column), (row, column - 1)]
        return [
            (y, x)
            for y, x in around
            if 0 <= y < self.layout.rows and 0 <= x < self.layout.columns
        ]

    def find_site(self, entrances: Sequence[Room]) -> Site | None:
        """Draws a free place next to one of these rooms, or returns None if there is none.

        Every entrance proposes the free place next to it that is nearest to the start. One of
        the nearest proposals wins. Ties are drawn.
        """
        proposals = [
            self._nearest(
                [(room, place) for place in self.neighbours(room) if place not in self.items]
            )
            for room in entrances
        ]
        return self._nearest([site for site in proposals if site is not None])

    def _nearest(self, sites: Sequence[Site]) -> Site | None:
        """Draws one of the sites whose place is nearest to the start."""
        if not sites:
            return None
        far = [self._squared_distance(place) for _, place in sites]
        return self.dice.pick([s for s, d in zip(sites, far, strict=True) if d == min(far)])

    def _squared_distance(self, place: Room) -> int:
        """Distance from the start in cells; rooms are 3 cells apart in y and 4 in x."""
        return 9 * (place[0] - self.start[0]) ** 2 + 16 * (place[1] - self.start[1]) ** 2

    def add_room(self, site: Site | None, colour: int | None) -> Room:
        """Adds a room behind a door of this colour, or without a door."""
        if site is None:
            raise OutOfSpace
        _, place = site
        self.items[place] = []
        self.passages[_pair(*site)] = colour
        return place

    def put(self, sprite: Sprite, rooms: Sequence[Room]) -> None:
        """Puts an item into one of these rooms that has a free slot."""
        with_space = [room for room in rooms if len(self.items[room]) < SLOTS_PER_ROOM]
        if not with_space:
            raise OutOfSpace
        self.items[self.dice.pick(with_space)].append(sprite)

    def try_herring(self, chain: Sequence[int]) -> None:
        """Adds the empty room whose door wastes a key of the chain, if it is not there yet."""
        if not self.has_herring:
            self.closed.add(self.add_room(self.find_site(self.rooms), self.dice.pick(chain)))
            self.has_herring = True

    def try_trap(self, rival: Room, colour: int, later: Sequence[int]) -> None:
        """Adds the room that wastes the key of `rival`, a room of the chain, if there is space.

        It is entered from a room older than `rival`, through a door of the same colour, and
        holds a key of one of the chain's later colours.
        """
        site = self.find_site(self.rooms[: self.rooms.index(rival)])
        if not self.has_trap and site is not None:
            trap = self.add_room(site, colour)
            self.put(key_of(self.dice.pick(later)), [trap])
            self.closed.add(trap)
            self.has_trap = True

    def add_doors(self, most: int, colours: Sequence[int]) -> list[int]:
        """Adds doors between adjacent rooms without a passage; returns the doors' colours."""
        walls = [
            _pair(room, other)
            for room in self.dice.shuffled(self.rooms)
            for other in self.neighbours(room)
            if other in self.items and _pair(room, other) not in self.passages
        ]
        doors = {wall: self.dice.pick(colours) for wall in list(dict.fromkeys(walls))[:most]}
        self.passages |= doors
        return list(doors.values())


def _pair(room: Room, other: Room) -> tuple[Room, Room]:
    return min(room, other), max(room, other)


def key_of(colour: int) -> Sprite:
    return Sprite(Sprite.KEY_RED + colour)


def draw_puzzle(layout: PuzzleLayout, dice: Dice) -> Puzzle:
    while True:
        try:
            return _try_puzzle(layout, dice)
        except OutOfSpace:
            continue


def _try_puzzle(layout: PuzzleLayout, dice: Dice) -> Puzzle:
    """The steps of DeepMind Lab's generator, in its order."""
    puzzle = Puzzle(layout, dice)
    length = 1 + dice.below(3)
    colours = dice.shuffled(range(NUM_COLOURS))
    chain, unused = colours[:length], colours[length:]
    has_empty = False  # a room without a door and, at first, without a key
    rivals: list[tuple[Room, int, list[int]]] = []

    last = previous = puzzle.start
    for link, colour in enumerate(chain):
        if not has_empty and dice.chance(EMPTY_PERCENT[length]):
            last = puzzle.add_room(puzzle.find_site([last]), None)
            has_empty = True
        herring = dice.pick(("before", "after", "no", "no"))
        if herring == "before":
            puzzle.try_herring(chain)
        site = puzzle.find_site([last])
        if dice.chance(50) and site is not None:
            puzzle.put(key_of(colour), puzzle.open_rooms)
        else:
            puzzle.put(key_of(colour), [last])
            if link < length - 1 or puzzle.has_trap:
                site = puzzle.find_site(puzzle.open_rooms)
        new = puzzle.add_room(site, colour)
        if link > 0 and _pair(last, new) in puzzle.passages:
            rivals.append((previous, chain[link - 1], chain[link:]))
            if dice.chance(50):
                puzzle.try_trap(*rivals[-1])
        last = previous = new  # `last` may become the empty room
        if herring == "after":
            puzzle.try_herring(chain)
    puzzle.put(Sprite.LOLLY, [last])

    for rival in rivals:
        puzzle.try_trap(*rival)
    if dice.chance(50):
        puzzle.add_room(puzzle.find_site(puzzle.rooms), dice.pick(unused))
    puzzle.try_herring(chain)
    unopenable = puzzle.add_doors(2, unused)
    puzzle.add_doors(dice.below(2), chain)
    useless = [colour for colour in unused if colour not in unopenable]
    if useless and dice.chance(50):
        puzzle.put(key_of(dice.pick(useless)), puzzle.rooms)
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
        south = min(row for row, _ in puzzle.items)
        west = min(column for _, column in puzzle.items)

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
