"""Whole runs over the stand-in: every method, faults on the way, one R-network for all."""

import os
import signal
from dataclasses import replace

import pytest

from episodic_curiosity.cli.fit import read_fit
from episodic_curiosity.cli.train import read_train
from episodic_curiosity.runs import build as building
from episodic_curiosity.runs import train as training
from episodic_curiosity.runs.config import Run
from episodic_curiosity.runs.evaluate_folder import evaluate_run
from episodic_curiosity.runs.fit import fit
from episodic_curiosity.runs.metrics_files import read_metrics
from episodic_curiosity.worlds.registry import make_world, split_tasks
from tests.runs.tiny_runs import METHODS, NUM_ENVS, tiny_run

pytestmark = pytest.mark.slow

LEVELS = ("natlab_fixed_large_map", "rooms_keys_doors_puzzle", "psychlab_visual_search")


def lab_run(method: str, task: str = "dmlab/sparse", num_updates: int = 4) -> Run:
    run = tiny_run(method, task, num_updates=num_updates)
    sizes = {"frame_size": (44, 60), "observation_size": (36, 36), "view_size": (36, 36)}
    return replace(run, world=replace(run.world, episode_steps=15, **sizes))


@pytest.mark.parametrize("method", METHODS)
def test_every_method_trains(build, method, tmp_path):  # noqa: ARG001
    task = "dmlab/no-reward+image-action-3" if method == "ppo+oracle" else "dmlab/sparse"
    run = lab_run(method, task)
    training.train(run, tmp_path / "run", progress=False)
    lines = read_metrics(tmp_path / "run")
    assert lines[-1]["steps"] == run.steps
    assert sum(line.get("episodes", 0) for line in lines) > 0
    if method == "ppo+ec":
        measured = evaluate_run(tmp_path / "run", episodes=4, device="cpu")
        assert measured.length.tolist() == [15] * 4


class Saboteur:
    """Makes a world whose levels and workers suffer while it is played."""

    def __init__(self, build) -> None:
        self._build = build
        self.num_steps = 0

    def make(self, *task, split, **options):
        if split != "train":  # of the R-network's data
            return make_world(*task, split=split, **options)
        self.world = make_world(*task, **options, timeout=3.0)
        self._begin_step, self.world.begin_step = self.world.begin_step, self.begin_step
        return self.world

    def begin_step(self, actions):
        self.num_steps += 1
        workers = self.world.workers
        if self.num_steps == 3:
            seeds = workers.board.seed & 0x7FFFFFFF
            self._build.tell(faults={str(seeds[0]): "compile", str(seeds[1]): "crash"})
        elif self.num_steps == 40:
            os.kill(workers.pids[3], signal.SIGSTOP)
        self._begin_step(actions)


def test_a_training_of_ec_goes_on_whatever_happens(build, monkeypatch, tmp_path, caplog):
    run = lab_run("ppo+ec", num_updates=6)
    saboteur = Saboteur(build)
    monkeypatch.setattr(building, "make_world", saboteur.make)
    training.train(run, tmp_path / "run", progress=False)
    assert saboteur.num_steps == 60
    assert saboteur.world.workers.num_faults == 3
    for said in ("q3map2 failed", "0 to 0: died", "1 to 1: died", "3 to 3: no answer in time"):
        assert said in caplog.text
    assert read_metrics(tmp_path / "run")[-1]["steps"] == run.steps


def test_an_r_network_for_many_levels(build, monkeypatch, tmp_path):  # noqa: ARG001
    """As supplement S4: fitted alike to several levels, used on another one."""
    made = []

    def make(*task, split, **options):
        world = make_world(*task, split=split, **options)
        if split == "train":  # of the run itself, for its shapes
            return world
        reset = world.reset

        def reset_alone(seed=None):
            step = reset(seed)
            assert sum(len(other.workers.pids) for other in made) == NUM_ENVS
            return step

        world.reset = reset_alone
        made.append(world)
        return world

    run = lab_run("ppo+ec")
    play = replace(run.r_network.random_play, tasks=tuple(f"dmlab/{name}" for name in LEVELS))
    play = replace(play, steps=600)
    with monkeypatch.context() as patch:
        patch.setattr(building, "make_world", make)
        fitted = replace(run, r_network=replace(run.r_network, random_play=play))
        fit(fitted, tmp_path / "net", progress=False)
    assert [world.spec.task for world in made] == 2 * [f"dmlab/{name}" for name in LEVELS]
    run = replace(run, r_network=replace(run.r_network, source=tmp_path / "net"))
    training.train(run, tmp_path / "run", progress=False)
    assert read_metrics(tmp_path / "run")[-1]["steps"] == run.num_updates * 40


def test_a_world_that_cannot_start_leaves_no_folder(build, tmp_path):
    build.tell(lacks=["DEBUG.POS.TRANS"])
    with pytest.raises(ChildProcessError, match=r"does not provide DEBUG\.POS\.TRANS"):
        training.train(lab_run("ppo"), tmp_path / "run", progress=False)
    assert not (tmp_path / "run").exists()


def test_options_of_the_processes_on_the_command_line(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    asked = "--task dmlab/sparse --world.timeout 900 --world.level-cache levels"
    world = read_train(asked.split()).run.world
    assert world.options("train")["timeout"] == 900.0
    assert world.level_cache == tmp_path / "levels"
    assert "timeout" not in read_train(["--task", "dmlab/sparse"]).run.world.options("train")
    asked = "--task vizdoom/dense --world.timeout 5"
    assert read_train(asked.split()).run.world.options("train")["timeout"] == 5.0


def test_a_run_may_go_on_with_another_patience(build, tmp_path):  # noqa: ARG001
    run = lab_run("ppo", num_updates=2)
    training.train(run, tmp_path / "run", progress=False)
    patient = replace(run.world, timeout=900.0, level_cache=tmp_path / "levels")
    longer = replace(run, world=patient, steps=2 * run.steps)
    with pytest.raises(ValueError, match="steps was 80, now 160"):  # which may not differ
        training.train(longer, tmp_path / "run", resume=True, progress=False)
    before = (tmp_path / "run" / "metrics.jsonl").read_bytes()
    training.train(replace(run, world=patient), tmp_path / "run", resume=True, progress=False)
    assert (tmp_path / "run" / "metrics.jsonl").read_bytes() == before


def test_all_of_dmlab_30_in_one_word():
    asked = "--tasks dmlab-30 --preset paper --steps 10000000 --out net"
    run, _ = read_fit(asked.split())
    assert len(run.r_network.random_play.tasks) == 30
    assert run.r_network.random_play.tasks == split_tasks("dmlab-30")
    assert run.random_play_steps == 10_000_000
    assert run.world.view_size == (120, 160)
    asked = "--task dmlab/sparse --method ppo+ec --r-network-tasks dmlab-30,dmlab/sparse"
    tasks = read_train(asked.split()).run.r_network.random_play.tasks
    assert len(tasks) == 31
