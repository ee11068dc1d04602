"""The plan of a puzzle of dense-1, however it was generated: figures and players."""

import random
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from episodic_curiosity.worlds.lab.elements import CellKind, Sprite
from episodic_curiosity.worlds.maze.levels.stored import LevelPool

Place = tuple[int, int]  # row and column of a room
GOAL = -1  # a thing in a room; the others are keys, each the number of its colour


class Plan(NamedTuple):
    start: Place
    things: dict[Place, list[int]]  # of each room
    passages: dict[frozenset[Place], int | None]  # colour of the door, None without a door

    @property
    def goal(self) -> Place:
        return next(room for room, things in self.things.items() if GOAL in things)

    def passages_at(self, room: Place) -> list[int | None]:
        return [colour for pair, colour in self.passages.items() if room in pair]


class Play(NamedTuple):
    """The progress of a player."""

    opened: frozenset[frozenset[Place]] = frozenset()
    taken: frozenset[tuple[Place, int]] = frozenset()  # room and index of the thing
    held: int | None = None  # colour of the key

    @property
    def reward(self) -> int:
        return len(self.opened) + len(self.taken)


def plans_of(pool: LevelPool) -> Iterator[Plan]:
    """Reads the puzzles back from their cells, doors and items."""
    for level in range(len(pool.cells)):
        cells, doors, colours = pool.cells[level], pool.doors[level], pool.door_colours[level]
        things: dict[Place, list[int]] = {
            (row, column): []
            for row in range(3)
            for column in range(3)
            if cells[2 + 3 * row, 2 + 4 * column] != CellKind.VOID
        }
        passages: dict[frozenset[Place], int | None] = {}
        for row, column in things:
            for other, y, x in (
                ((row + 1, column), 4 + 3 * row, 3 + 4 * column),
                ((row, column + 1), 3 + 3 * row, 5 + 4 * column),
            ):
                if cells[y, x] != CellKind.VOID:
                    is_door = cells[y, x] >= CellKind.DOOR_H
                    colour = int(colours[doors[y, x]]) if is_door else None
                    passages[frozenset(((row, column), other))] = colour
        sprites = pool.item_sprite[level].tolist()
        for sprite, (x, y) in zip(sprites, pool.item_position[level].tolist(), strict=True):
            if sprite != Sprite.NONE:
                thing = GOAL if sprite == Sprite.LOLLY else sprite - Sprite.KEY_RED
                things[_room_at(x, y)].append(thing)
        spawn = int(pool.spawns[level, 0])
        start = _room_at(100 * (spawn % cells.shape[1]), 100 * (spawn // cells.shape[1]))
        yield Plan(start, things, passages)


def _room_at(x: float, y: float) -> Place:
    return int(y - 200) // 300, int(x - 200) // 400


def in_reach(plan: Plan, play: Play) -> set[Place]:
    """The rooms that no shut door keeps away."""
    rooms = {plan.start}
    for _ in plan.things:
        for pair, colour in plan.passages.items():
            if (colour is None or pair in play.opened) and pair & rooms:
                rooms |= pair
    return rooms


def is_solved(plan: Plan, play: Play) -> bool:
    return plan.goal in in_reach(plan, play)


def moves(plan: Plan, play: Play) -> list[Play]:
    """The plays after each door that can be opened next and each key that can be taken."""
    rooms = in_reach(plan, play)
    plays = [
        Play(play.opened | {pair}, play.taken)
        for pair, colour in plan.passages.items()
        if colour is not None and colour == play.held
        if pair not in play.opened and pair & rooms
    ]
    for room in sorted(rooms):
        for index, thing in enumerate(plan.things[room]):
            if thing != GOAL and (room, index) not in play.taken:
                plays.append(Play(play.opened, play.taken | {(room, index)}, thing))
    return plays


def all_plays(plan: Plan) -> set[Play]:
    todo = [Play()]
    seen = set(todo)
    while todo:
        plays = moves(plan, todo.pop())
        todo += [play for play in plays if play not in seen]
        seen.update(plays)
    return seen


def play_in_random_order(plan: Plan, rng: random.Random) -> tuple[int, bool]:
    """Reward of a player who is never lost, never late and never thinks; whether it solves."""
    play = Play()
    while not (solved := is_solved(plan, play)) and (plays := moves(plan, play)):
        play = rng.choice(plays)
    return play.reward + 50 * solved, solved


def figures(plan: Plan) -> dict[str, float]:
    """The figures of one puzzle that are published for DeepMind Lab's."""
    rows, columns = zip(*plan.things, strict=True)
    doors = [colour for colour in plan.passages.values() if colour is not None]
    keys = {room: [t for t in things if t != GOAL] for room, things in plan.things.items()}
    plays = all_plays(plan)
    solved = [play for play in plays if is_solved(plan, play)]
    fewest = min(len(play.opened) for play in solved)
    return {
        "rooms": len(plan.things),
        "keys": sum(map(len, keys.values())),
        "doors": len(doors),
        "passages without a door": len(plan.passages) - len(doors),
        "places of the bounding box": (max(rows) - min(rows) + 1)
        * (max(columns) - min(columns) + 1),
        "rooms from start to goal": rooms_to_goal(plan),
        "keys in the start room": len(keys[plan.start]),
        "doors of the start room": sum(c is not None for c in plan.passages_at(plan.start)),
        "passages of the goal room": len(plan.passages_at(plan.goal)),
        "most reward": 50 + max(play.reward for play in solved),
        "fewest doors to the goal": fewest,
        "one door": fewest == 1,
    }


def rooms_to_goal(plan: Plan) -> int:
    """Length of the shortest path from start to goal, through any door."""
    rooms, length = {plan.start}, 0
    while plan.goal not in rooms:
        rooms = rooms.union(*(pair for pair in plan.passages if pair & rooms))
        length += 1
    return length


def mean_and_error(samples: list[float]) -> tuple[float, float]:
    return float(np.mean(samples)), float(np.std(samples, ddof=1) / len(samples) ** 0.5)
