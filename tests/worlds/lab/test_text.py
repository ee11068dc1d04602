"""Levels as text: there and back, north at the top, and what is wrong where."""

import numpy as np
import pytest

from episodic_curiosity.worlds.lab.elements import CellKind
from episodic_curiosity.worlds.lab.text import CHARACTERS, Mazes, from_text
from episodic_curiosity.worlds.maze.levels.draws import random_bits
from episodic_curiosity.worlds.maze.levels.layouts import MazeLayout, draw_mazes

OWN_LEVEL = """
*******
*P G***
* GP* *
***H*G*
*   IP*
*******
"""


def to_text(mazes: Mazes, index: int = 0) -> str:
    """One maze of a batch as text, one line per row."""
    cells = mazes.cells[index]
    characters = np.full(cells.shape, " ")
    for character, cell in CHARACTERS.items():
        characters[cells == cell] = character
    characters[mazes.spawn[index]] = "P"
    characters[mazes.goal[index]] = "G"
    return "\n".join("".join(row) for row in characters[::-1])


def test_text_round_trip():
    mazes = draw_mazes(MazeLayout(doors=True), random_bits(7, np.arange(20)))
    for index in range(20):
        text = to_text(mazes, index)
        again = from_text(text)
        assert to_text(again) == text
        assert np.array_equal(again.cells[0], mazes.cells[index])
    assert to_text(from_text(OWN_LEVEL)) == OWN_LEVEL.strip("\n")


def test_text_is_read_with_north_at_the_top():
    maze = from_text(OWN_LEVEL)
    assert maze.cells.shape == (1, 6, 7)
    assert maze.cells[0, 1, 4] == CellKind.DOOR_I
    assert maze.cells[0, 2, 3] == CellKind.DOOR_H
    assert maze.spawn[0, 4, 1]
    assert maze.goal[0, 2, 5]
    assert maze.cells[0, 4, 1] == CellKind.ROOM  # part of a block of 2 x 2
    assert maze.cells[0, 1, 1] == CellKind.CORRIDOR


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("*P G***", "*P G**", "line 2 of the level must have 7 characters like line 1, got 6"),
        ("* GP*", "* GX*", "line 3, column 4 of the level must be one of .*, got 'X'"),
        ("***H*G*", "***H*G ", "line 4, column 7 of the level is on its border .*, got ' '"),
        ("P", " ", "must have a start 'P'"),
    ],
)
def test_bad_text_is_refused(old: str, new: str, message: str):
    with pytest.raises(ValueError, match=message):
        from_text(OWN_LEVEL.replace(old, new))
