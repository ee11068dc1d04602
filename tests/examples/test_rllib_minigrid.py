"""The example for RLlib: what it sees, and a short run on a local Ray."""

import json
import re

import numpy as np
import pytest
import torch

ray = pytest.importorskip("ray")
pytest.importorskip("ray.rllib")
pytest.importorskip("minigrid")

from episodic_curiosity.worlds.gymnasium.spaces import Observations  # noqa: E402
from examples.rllib_minigrid import Args, main, make_env  # noqa: E402

ENV = "MiniGrid-DoorKey-5x5-v0"
# Ray and RLlib use what they and others have deprecated.
pytestmark = pytest.mark.filterwarnings(
    "ignore::DeprecationWarning",
    "ignore::ResourceWarning",
    "ignore:.*Overriding environment rllib-single-agent-env-v0:UserWarning",
)


def test_the_policy_and_curiosity_see_the_cells():
    """The picture is the one that `gym/MiniGrid-...` has in our own trainer."""
    env = make_env(ENV)
    cells = env.unwrapped.gen_obs
    space = env.unwrapped.observation_space["image"]
    ours = Observations(ENV, space, 1, torch.device("cpu"), None, None, largest_byte=10)
    seen, info = env.reset(seed=3)
    for action in (2, 0, 2, 1, 3, 2):
        image = cells()["image"]
        assert env.observation_space.contains(seen)
        assert (seen.reshape(7, 7, 3, 11).argmax(-1) == image).all()
        assert seen.sum() == 7 * 7 * 3
        assert torch.equal(torch.from_numpy(info["picture"]), ours.to_device(image[None])[1][0])
        seen, _, _, _, info = env.step(action)
    assert len(np.unique(info["picture"])) > 3


def test_an_unknown_task_is_a_sentence():
    with pytest.raises(SystemExit, match=r"rllib_minigrid.py: Environment .* doesn't exist"):
        main(Args(env="MiniGrid-DoorKey-5x6-v0"))


@pytest.mark.slow
def test_it_trains_and_writes_the_curve(tmp_path, capsys):
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    out = tmp_path / "curve.json"
    try:
        sizes = {"num_runners": 1, "num_envs": 4, "num_steps": 64, "refit_every": 840}
        main(Args(steps=1_000, **sizes, out=out))
    finally:
        ray.shutdown()
    found = json.loads(out.read_text())
    steps, task_return = found["curve"][-1]  # an episode has at most 250 steps
    assert 1_000 <= steps < 1_256
    assert 0 <= task_return < 1
    assert found["steps_per_second"] > 0
    assert (found["env"], found["method"], found["seed"]) == (ENV, "ppo+eco", 0)
    told = capsys.readouterr().out
    assert re.search(rf"{steps:,} steps: return [\d.]+\n", told)
