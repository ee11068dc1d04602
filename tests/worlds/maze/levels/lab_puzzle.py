"""One puzzle of DeepMind Lab's rooms_keys_doors_puzzle at a time, step by step.

A plain program, written from a description of the level alone and independent of the package.
Rooms are numbered in the order they are made; a colour is 0..4.
"""

import random
from dataclasses import dataclass, field

from tests.worlds.maze.levels.puzzle_plan import GOAL, Place, Plan

COLOURS = range(5)
MOST_THINGS = 2


class OutOfSpace(Exception):
    pass


@dataclass
class LabPuzzle:
    rng: random.Random
    places: list[Place] = field(default_factory=list)  # of each room
    things: list[list[int]] = field(default_factory=list)  # in each room
    passages: dict[frozenset[int], int | None] = field(default_factory=dict)  # door colour
    closed: set[int] = field(default_factory=set)  # rooms that take no chain keys or links
    has_trap: bool = False
    has_herring: bool = False

    def plan(self) -> Plan:
        passages = {
            frozenset(self.places[room] for room in pair): colour
            for pair, colour in self.passages.items()
        }
        things = dict(zip(self.places, self.things, strict=True))
        return Plan(self.places[0], things, passages)

    def add_room(self, entrance: int, place: Place, colour: int | None) -> int:
        self.places.append(place)
        self.things.append([])
        self.passages[frozenset((entrance, len(self.places) - 1))] = colour
        return len(self.places) - 1

    def distance(self, place: Place) -> int:
        (row, column), (start_row, start_column) = place, self.places[0]
        return 9 * (row - start_row) ** 2 + 16 * (column - start_column) ** 2

    def beside(self, room: int) -> Place | None:
        row, column = self.places[room]
        around = [(row + 1, column), (row, column + 1), (row - 1, column), (row, column - 1)]
        free = [
            (y, x) for y, x in around if 0 <= y < 3 and 0 <= x < 3 and (y, x) not in self.places
        ]
        if not free:
            return None
        nearest = min(self.distance(place) for place in free)
        return self.rng.choice([place for place in free if self.distance(place) == nearest])

    def anywhere(self, excluded: set[int]) -> tuple[int, Place] | None:
        """The entrance and the place of a new room."""
        drawn = [(r, self.beside(r)) for r in range(len(self.places)) if r not in excluded]
        free = [(room, place) for room, place in drawn if place is not None]
        if not free:
            return None
        nearest = min(self.distance(place) for _, place in free)
        return self.rng.choice([(r, p) for r, p in free if self.distance(p) == nearest])

    def put(self, thing: int, rooms: list[int]) -> None:
        with_space = [room for room in rooms if len(self.things[room]) < MOST_THINGS]
        if not with_space:
            raise OutOfSpace
        self.things[self.rng.choice(with_space)].append(thing)

    def open_rooms(self) -> list[int]:
        return [room for room in range(len(self.places)) if room not in self.closed]

    def try_trap(self, competitor: int, colour: int, later: list[int]) -> None:
        found = self.anywhere(set(range(competitor, len(self.places))))
        if self.has_trap or found is None:
            return
        trap = self.add_room(*found, colour)
        self.put(self.rng.choice(later), [trap])
        self.closed.add(trap)
        self.has_trap = True

    def try_herring(self, chain_colours: list[int]) -> None:
        found = self.anywhere(set())
        if self.has_herring or found is None:
            return
        self.closed.add(self.add_room(*found, self.rng.choice(chain_colours)))
        self.has_herring = True

    def add_doors(self, most: int, colours: list[int]) -> list[int]:
        """Joins up to `most` pairs of neighbouring rooms; returns the colours of the doors."""
        added: list[int] = []
        for room in self.rng.sample(range(len(self.places)), len(self.places)):
            row, column = self.places[room]
            for y, x in ((1, 0), (0, 1), (-1, 0), (0, -1)):
                place = (row + y, column + x)
                if place not in self.places or len(added) == most:
                    continue
                pair = frozenset((room, self.places.index(place)))
                if pair not in self.passages:
                    self.passages[pair] = self.rng.choice(colours)
                    added.append(self.passages[pair])
        return added


def lab_puzzle(rng: random.Random) -> LabPuzzle:
    while True:
        try:
            return attempt(rng)
        except OutOfSpace:
            continue


def attempt(rng: random.Random) -> LabPuzzle:
    length = rng.randint(1, 3)
    num_extra, num_useless, num_openable = (rng.randint(0, 1) for _ in range(3))
    colours = rng.sample(COLOURS, length)
    unused = [colour for colour in COLOURS if colour not in colours]
    puzzle = LabPuzzle(rng, places=[(rng.randrange(3), rng.randrange(3))], things=[[]])
    last, chain = 0, [0]
    has_empty = False
    competitors: list[tuple[int, int, list[int]]] = []
    for i in range(length):
        if not has_empty and rng.random() < (0.8, 0.5, 0.0)[length - 1]:
            place = puzzle.beside(last)
            if place is None:
                raise OutOfSpace
            last = puzzle.add_room(last, place, None)
            has_empty = True

        herring = rng.random() < 0.5
        herring_first = rng.random() < 0.5
        if herring and herring_first:
            puzzle.try_herring(colours)

        old_rooms = puzzle.open_rooms()
        place = puzzle.beside(last)
        entrance = last
        if rng.random() < 0.5 and place is not None:
            puzzle.put(colours[i], old_rooms)
        else:
            puzzle.put(colours[i], [last])
            if i < length - 1 or puzzle.has_trap:
                found = puzzle.anywhere(puzzle.closed)
                entrance, place = found if found is not None else (last, None)
        if place is None:
            raise OutOfSpace
        new = puzzle.add_room(entrance, place, colours[i])

        if len(chain) > 1 and entrance == last:
            competitor = chain[-1], colours[i - 1], colours[i:]
            competitors.append(competitor)
            if rng.random() < 0.5:
                puzzle.try_trap(*competitor)
        chain.append(new)
        last = new
        if herring and not herring_first:
            puzzle.try_herring(colours)
    puzzle.put(GOAL, [last])

    for competitor in competitors:
        puzzle.try_trap(*competitor)
    for _ in range(num_extra):
        found = puzzle.anywhere(set())
        if found is None:
            raise OutOfSpace
        puzzle.add_room(*found, rng.choice(unused))
    puzzle.try_herring(colours)
    unopenable = puzzle.add_doors(2, unused)
    puzzle.add_doors(num_openable, colours)
    useless = [colour for colour in unused if colour not in unopenable]
    if num_useless and useless:
        puzzle.put(rng.choice(useless), list(range(len(puzzle.places))))
    return puzzle
