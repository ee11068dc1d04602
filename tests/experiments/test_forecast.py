"""The disk space that runs are planned with."""

from contextlib import closing

import pytest
import torch

from episodic_curiosity.experiments.forecast import disk_bytes
from episodic_curiosity.runs.build import make_bonus, save_bonus
from episodic_curiosity.runs.presets import resolve
from episodic_curiosity.worlds.registry import make_world
from tests.runs.tiny_runs import NUM_ENVS, tiny_run

NUM_SLOTS = {"ppo+etd": 1_000 * 2 * 64, "ppo+ec": 200 * 512}  # x numbers of one slot


@pytest.mark.parametrize("method", NUM_SLOTS)
def test_three_checkpoints_hold_the_memories_of_every_environment(method):
    ppo, other = (
        disk_bytes(resolve("maze/sparse", name, "turbo", 20_000_000, 0))[0]
        for name in ("ppo", method)
    )
    memories = 3 * 1_024 * NUM_SLOTS[method] * 4
    assert memories < other - ppo < 1.1 * memories


@pytest.mark.parametrize("task", ["maze/sparse", "gym/CartPole-v1"])
@pytest.mark.parametrize("method", ["ppo+rnd", "ppo+ngu", "ppo+e3b", "ppo+etd", "ppo+icm"])
def test_the_bonus_is_planned_as_large_as_it_is(method, task, tmp_path):
    run, ppo = tiny_run(method, task), tiny_run("ppo", task)
    options = run.world.options("train")
    with closing(make_world(task, num_envs=NUM_ENVS, seed=0, **options)) as world:
        bonus = make_bonus(run, world, tmp_path)
    state = [part for part in bonus.state_dict().values() if isinstance(part, torch.Tensor)]
    save_bonus(bonus, tmp_path)
    kept = (tmp_path / "bonus.safetensors").stat().st_size
    peak, left = (a - b for a, b in zip(disk_bytes(run), disk_bytes(ppo), strict=True))
    assert peak == 3 * sum(part.nbytes for part in state)
    assert left == pytest.approx(kept, abs=20_000)  # the file has a header
