"""The learner of a run, and the restoring of its checkpoints."""

from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

import episodic_curiosity as ec
from episodic_curiosity.runs.checkpoints import Checkpoints
from episodic_curiosity.runs.learner import Learner, restore
from episodic_curiosity.runs.train import train
from episodic_curiosity.worlds.registry import make_world
from tests.runs.tiny_runs import NUM_ENVS, tiny_run


@pytest.mark.slow
def test_a_checkpoint_of_another_agent_is_one_line(tmp_path):
    run = tiny_run("ppo", "gym/CartPole-v1", num_updates=1)
    train(run, tmp_path, progress=False)
    newest = Checkpoints(tmp_path).load_newest()
    assert newest is not None
    newest.state["agent"]["x"] = torch.zeros(2)
    learner = Learner.make(run, make_world(run.task, num_envs=NUM_ENVS, seed=0), tmp_path)
    path = Checkpoints(tmp_path).path(newest.number)
    with pytest.raises(
        ec.LoadError, match=r"does not fit this run: Error.* Unexpected key"
    ) as e:
        restore(learner, newest.state, path)
    assert "\n" not in str(e.value)


@pytest.mark.parametrize(
    "error",
    [
        torch.OutOfMemoryError("CUDA out of memory"),
        RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 8"),
    ],
)
def test_a_checkpoint_is_not_blamed_for_a_full_memory(error):
    def load_state_dict(_):
        raise error

    learner = SimpleNamespace(load_state_dict=load_state_dict)
    with pytest.raises(type(error), match="memory"):
        restore(learner, {"number": 1}, Path("checkpoint"))
