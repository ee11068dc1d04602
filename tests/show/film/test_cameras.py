"""What there is to see of every world."""

import contextlib
from dataclasses import replace

import gymnasium
import numpy as np
import pytest

from episodic_curiosity.runs.train import train
from episodic_curiosity.show.film import watch
from episodic_curiosity.show.film.config import FilmConfig
from episodic_curiosity.show.film.watch import open_scenery, watch_run, watch_untrained
from episodic_curiosity.worlds.registry import make_world
from tests.runs.tiny_runs import tiny_run
from tests.worlds.dmlab.builds import install

pytestmark = pytest.mark.slow

SMALL = FilmConfig(device="cpu", height=96, frames=12)


def test_a_television_is_in_the_picture(tmp_path):
    train(tiny_run(task="maze/sparse+noise", num_updates=1), tmp_path / "run", progress=False)
    film = watch_run(tmp_path / "run", tmp_path / "film.gif", replace(SMALL, frames=4))
    assert film.story.title == ("maze/sparse+noise", "ppo")
    assert film.story.captions == ("first person", "from above")
    last = film.story.episodes[0].shots[-1].pictures[0]
    assert last.shape == (96, 128, 3)
    assert last[48:, 64:].std() > 60  # noise, in the lower right quadrant


def test_an_ant_from_behind_where_there_is_opengl(tmp_path, monkeypatch, capsys):
    pytest.importorskip("mujoco.batch")
    film = watch_untrained("ant/no-reward", tmp_path / "film.gif", replace(SMALL, steps=2))
    said = capsys.readouterr().err
    if "OpenGL" in said:
        pytest.skip(said)
    assert film.story.captions == ("first person", "from behind")
    assert film.story.map_cell == 5.0
    assert film.story.title == ("ant/no-reward", "untrained")
    shot = film.story.episodes[0].shots[1]
    assert [picture.shape for picture in shot.pictures] == [(96, 128, 3)] * 2
    monkeypatch.setenv("MUJOCO_GL", "missing")
    with open_scenery("ant/no-reward", 96, seed=0, split="test", view_size=None) as scenery:
        assert list(scenery.cameras) == ["first person"]
    assert "no view of the ant from behind: OpenGL with missing" in capsys.readouterr().err


def test_doom_shows_what_the_engine_draws_and_the_way(tmp_path):
    pytest.importorskip("vizdoom")
    film = watch_untrained("vizdoom/sparse", tmp_path / "film.gif", replace(SMALL, steps=8))
    assert film.story.map_cell == 30.0
    shot = film.story.episodes[0].shots[0]
    assert shot.pictures[0].shape == (120, 160, 3)
    assert film.story.episodes[0].places[0] == pytest.approx((240, -176), abs=1)


@pytest.fixture
def lab(monkeypatch, tmp_path):
    return install(monkeypatch, tmp_path)


def test_lab_shows_its_maze_from_above(lab, tmp_path, capsys):
    film = watch_untrained("dmlab/sparse", tmp_path / "film.gif", replace(SMALL, steps=8))
    assert film.story.captions == ("first person", "from above")
    assert film.story.map_cell is None
    first, last = (film.story.episodes[0].shots[number].pictures for number in (0, -1))
    assert first[0].shape == (120, 160, 3)
    assert first[1].shape == (91, 91, 3)  # 13 cells of 7 pixels
    assert not np.array_equal(first[1], last[1])
    lab.tell(layout="****\n*P \n****\n")
    film = watch_untrained("dmlab/sparse", tmp_path / "film.gif", replace(SMALL, steps=2))
    assert film.story.captions == ("first person",)
    assert "without walls: the maze of dmlab/sparse cannot be" in capsys.readouterr().err


@pytest.mark.usefixtures("lab")
def test_lab_shows_the_way_where_there_is_no_maze(tmp_path):
    film = watch_untrained("dmlab/dense-1", tmp_path / "film.gif", replace(SMALL, steps=2))
    assert film.story.captions == ("first person",)
    assert film.story.map_cell == 30.0


@pytest.mark.usefixtures("lab")
def test_lab_shows_its_television(tmp_path):
    task = "dmlab/sparse+noise"
    film = watch_untrained(task, tmp_path / "film.gif", replace(SMALL, steps=4))
    assert film.story.captions == ("first person", "from above")
    first, last = (film.story.episodes[0].shots[number].pictures[0] for number in (0, -1))
    height, width, _ = last.shape
    assert not first[height // 2 :, width // 2 :].any()
    noise = [film.story.episodes[0].shots[n].pictures[0] for n in (1, 2)]
    assert (noise[0] != noise[1])[height // 2 :, width // 2 :].mean() > 0.9


@pytest.mark.parametrize("task", ["maze/sparse", "gym/Blind-v0"])
@pytest.mark.usefixtures("registered")
def test_all_that_was_opened_is_closed(task, tmp_path, monkeypatch):
    opened, closed = [], []

    def make(*arguments, **options):
        world = make_world(*arguments, **options)
        opened.append(world)
        close = world.close
        world.close = lambda: (closed.append(world), close())
        return world

    monkeypatch.setattr(watch, "make_world", make)
    with contextlib.suppress(ValueError):
        watch_untrained(task, tmp_path / "film.gif", replace(SMALL, steps=2))
    assert opened
    assert all(world in closed for world in opened)


def test_gymnasium_shows_what_it_renders(tmp_path):
    pytest.importorskip("pygame")
    film = watch_untrained("gym/CartPole-v1", tmp_path / "film.gif", SMALL)
    assert film.story.captions == ("rendered",)
    assert film.story.map_cell is None
    assert film.story.episodes[0].shots[0].pictures[0].shape == (400, 600, 3)


class Blind(gymnasium.Env):
    """Vectors, and nothing to see."""

    observation_space = gymnasium.spaces.Box(0, 1, (2,))
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed, options=options)
        return self._observe(), {}

    def step(self, action):  # noqa: ARG002
        return self._observe(), 0.0, False, False, {}

    def _observe(self):
        return np.zeros(self.observation_space.shape, self.observation_space.dtype)


class Sighted(Blind):
    """Grey frames that are not rendered."""

    observation_space = gymnasium.spaces.Box(0, 255, (40, 50, 1), np.uint8)


@pytest.fixture
def registered():
    names = [env.__name__ + "-v0" for env in (Blind, Sighted)]
    for name, env in zip(names, (Blind, Sighted), strict=True):
        gymnasium.register(name, env, max_episode_steps=4)
    yield
    for name in names:
        gymnasium.registry.pop(name)


@pytest.mark.usefixtures("registered")
def test_frames_are_shown_where_nothing_is_rendered(tmp_path):
    film = watch_untrained("gym/Sighted-v0", tmp_path / "film.gif", SMALL)
    assert film.story.captions == ("its view",)
    assert film.story.episodes[0].shots[0].pictures[0].shape == (40, 50, 3)


@pytest.mark.usefixtures("registered")
def test_what_cannot_be_seen_is_refused(tmp_path):
    with pytest.raises(ValueError, match="gym/Blind-v0 cannot be filmed: it needs render mode"):
        watch_untrained("gym/Blind-v0", tmp_path / "film.gif", SMALL)
