"""Ants beside a GPU: MuJoCo steps them on the CPU, between two CUDA graphs."""

from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from episodic_curiosity.bonus.episodic import EpisodicBonus
from episodic_curiosity.runs.learner import Learner
from episodic_curiosity.worlds.base import Rollout
from episodic_curiosity.worlds.registry import make_world
from tests.runs.tiny_runs import METHODS, tiny_run

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # of the compiler's own making
]


def play(method: str, folder: Path) -> tuple[list[Rollout], dict[str, float]]:
    run = replace(tiny_run(method, "ant/no-reward"), device="cuda")
    options = run.world.options("train")
    with closing(
        make_world(run.task, num_envs=run.world.num_envs, seed=0, device="cuda", **options)
    ) as world:
        learner = Learner.make(run, world, folder)
        if isinstance(learner.curiosity, EpisodicBonus):
            learner.r_network.fitted.fill_(True)
        learner.collector.reset()
        rollouts = [
            Rollout(*(None if field is None else field.clone() for field in rollout))
            for rollout in (learner.collector.collect() for _ in range(4))
        ]
        return rollouts, learner.metrics()


@pytest.mark.parametrize("method", METHODS)
def test_graphs_around_mujoco_s_step_change_nothing(method, tmp_path, monkeypatch):
    captured, metrics = play(method, tmp_path)
    monkeypatch.setattr("episodic_curiosity.agent.collector.graph_device", lambda *_: None)
    eager, expected = play(method, tmp_path)
    for rollout, wanted in zip(captured, eager, strict=True):
        for name, field in wanted._asdict().items():
            if field is not None:
                torch.testing.assert_close(getattr(rollout, name), field, msg=name)
    assert metrics == pytest.approx(expected, rel=1e-4, nan_ok=True)  # no accuracy yet


def test_a_redrawn_view_is_the_one_that_was_drawn():
    world = make_world("ant/no-reward", num_envs=5, seed=0, device="cuda", view_size=(42, 42))
    on_cpu = make_world("ant/no-reward", num_envs=5, seed=0, view_size=(42, 42))
    step, expected = world.reset(), on_cpu.reset()
    snapshot = world.snapshot()
    assert torch.equal(world.redraw(snapshot), step.view)
    rows = torch.tensor([4, 0, 3, 3, 1, 2, 2], device="cuda")  # more than there are ants
    assert torch.equal(world.redraw(snapshot[rows]), step.view[rows])
    differs = (step.view.cpu().int() - expected.view.int()).abs() > 1
    assert differs.double().mean() < 1e-3
