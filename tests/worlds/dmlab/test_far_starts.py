"""One goal, and starts that are far from it."""

import pytest

from episodic_curiosity.worlds.dmlab.far_starts import path_lengths, with_far_starts

HALL = "*********\n*PP P GG*\n*******I*\n*P  P   *\n*********\n"


def test_near_starts_and_other_goals_become_floor():
    kept = {with_far_starts(HALL, 6, seed) for seed in range(20)}
    assert kept == {
        "*********\n*     G *\n*******I*\n*P  P   *\n*********\n",
        "*********\n*P     G*\n*******I*\n*P      *\n*********\n",
    }


def test_a_goal_without_a_far_start_is_not_drawn():
    assert (
        with_far_starts(HALL, 9, 0) == "*********\n*     G *\n*******I*\n*P      *\n*********\n"
    )


def test_what_cannot_be_done_is_said():
    with pytest.raises(ValueError, match="no goal of this layout has a start at least 10"):
        with_far_starts(HALL, 10, 0)


def test_path_lengths_go_through_doors_and_not_through_walls():
    lengths = path_lengths(HALL.splitlines(), (1, 7))
    assert lengths[1, 1] == 6
    assert lengths[3, 7] == 2
    assert (2, 1) not in lengths
