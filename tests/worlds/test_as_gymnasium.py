"""The Gymnasium ids, as a stranger would use them."""

import subprocess
import sys

import numpy as np
import pytest

gymnasium = pytest.importorskip("gymnasium")
from gymnasium.utils.env_checker import check_env  # noqa: E402

from episodic_curiosity.worlds.as_gymnasium import IDS, register  # noqa: E402

MAZES = [name for name, task in IDS.items() if task.startswith("maze/")]
SMALL = {"num_levels": 5, "observation_size": (12, 16)}


@pytest.fixture(autouse=True)
def _registered():
    register()
    register()


@pytest.mark.parametrize("name", MAZES)
def test_every_maze_speaks_numpy(name):
    env = gymnasium.make_vec(name, num_envs=3, **SMALL)
    observation, info = env.reset(seed=1)
    assert observation.shape == (3, 12, 16, 3)
    assert observation.dtype == np.uint8
    assert env.observation_space.contains(observation)
    assert info["position"].shape == (3, 3)
    env.action_space.seed(0)
    observation, reward, terminated, truncated, info = env.step(env.action_space.sample())
    assert env.observation_space.contains(observation)
    assert reward.shape == terminated.shape == truncated.shape == (3,)
    assert isinstance(info["position"], np.ndarray)
    env.close()
    env.close()


def test_names_follow_the_tasks():
    assert len(MAZES) == 7
    assert IDS["EpisodicCuriosity/MazeNoRewardNoFire-v0"] == "maze/no-reward-no-fire"
    assert IDS["EpisodicCuriosity/MazeDense1-v0"] == "maze/dense-1"
    assert IDS["EpisodicCuriosity/AntEscapeCircle-v0"] == "ant/escape-circle"
    assert IDS.keys() <= gymnasium.registry.keys()


@pytest.mark.parametrize("name", MAZES)
def test_gymnasium_finds_nothing_wrong_with_one_environment(name):
    env = gymnasium.make(name, **SMALL)
    check_env(env.unwrapped)  # warnings are errors
    env.close()
    env.close()


@pytest.mark.filterwarnings("ignore:.*A Box observation space m.*infinity")
def test_a_body_with_continuous_actions():
    pytest.importorskip("mujoco.batch")
    env = gymnasium.make("EpisodicCuriosity/AntNoReward-v0", render_mode="rgb_array")
    check_env(env.unwrapped, skip_render_check=True)
    observation, info = env.reset(seed=1)
    assert (observation.shape, env.action_space.shape) == ((27,), (8,))
    assert info["position"].shape == (3,)
    assert env.render().shape == (120, 160, 3)  # the head camera
    with pytest.raises(ValueError, match="actions must be floats, got int64"):
        env.unwrapped.step(np.zeros(8, np.int64))
    with pytest.raises(ValueError, match="no frames to render"):
        gymnasium.make(
            "EpisodicCuriosity/AntNoReward-v0", render_mode="rgb_array", view_size=None
        )


def test_one_environment_plays_the_episodes_of_a_batch_of_one():
    """Its own reset takes the place of the batch's, which comes with the last step."""
    options = SMALL | {"episode_steps": 3}
    env = gymnasium.make(
        "EpisodicCuriosity/MazeSparse-v0", render_mode="rgb_array", view_size=(6, 8), **options
    )
    batch = gymnasium.make_vec("EpisodicCuriosity/MazeSparse-v0", num_envs=1, **options)
    (one, _), (many, _) = env.reset(seed=5), batch.reset(seed=5)
    for _ in range(2):
        assert np.array_equal(one, many[0])
        for time in range(1, 4):
            one, reward, terminated, truncated, info = env.step(6)
            many, rewards, *_, infos = batch.step(np.array([6]))
            assert (reward, terminated, truncated) == (rewards[0], False, time == 3)
            if time < 3:
                assert np.array_equal(one, many[0])
                assert np.array_equal(info["position"], infos["position"][0])
        assert np.array_equal(one, infos["final_obs"][0])
        assert np.array_equal(info["position"], infos["final_info"]["position"][0])
        last = env.render()
        one, info = env.reset()
        assert (last.shape, env.render().shape) == ((6, 8, 3), (6, 8, 3))
        assert not np.array_equal(last, env.render())
        assert np.array_equal(info["position"], infos["position"][0])
    assert np.array_equal(env.reset(seed=5)[0], batch.reset(seed=5)[0][0])
    assert not np.array_equal(env.reset()[0], many[0])  # in the middle of an episode


def test_a_module_may_be_named_instead_of_imported():
    program = (
        "import sys, gymnasium; env = gymnasium.make('episodic_curiosity:EpisodicCuriosity/"
        "MazeDense2-v0', observation_size=(8, 8)); print(env.reset()[0].shape)"
    )
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (said.stdout, said.returncode) == ("(8, 8, 3)\n", 0), said.stderr


OLD = """
import gymnasium.vector
del gymnasium.vector.AutoresetMode
gymnasium.__version__ = "1.0.0"
import warnings
with warnings.catch_warnings(record=True) as told:
    import episodic_curiosity as ec
print(*(each.message for each in told))
print(ec.make_world("maze/sparse", num_envs=2, seed=0, view_size=(6, 8)).spec.view_shape)
for use in ("import episodic_curiosity.adapters.gymnasium",
            "ec.make_world('gym/CartPole-v1', num_envs=2, seed=0)"):
    try:
        exec(use)
    except ImportError as error:
        print(error)
"""


def test_a_gymnasium_that_is_too_old_is_said_in_a_sentence():
    said = subprocess.run([sys.executable, "-c", OLD], capture_output=True, text=True)
    sentence = (
        "gymnasium must be of version 1.1 or newer, got 1.0.0: pip install --upgrade gymnasium"
    )
    assert said.returncode == 0, said.stderr
    assert said.stdout.splitlines() == [
        f"no Gymnasium environments are registered: {sentence}",
        "(3, 6, 8)",
        sentence,
        sentence,
    ]


def test_default_frames_are_84_by_84():
    env = gymnasium.make_vec("EpisodicCuriosity/MazeSparse-v0", num_envs=2, num_levels=2)
    assert env.reset()[0].shape == (2, 84, 84, 3)
    assert env.single_action_space.n == 9


def test_seeds():
    env = gymnasium.make_vec("EpisodicCuriosity/MazeSparse-v0", num_envs=2, **SMALL)
    first, second, third = (env.reset(seed=seed)[0] for seed in (1, 2, 1))
    assert np.array_equal(first, third)
    assert not np.array_equal(first, second)
    assert not np.array_equal(first, env.reset()[0])  # the next episode of the same series


def test_an_episode_that_ends_begins_again_in_the_same_step():
    env = gymnasium.make_vec(
        "EpisodicCuriosity/MazeSparse-v0", num_envs=2, episode_steps=2, **SMALL
    )
    assert env.metadata["autoreset_mode"] == gymnasium.vector.AutoresetMode.SAME_STEP
    env.reset(seed=1)
    _, _, _, truncated, info = env.step(np.array([0, 0]))
    assert not truncated.any()
    assert "final_obs" not in info
    observation, _, terminated, truncated, info = env.step(np.array([0, 0]))
    assert truncated.all()
    assert not terminated.any()
    assert info["_final_obs"].all()
    assert info["final_obs"].dtype == object
    assert info["final_obs"][0].shape == observation[0].shape
    assert not np.array_equal(info["final_obs"][0], observation[0])
    assert info["final_info"]["position"].shape == (2, 3)
    assert not np.array_equal(info["final_info"]["position"], info["position"])


def test_statistics_wrapper_counts_our_episodes():
    env = gymnasium.make_vec(
        "EpisodicCuriosity/MazeSparse-v0", num_envs=2, episode_steps=4, **SMALL
    )
    env = gymnasium.wrappers.vector.RecordEpisodeStatistics(env)
    env.reset(seed=1)
    for _ in range(4):
        *_, info = env.step(np.array([4, 4]))
    assert info["episode"]["l"].tolist() == [4, 4]


def test_bad_actions_and_modes():
    env = gymnasium.make_vec("EpisodicCuriosity/MazeSparse-v0", num_envs=2, **SMALL)
    env.reset()
    with pytest.raises(ValueError, match="9"):
        env.step(np.array([0, 9]))
    with pytest.raises(ValueError, match="actions must be integers, got float64"):
        env.step(np.zeros(2))
    assert env.render() is None
    with pytest.raises(ValueError, match="rgb_array"):
        gymnasium.make_vec("EpisodicCuriosity/MazeSparse-v0", render_mode="human", **SMALL)
    env = gymnasium.make_vec(
        "EpisodicCuriosity/MazeSparse-v0", num_envs=2, render_mode="rgb_array", **SMALL
    )
    observation, _ = env.reset()
    assert np.array_equal(np.stack(env.render()), observation)
    with pytest.raises(ValueError, match="reset takes no options, got level"):
        env.reset(options={"level": 3})
