"""MiniGrid and Atari by their ids alone: the real packages, and what is said without them."""

import subprocess
import sys
from typing import Any, ClassVar

import gymnasium
import numpy as np
import pytest
import torch

from episodic_curiosity.runs.presets import PRESETS, resolve
from episodic_curiosity.testing.worlds import NUM_ENVS, WorldConformance
from episodic_curiosity.worlds.base import World
from episodic_curiosity.worlds.registry import make_world, what_it_loads

ROOMS, FETCH = "gym/MiniGrid-MultiRoom-N2-S4-v0", "gym/MiniGrid-Fetch-8x8-N3-v0"
BREAKOUT = "gym/ALE/Breakout-v5"

SCALED = np.array([0, 26, 51, 76, 102, 128, 153, 178, 204, 230, 255])  # 25.5 n, half to even


class TestMiniGrid(WorldConformance):
    def make(self, num_envs: int = NUM_ENVS, seed: int = 7) -> World:
        pytest.importorskip("minigrid")
        return make_world(FETCH, num_envs=num_envs, seed=seed, episode_steps=7)


class TestAtari(WorldConformance):
    starts_differ = False  # the sticky actions' random numbers do
    options: ClassVar[dict[str, Any]] = {"episode_steps": 7, "observation_size": (42, 40)}

    def make(self, num_envs: int = NUM_ENVS, seed: int = 7) -> World:
        pytest.importorskip("ale_py")
        return make_world(BREAKOUT, num_envs=num_envs, seed=seed, **self.options)


@pytest.mark.parametrize("vectorization", ["sync", "async"])
def test_grids_are_indices_scaled_to_bytes(vectorization):
    """MiniGrid's own 7 x 7 x 3 bytes times 25.5, and the last ones of an episode too."""
    pytest.importorskip("minigrid")
    options = {"num_envs": 2, "seed": 3, "episode_steps": 4, "vectorization": vectorization}
    world = make_world(ROOMS, **options)
    assert world.spec.observation_shape == (3, 7, 7)
    assert (world.spec.num_actions, world.spec.episode_steps) == (7, 4)
    same = gymnasium.make(ROOMS.removeprefix("gym/"))
    own, _ = same.reset(seed=world._seeds(3)[1])
    step = world.reset()
    for action in (0, 2, 1, 5):
        assert step.observation[1].tolist() == SCALED[own["image"]].transpose(2, 0, 1).tolist()
        step = world.step(torch.full((2,), action))
        own = same.step(action)[0]
    assert step.truncated.all()
    final = SCALED[own["image"]].transpose(2, 0, 1)
    assert step.final_view[1].tolist() == final.tolist()
    assert final.max() >= 100  # a door or a goal
    world.close()


def test_minigrid_s_own_step_limit():
    """20 steps for each of two rooms."""
    pytest.importorskip("minigrid")
    world = make_world(ROOMS, num_envs=2, seed=3)
    assert world.spec.episode_steps == 40
    world.reset()
    steps = [world.step(torch.zeros(2, dtype=torch.int64)) for _ in range(40)]
    assert [bool(step.truncated.all()) for step in steps] == [False] * 39 + [True]


def test_babyai_is_minigrid_too():
    pytest.importorskip("minigrid")
    world = make_world("gym/BabyAI-GoToRedBall-v0", num_envs=2, seed=0)
    objects = world.reset().observation[:, 0].unique().tolist()
    assert set(objects) <= set(SCALED.tolist())


def test_atari_is_grey_and_as_large_as_the_preset_says():
    pytest.importorskip("ale_py")
    run = resolve(BREAKOUT, "ppo+eco", "cpu", 200_000, 0)
    options = run.world.options("train")
    assert options["observation_size"] == PRESETS["cpu"].observation_size == (42, 42)
    world = make_world(BREAKOUT, num_envs=2, seed=0, **options)
    assert (world.spec.observation_shape, world.spec.num_actions) == ((1, 42, 42), 4)
    frame = gymnasium.make("ALE/Breakout-v5").reset(seed=0)[0]  # (210, 160, 3)
    luma = (frame @ np.array([0.299, 0.587, 0.114])).round()
    # A 42nd of 210 rows is 5 rows; of 160 columns it is 4 at the left edge.
    place = luma[20:25, :4].mean().round()
    assert place > 100  # the wall
    assert world.reset().observation[1, 0, 4, 0] == place
    coloured = make_world(BREAKOUT, num_envs=1, seed=0, grey=False)
    assert coloured.spec.observation_shape == (3, 210, 160)


def test_presets_leave_other_environments_as_they_are():
    run = resolve("gym/CarRacing-v3", "ppo", "cpu", 10_000, 0)
    assert (run.world.observation_size, run.world.view_size) == (None, None)
    published = resolve("gym/ale_py:ALE/Pong-v5", "ppo+ec", "paper", 20_000_000, 0).world
    assert (published.observation_size, published.view_size) == ((84, 84), (120, 160))


@pytest.mark.parametrize(
    ("task", "module", "install"),
    [(ROOMS, "minigrid", "minigrid"), (BREAKOUT, "ale_py", "ale-py")],
)
def test_a_missing_package_is_named(task, module, install, monkeypatch):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ValueError, match=rf"needs {module}: pip install {install}$"):
        make_world(task, num_envs=1, seed=0)


def test_only_a_module_that_is_named_needs_trust():
    assert what_it_loads(ROOMS) is None
    assert what_it_loads(BREAKOUT) is None
    assert what_it_loads("gym/minigrid:MiniGrid-Empty-5x5-v0") == (
        "imports the Python module minigrid"
    )


def test_similar_ids_are_suggested():
    pytest.importorskip("minigrid")
    code = (
        "from episodic_curiosity import make_world\n"
        "make_world('gym/MiniGrid-Emty-5x5-v0', num_envs=1, seed=0)\n"
    )
    # In a process where nothing has imported minigrid yet.
    failed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert failed.stderr.splitlines()[-1].startswith(
        "ValueError: gym/MiniGrid-Emty-5x5-v0 cannot be made: Gymnasium has no id "
        "MiniGrid-Emty-5x5-v0; did you mean gym/MiniGrid-Empty-5x5-v0 or gym/MiniGrid-"
    )
    with pytest.raises(ValueError, match=r"no id Zz; gym/MODULE:ID imports a module"):
        make_world("gym/Zz", num_envs=1, seed=0)
