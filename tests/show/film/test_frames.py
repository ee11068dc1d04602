"""How a moment of an episode is drawn."""

import re

import numpy as np
import pytest
from PIL import Image

from episodic_curiosity.show.film import frames
from episodic_curiosity.show.film.episode import Episode, Shot
from episodic_curiosity.show.film.frames import SMALL, Storyboard
from episodic_curiosity.show.film.path_map import AGENT, FLOOR, VISITED, PathMap

pytestmark = pytest.mark.slow


def an_episode(places, *, remembered=()) -> Episode:
    count = len(places)
    shots = [Shot(step, (np.zeros((96, 128, 3), np.uint8),)) for step in range(count)]
    return Episode(
        shots=shots,
        reward=[0.0] * count,
        bonus=[0.1 * (-1) ** step for step in range(count - 1)],
        coverage=list(range(1, count + 1)),
        places=list(places),
        remembered=[step in remembered for step in range(count - 1)],
    )


def test_the_way_is_drawn_to_scale_with_north_at_the_top():
    plan = PathMap(an_episode([(-5.0, -5.0), (15.0, -5.0), (15.0, 25.0)]), 5.0, 120)
    # 30 units and a cell on each side: 3 pixels a unit, from (-15, -10) on.
    picture = plan.draw(2)
    assert picture.shape == (120, 120, 3)
    assert picture[15, 90].tolist() == list(AGENT)  # (15, 25)
    assert plan.draw(0)[105, 30].tolist() == list(AGENT)
    assert picture[12, 95].tolist() != picture[12, 20].tolist() == list(FLOOR)
    early = plan.draw(1)
    assert early[113, 97].tolist() == list(VISITED)  # cell (3, -1), which reaches to -10
    assert early[12, 95].tolist() == list(FLOOR)


def test_what_was_remembered_is_ringed():
    places = [(0.0, 0.0), (10.0, 0.0), (20.0, 0.0), (30.0, 0.0)]
    plain, ringed = (PathMap(an_episode(places, remembered=r), 5.0, 120) for r in ((), (1,)))
    assert np.array_equal(plain.draw(0), ringed.draw(0))
    assert not np.array_equal(plain.draw(2), ringed.draw(2))
    assert len(an_episode(places, remembered=(0, 2)).memories(1)) == 1


def board(**options) -> Storyboard:
    episodes = [an_episode([(0.0, 0.0), (9.0, 1.0), (9.0, 12.0)]) for _ in range(2)]
    settings = {"map_cell": 5.0, "has_bonus": True, "fps": 10, "height": 96} | options
    return Storyboard(("maze/x", "ppo"), episodes, ("first person",), **settings)


def test_a_storyboard_holds_the_end_of_each_episode():
    story = board()
    assert len(story) == len(list(story)) == 6
    assert [frame.num_moments for frame in story] == [1, 1, 15, 1, 1, 15]
    assert sum(story.moments) == 34
    shapes = {frame.picture.shape for frame in story}
    assert len(shapes) == 1
    assert all(side % 2 == 0 for side in next(iter(shapes))[:2])
    with pytest.raises(IndexError):
        story[6]


def test_a_frame_has_what_there_is_to_show():
    whole = board()[1].picture
    assert len(board(has_bonus=False)[1].picture) < len(whole)
    assert board(map_cell=None)[1].picture.shape[1] < whole.shape[1]
    assert not np.array_equal(whole, board()[2].picture)


def test_words_stand_apart():
    """Between "i" and "i" there are at least three columns of paper, whatever the font does."""
    sheet = Image.new("RGB", (60, 20), frames.PAPER)
    frames._write(sheet, (2, 2), "i i i", SMALL, frames.INK)
    is_blank = (np.asarray(sheet) > 240).all(axis=(0, 2))
    gaps = "".join(" " if blank else "x" for blank in is_blank).strip()
    assert min(len(gap) for gap in re.findall(" +", gaps)) >= 3
    assert gaps.count("x ") == 2
    assert len(gaps) <= frames._length("i i i", SMALL)


def test_what_was_remembered_is_counted():
    episode = an_episode([(0.0, 0.0)] * 4, remembered=(0, 2))
    labels = [board()._labels(episode, step)["added to memory"] for step in range(3)]
    assert labels == ["1", "1", "2"]


def test_pictures_of_any_size_are_fitted():
    story = board()
    for episode in story.episodes:
        episode.shots = [
            Shot(shot.step, (np.zeros((400, 600, 3), np.uint8),)) for shot in episode.shots
        ]
    assert story[0].picture.shape[1] - board()[0].picture.shape[1] == 144 - 128
