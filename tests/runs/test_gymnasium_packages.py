"""Runs on MiniGrid and Atari: training, evaluation and a film, with no further options."""

import math

import pytest

from episodic_curiosity.runs.evaluate_folder import evaluate_run
from episodic_curiosity.runs.metrics_files import read_metrics
from episodic_curiosity.runs.train import train
from episodic_curiosity.show.film.config import FilmConfig
from episodic_curiosity.show.film.watch import watch_run
from tests.runs.tiny_runs import tiny_run

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("package", "task", "method", "picture"),
    [
        ("minigrid", "gym/MiniGrid-Empty-5x5-v0", "ppo+eco", (160, 160, 3)),
        ("minigrid", "gym/MiniGrid-MultiRoom-N2-S4-v0", "ppo+icm", (800, 800, 3)),
        ("ale_py", "gym/ALE/Breakout-v5", "ppo", (210, 160, 3)),
    ],
)
def test_train_evaluate_watch(package, task, method, picture, tmp_path):
    pytest.importorskip(package)
    train(tiny_run(method, task, num_updates=6), tmp_path, progress=False)
    lines = read_metrics(tmp_path)
    assert [line["steps"] for line in lines] == [40, 80, 120, 160, 200, 240]
    assert all(math.isfinite(value) for line in lines for value in line.values())
    if method != "ppo":
        assert lines[-1]["bonus_spread"] > 0
    found = evaluate_run(tmp_path, episodes=4, device="cpu")
    assert (found.length > 3).all()
    film = watch_run(tmp_path, tmp_path / "film.gif", FilmConfig(steps=5, device="cpu"))
    assert film.story.captions == ("rendered",)
    assert film.story.episodes[0].shots[0].pictures[0].shape == picture
