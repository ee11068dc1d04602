"""The Gymnasium ids, as a stranger would use them."""

import numpy as np
import pytest

gymnasium = pytest.importorskip("gymnasium")

from episodic_curiosity.worlds.maze.gymnasium_ids import IDS, register  # noqa: E402

SMALL = {"num_levels": 5, "observation_size": (12, 16)}


@pytest.fixture(autouse=True)
def _registered():
    register()
    register()


@pytest.mark.parametrize("name", IDS)
def test_every_id_speaks_numpy(name):
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
    with pytest.raises(ValueError, match="rgb_array"):
        gymnasium.make_vec("EpisodicCuriosity/MazeSparse-v0", render_mode="human", **SMALL)
