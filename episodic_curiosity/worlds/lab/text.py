"""Levels as text, in DeepMind Lab's characters, north at the top.

`*` wall, space floor, `P` possible start, `G` possible goal, `H` door in a north-south passage,
`I` door in an east-west passage. Shapes: B mazes, H x W cells.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from episodic_curiosity.support.checks import check_type
from episodic_curiosity.worlds.lab.elements import CellKind

CHARACTERS = {"*": CellKind.WALL, "H": CellKind.DOOR_H, "I": CellKind.DOOR_I}
FLOOR = " PG"
MAX_CELLS = 2**15 - 1  # a cell index is an int16

Bools = NDArray[np.bool_]
Bytes = NDArray[np.uint8]


class Mazes(NamedTuple):
    """A batch of parsed levels."""

    cells: Bytes  # (B, H, W) CellKind
    spawn: Bools  # (B, H, W)
    goal: Bools  # (B, H, W)


def from_text(text: str) -> Mazes:
    """Parses text into a batch of one maze; floor in blocks of 2 x 2 cells or more is ROOM."""
    check_type("layout", text, str)
    lines = text.strip("\r\n").splitlines() or [""]
    height, width = len(lines), len(lines[0])
    for number, line in enumerate(lines, 1):
        if len(line) != width:
            raise ValueError(
                f"line {number} of the level must have {width} characters like line 1, "
                f"got {len(line)}"
            )
        for column, character in enumerate(line, 1):
            if character not in CHARACTERS and character not in FLOOR:
                raise ValueError(
                    f"line {number}, column {column} of the level must be one of "
                    f"'*', ' ', 'P', 'G', 'H' and 'I', got {character!r}"
                )
            on_border = number in (1, height) or column in (1, width)
            if on_border and character != "*":
                raise ValueError(
                    f"line {number}, column {column} of the level is on its border and "
                    f"must be '*', got {character!r}"
                )
    if height * width > MAX_CELLS:
        raise ValueError(f"a level must have at most {MAX_CELLS} cells, got {height} x {width}")
    if "P" not in text:
        raise ValueError("the level must have a start 'P', got none")
    characters = np.array([list(line) for line in lines[::-1]])
    cells = np.where(
        _in_blocks(np.isin(characters, list(FLOOR))), CellKind.ROOM, CellKind.CORRIDOR
    )
    for character, cell in CHARACTERS.items():
        cells[characters == character] = cell
    return Mazes(cells[None].astype(np.uint8), characters[None] == "P", characters[None] == "G")


def check_doors(cells: Bytes) -> None:
    """Raises unless every door of an (H, W) level has walls at both ends.

    A slab spans its cell from wall to wall, so that bodies can only meet it inside that cell.
    """
    for kind, ends, sides in (
        (CellKind.DOOR_H, ((0, -1), (0, 1)), "west and east"),
        (CellKind.DOOR_I, ((-1, 0), (1, 0)), "north and south"),
    ):
        for y, x in np.argwhere(cells == kind):
            if any(cells[y + up, x + right] != CellKind.WALL for up, right in ends):
                raise ValueError(
                    f"line {len(cells) - y}, column {x + 1} of the level is a door and "
                    f"must have a wall '*' to its {sides}"
                )


def _in_blocks(floor: Bools) -> Bools:
    """Mask of the floor cells that are part of a 2 x 2 block of floor, (H, W)."""
    corner = floor[:-1, :-1] & floor[1:, :-1] & floor[:-1, 1:] & floor[1:, 1:]
    blocks = np.zeros_like(floor)
    for up in (0, 1):
        for right in (0, 1):
            blocks[up : up + len(corner), right : right + corner.shape[1]] |= corner
    return blocks
