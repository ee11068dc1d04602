"""A training over ViZDoom goes on, whatever happens to its engines and workers."""

import dataclasses
import json
import os
import signal

import pytest

from episodic_curiosity.runs import build as building
from episodic_curiosity.runs import train as training
from episodic_curiosity.runs.presets import resolve
from episodic_curiosity.worlds.registry import make_world
from tests.worlds.processes.children import engines, have_ended

pytestmark = pytest.mark.slow

pytest.importorskip("vizdoom")

NUM_ENVS, NUM_STEPS, UPDATES = 4, 32, 3


class Saboteur:
    """Makes a world whose engines and workers suffer within the steps of a run."""

    def __init__(self) -> None:
        self.groups: list[int] = []  # the workers after the newest step
        self.num_engines = self.num_steps = 0

    def make(self, *task, **options):
        self.world = make_world(*task, **options, timeout=3.0)
        self._begin_step, self.world.begin_step = self.world.begin_step, self.begin_step
        self._end_step, self.world.end_step = self.world.end_step, self.end_step
        return self.world

    def begin_step(self, actions):
        self._begin_step(actions)
        self.num_steps += 1
        workers = self.world.workers
        if self.num_steps == 10:
            os.kill(engines(workers.pids)[-1], signal.SIGKILL)
        elif self.num_steps == 20:
            os.kill(engines(workers.pids)[0], signal.SIGSTOP)
        elif self.num_steps == 40:
            os.kill(workers.pids[1], signal.SIGKILL)

    def end_step(self):
        step = self._end_step()
        pids = self.world.workers.pids
        self.groups, self.num_engines = pids, len(engines(pids))
        return step


def test_a_training_outlives_engines_and_workers(monkeypatch, tmp_path, caplog):
    run = resolve("vizdoom/dense", "ppo", "cpu", UPDATES * NUM_ENVS * NUM_STEPS, 0)
    run = dataclasses.replace(
        run,
        device="cpu",
        world=dataclasses.replace(run.world, num_envs=NUM_ENVS, num_workers=2),
        ppo=dataclasses.replace(run.ppo, num_steps=NUM_STEPS),
    )
    saboteur = Saboteur()
    monkeypatch.setattr(building, "make_world", saboteur.make)
    training.train(run, tmp_path / "run", progress=False)
    assert saboteur.num_steps == UPDATES * NUM_STEPS
    assert len(saboteur.groups) == 2
    assert saboteur.num_engines == NUM_ENVS
    assert saboteur.world.workers.num_faults == 1 + 2 + 2
    for said in ("ViZDoomErrorException", "no answer in time", "died"):
        assert said in caplog.text
    lines = (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()
    assert [json.loads(line)["steps"] for line in lines] == [128, 256, 384]
    assert have_ended(saboteur.groups)
