"""Damaged files of a run are refused in a sentence; `make soak` tries many more."""

import pytest

from benchmarks.soak.damaging import READERS, damage_and_read
from episodic_curiosity.runs.train import train
from tests.runs.tiny_runs import tiny_run


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("damaged") / "run"
    train(tiny_run("ppo+eco", num_updates=4), folder, progress=False)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("pattern", READERS)
def test_random_damage(folder, pattern):
    damages = damage_and_read(folder, pattern, 100, seed=0)
    assert damages.tracebacks == []
    assert damages.refused > 50
