"""The bonuses of other papers in whole runs, tiny ones: they train, and resume to the byte."""

import math
import shutil
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from benchmarks.soak.works import what_is_left
from episodic_curiosity.bonus.base import shown
from episodic_curiosity.runs.build import load_bonus
from episodic_curiosity.runs.checkpoints import Checkpoints
from episodic_curiosity.runs.metrics_files import read_metrics
from episodic_curiosity.runs.settings import find_settings
from episodic_curiosity.runs.train import train
from episodic_curiosity.worlds.registry import make_world
from tests.runs.tiny_runs import tiny_run

# What each says of its learning.
LOSSES = {
    "ppo+rnd": {"rnd_loss"},
    "ppo+ngu": {"rnd_loss", "inverse_loss", "memory_fill"},
    "ppo+e3b": {"inverse_loss"},
    "ppo+noveld": {"rnd_loss", "memory_fill"},
    "ppo+etd": {"etd_loss", "memory_fill"},
    "ppo+ec-rnd": {"rnd_loss", "memory_fill", "r_network_accuracy"},
}


def run_of(method: str, task: str = "maze/sparse", num_updates: int = 6):
    return tiny_run(method, task, num_updates=num_updates)


class Stopped(Exception):
    pass


@pytest.fixture
def stop_after(monkeypatch):
    """Stops a run when it is about to make this update."""

    def stop_after(number: int) -> None:
        from episodic_curiosity.runs import train as module

        update = module._update

        def stopping(parts, at, record):
            if at == number:
                raise Stopped
            return update(parts, at, record)

        monkeypatch.setattr(module, "_update", stopping)

    return stop_after


@pytest.mark.slow
@pytest.mark.parametrize("method", LOSSES)
def test_it_trains_and_resumes_to_the_byte(method, tmp_path, stop_after, monkeypatch):
    """The checkpoint is of update 3; what was done after it is done again."""
    whole, stopped = tmp_path / "whole", tmp_path / "stopped"
    train(run_of(method), whole, progress=False)
    lines = read_metrics(whole)
    told = {name for line in lines for name in line}
    assert told >= {"bonus_mean", "bonus_spread"} | LOSSES[method]
    assert all(math.isfinite(value) for line in lines for value in line.values())
    assert lines[-1]["bonus_mean"] != 0

    kept = tmp_path / "kept"  # what `curiosity table` leaves of a run
    shutil.copytree(whole, kept)
    Checkpoints(kept).remove()
    size = (36, 36)  # as for a film, of another number of environments
    with closing(make_world("maze/sparse", num_envs=3, seed=0, observation_size=size)) as world:
        bonus = load_bonus(run_of(method), world, kept)
        bonus.begin(shown(bonus, world.reset()))
        action = torch.zeros(3, dtype=torch.int64)
        seen = shown(bonus, world.step(action))
        assert (bonus.bonus(seen, action=action) != 0).any()

    stop_after(4)
    with pytest.raises(Stopped):
        train(run_of(method), stopped, progress=False)
    monkeypatch.undo()
    train(run_of(method), stopped, resume=True, progress=False)
    assert what_is_left(stopped) == what_is_left(whole)


@pytest.mark.slow
@pytest.mark.parametrize("method", LOSSES)
@pytest.mark.parametrize("task", ["gym/CartPole-v1", "gym/Pendulum-v1"])
def test_vectors_and_continuous_actions(method, task, tmp_path: Path):
    train(run_of(method, task, 3), tmp_path, progress=False)
    assert len(read_metrics(tmp_path)) == 3 + (method == "ppo+ec-rnd")


def test_ec_rnd_has_ecs_memory():
    for task in ("maze/sparse", "ant/no-reward", "gym/CartPole-v1"):
        ec, both = (find_settings(task, name).bonus for name in ("ppo+ec", "ppo+ec-rnd"))
        assert both == replace(both, **vars(ec))
