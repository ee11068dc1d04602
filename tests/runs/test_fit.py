"""The R-network that is fitted to random play, before a run or without one."""

from dataclasses import replace

import pytest
import torch

from episodic_curiosity.runs.build import make_r_network
from episodic_curiosity.runs.fit import fit, fit_beforehand, random_play_bytes
from episodic_curiosity.runs.metrics_files import read_metrics
from episodic_curiosity.runs.record import RunFolderError
from episodic_curiosity.runs.train import train
from episodic_curiosity.support.progress import Progress
from episodic_curiosity.worlds.registry import make_world
from tests.runs.tiny_runs import NUM_ENVS, tiny_run

pytestmark = pytest.mark.slow


def world_of(run):
    return make_world(run.task, num_envs=NUM_ENVS, seed=run.seed, **run.world.options("train"))


def test_nothing_is_played_for_a_folder_that_cannot_be_one(tmp_path, monkeypatch):
    monkeypatch.setattr("episodic_curiosity.runs.build.make_world", None)
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(RunFolderError, match="file is a file; name a folder"):
        fit(tiny_run("ppo+ec"), file, progress=False)


def test_nothing_is_played_that_is_too_little_for_an_r_network(tmp_path, monkeypatch):
    monkeypatch.setattr("episodic_curiosity.runs.build.make_world", None)
    run = tiny_run("ppo+ec")
    play = replace(run.r_network.random_play, steps=8)
    run = replace(run, r_network=replace(run.r_network, random_play=play))
    with pytest.raises(ValueError, match=r"8 steps of random play are \d for each of"):
        fit(run, tmp_path / "r", progress=False)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("tasks", [(), ("maze/sparse", "maze/no-reward")])
def test_a_fitted_r_network_serves_another_task(tasks, tmp_path):
    run = tiny_run("ppo+ec")
    play = replace(run.r_network.random_play, tasks=tasks, steps=320)
    run = replace(run, steps=320, r_network=replace(run.r_network, random_play=play))
    fit(run, tmp_path / "r", progress=False)
    with pytest.raises(RunFolderError, match="already holds an R-network"):
        fit(run, tmp_path / "r", progress=False)

    run = tiny_run("ppo+ec", "maze/very-sparse")
    run = replace(run, r_network=replace(run.r_network, source=tmp_path / "r"))
    train(run, tmp_path / "run", progress=False)
    lines = read_metrics(tmp_path / "run")
    assert lines[0]["steps"] == 40  # no random play
    weights = [
        (tmp_path / folder / "r_network.safetensors").read_bytes() for folder in ("r", "run")
    ]
    assert weights[0] == weights[1]


def test_an_r_network_for_a_world_that_cannot_be_made_leaves_no_folder(tmp_path):
    run = tiny_run("ppo+ec")
    run = replace(run, world=replace(run.world, maze_size=4))
    with pytest.raises(ValueError, match="must be odd"):
        fit(run, tmp_path / "r", progress=False)
    assert not (tmp_path / "r").exists()


def test_a_fitted_r_network_is_taken_from_its_folder(tmp_path):
    run = tiny_run("ppo+ec")
    world = world_of(run)
    fitted = make_r_network(run, world)
    with Progress(run.steps, is_shown=False) as display:
        report = fit_beforehand(run, fitted, world.spec, tmp_path, display)
    assert fitted.fitted
    assert 0 <= report.held_out_accuracy <= 1
    assert not any(tmp_path.iterdir())  # what it was fitted to is not kept
    fitted.save(tmp_path)
    run = replace(run, r_network=replace(run.r_network, source=tmp_path))
    loaded = make_r_network(run, world).state_dict()
    for name, tensor in fitted.state_dict().items():
        assert torch.equal(loaded[name], tensor), name


@pytest.mark.parametrize("tasks", [(), ("maze/sparse", "maze/dense-1")])
def test_how_much_random_play_takes(tasks):
    run = tiny_run("ppo+ec")
    play = replace(run.r_network.random_play, steps=4_000, tasks=tasks)
    run = replace(run, r_network=replace(run.r_network, random_play=play))
    spec = world_of(run).spec
    assert random_play_bytes(run, spec) == (4_000 + 1_000) * spec.snapshot_bytes
    run = tiny_run("ppo+ec", "gym/CartPole-v1")  # 200 steps, 4 x 20 held out, of 4 floats
    assert random_play_bytes(run, world_of(run).spec) == (200 + 80) * 4 * 4
