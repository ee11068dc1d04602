"""Curiosity in Gymnasium's vector environments, in every autoreset mode."""

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium.spaces import Box, Dict, Discrete
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv
from gymnasium.wrappers.vector import DictInfoToList, RecordEpisodeStatistics

import episodic_curiosity as ec
from episodic_curiosity.adapters.gymnasium import CuriousVectorEnv
from episodic_curiosity.adapters.views import FromInfo, channels_first
from episodic_curiosity.testing.adapters import (
    NUM_ENVS,
    STEPS,
    AdapterConformance,
    Paid,
    curiosity,
    play,
)
from episodic_curiosity.testing.clockwork import Clockwork, Spy, length_of, reward_of


class GymnasiumLoop:
    """A user's loop."""

    def __init__(self, envs):
        self.envs, self.curiosity, self.close = envs, envs.curiosity, envs.close
        self.mode = envs.metadata["autoreset_mode"]
        self.ended = np.zeros(NUM_ENVS, bool)

    def reset(self):
        self.envs.reset(seed=0)

    def step(self, action):
        if self.mode == AutoresetMode.DISABLED and self.ended.any():
            self.envs.reset(options={"reset_mask": self.ended})
        _, reward, terminated, truncated, info = self.envs.step(action)
        is_reset = self.ended & (self.mode == AutoresetMode.NEXT_STEP)
        self.ended = terminated | truncated
        return Paid(reward, info["task_reward"], info["bonus"], ~is_reset)


class TestNextStep(AdapterConformance):
    mode = AutoresetMode.NEXT_STEP

    def make(self, envs, bonus, **options):
        envs = SyncVectorEnv(envs, autoreset_mode=self.mode)
        return GymnasiumLoop(CuriousVectorEnv(envs, bonus, **options))


class TestSameStep(TestNextStep):
    mode = AutoresetMode.SAME_STEP


class TestDisabled(TestNextStep):
    mode = AutoresetMode.DISABLED


MODES = pytest.mark.parametrize("mode", list(AutoresetMode))


def finished_returns(spy):
    """The task's returns of the episodes that a spy saw to their end."""
    return [
        sum(reward_of(env, episode, time) for time in range(1, len(seen)))
        for env, episodes in enumerate(spy.seen)
        for episode, seen in enumerate(episodes)
        if len(seen) == length_of(env, episode) + 1
    ]


def clockworks(mode=AutoresetMode.SAME_STEP, count=NUM_ENVS):
    envs = [lambda env=env: Clockwork(env) for env in range(count)]
    return SyncVectorEnv(envs, autoreset_mode=mode)


@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP])
def test_the_recorded_return_is_the_tasks(mode):
    recorded = RecordEpisodeStatistics(clockworks(mode))
    envs = CuriousVectorEnv(recorded, Spy(NUM_ENVS))
    envs.reset()
    for _ in range(STEPS):
        envs.step(np.zeros(NUM_ENVS, np.int64))
    assert sorted(recorded.return_queue) == sorted(finished_returns(envs.curiosity.bonus))


@MODES
def test_positions_come_from_the_info(mode):
    """Time is a position's last coordinate: each step enters a new cell, the first does not."""
    oracle = ec.GridOracle(NUM_ENVS, episode_steps=5, cell=1.0)
    envs = CuriousVectorEnv(clockworks(mode), oracle, view=FromInfo("position"))
    for transitions in play(GymnasiumLoop(envs)):
        assert len(transitions) > 20
        for transition in transitions:
            assert transition.bonus == pytest.approx(0.0524691)


class Tuples(gymnasium.Wrapper):
    """Positions are tuples, and actions are numbered from 1."""

    action_space = Discrete(4, start=1)

    def reset(self, **options):
        observation, info = self.env.reset(**options)
        return observation, {"position": tuple(info["position"].tolist())}

    def step(self, action):
        *rest, info = self.env.step(action - 1)
        return *rest, {"position": tuple(info["position"].tolist())}


@MODES
def test_positions_may_be_tuples(mode):
    def bonuses(wrap):
        envs = [lambda env=env: wrap(Clockwork(env)) for env in range(NUM_ENVS)]
        envs = SyncVectorEnv(envs, autoreset_mode=mode)
        oracle = ec.GridOracle(NUM_ENVS, episode_steps=5, cell=1.0)
        return play(GymnasiumLoop(CuriousVectorEnv(envs, oracle, view=FromInfo("position"))))

    assert bonuses(Tuples) == bonuses(lambda env: env)


def test_actions_are_numbered_from_0():
    def paid(wrap, start):
        envs = [lambda env=env: wrap(Clockwork(env)) for env in range(NUM_ENVS)]
        icm = ec.ICM((4,), NUM_ENVS, num_actions=4)
        envs = CuriousVectorEnv(SyncVectorEnv(envs), icm)
        envs.reset()
        taken = [np.full(NUM_ENVS, start + number % 4) for number in range(9)]
        return [envs.step(actions)[-1]["bonus"].tolist() for actions in taken]

    assert paid(Tuples, 1) == paid(lambda env: env, 0)


def test_an_info_without_the_key_is_refused():
    oracle = ec.GridOracle(NUM_ENVS, episode_steps=5, cell=1.0)
    envs = CuriousVectorEnv(clockworks(), oracle, view=FromInfo("place"))
    with pytest.raises(ValueError, match="info must have 'place', got position, _position"):
        envs.reset()


class Pictures(gymnasium.ObservationWrapper):
    """A dict with a byte frame, (height, width, channels), of the observation."""

    def __init__(self, env):
        super().__init__(env)
        self.observation_space = Dict({"image": Box(0, 255, (9, 8, 4), np.uint8)})

    def observation(self, observation):
        return {"image": np.broadcast_to(observation + 1, (9, 8, 4)).astype(np.uint8)}


@MODES
def test_frames_in_a_dict(mode):
    spied = []

    def view(observation):
        frames = channels_first(observation["image"])  # (N, 4, 6, 5)
        spied.append(frames.shape)
        return frames[:, :, 2, 3].astype(np.float32) - 1

    envs = [lambda env=env: Pictures(Clockwork(env)) for env in range(NUM_ENVS)]
    envs = CuriousVectorEnv(SyncVectorEnv(envs, autoreset_mode=mode), Spy(NUM_ENVS), view=view)
    for transitions in play(GymnasiumLoop(envs)):
        assert all(transition.bonus > 0 for transition in transitions)
    for env, episodes in enumerate(envs.curiosity.bonus.seen):
        for episode, seen in enumerate(episodes[:-1]):
            assert [row[:3] for row in seen] == [
                (env, episode, time) for time in range(length_of(env, episode) + 1)
            ]
    assert all(shape[1:] == (4, 9, 8) for shape in spied)


@pytest.mark.slow  # starts processes
@MODES
def test_environments_in_processes(mode):
    envs = [lambda env=env: Clockwork(env) for env in range(NUM_ENVS)]
    loops = [
        GymnasiumLoop(CuriousVectorEnv(vector_env(envs, autoreset_mode=mode), curiosity()))
        for vector_env in (SyncVectorEnv, AsyncVectorEnv)
    ]
    here, elsewhere = map(play, loops)
    assert here == elsewhere
    loops[1].close()


@pytest.mark.parametrize("options", [None, {"reset_mask": np.array([True, False, True])}])
def test_a_reset_instead_of_the_reset_on_the_next_step(options):
    """The first episode of environment 0 is one step long."""
    envs = CuriousVectorEnv(clockworks(AutoresetMode.NEXT_STEP), Spy(NUM_ENVS))
    envs.reset()
    envs.step(np.zeros(NUM_ENVS, np.int64))
    envs.reset(options=options)
    _, _, _, _, info = envs.step(np.zeros(NUM_ENVS, np.int64))
    assert info["bonus"].tolist() == [0.5, 0.5 if options is None else 1.0, 0.5]


def fitted() -> ec.RNetwork:
    r_network = ec.RNetwork((4,))
    r_network.fitted.fill_(True)
    return r_network


BONUSES = {
    "ec": lambda: ec.EpisodicCuriosity(fitted(), NUM_ENVS),
    "icm": lambda: ec.ICM((4,), NUM_ENVS, num_actions=4, observation_dtype=torch.float32),
    "constant": lambda: ec.ConstantBonus(NUM_ENVS),
    "normalised": lambda: ec.NormalisedBonus(ec.EpisodicCuriosity(fitted(), NUM_ENVS)),
    "rnd": lambda: ec.RND((4,), NUM_ENVS),
    "ngu": lambda: ec.NGU((4,), NUM_ENVS, num_actions=4),
    "e3b": lambda: ec.E3B((4,), NUM_ENVS, num_actions=4),
    "noveld": lambda: ec.NovelD((4,), NUM_ENVS),
    "etd": lambda: ec.ETD((4,), NUM_ENVS),
    "ec-rnd": lambda: ec.ECRND(fitted(), NUM_ENVS),
}


@MODES
@pytest.mark.parametrize("name", BONUSES)
def test_every_bonus_of_the_package(name, mode):
    envs = CuriousVectorEnv(clockworks(mode), BONUSES[name]())
    loop = GymnasiumLoop(envs)
    play(loop)
    metrics = envs.curiosity.learn() | envs.curiosity.metrics()
    assert metrics.get("icm_forward_loss", 1.0) > 0
    play(loop, begin=False)


def test_infos_can_become_a_list():
    envs = DictInfoToList(CuriousVectorEnv(clockworks(), Spy(NUM_ENVS)))
    envs.reset()
    _, _, _, _, infos = envs.step(np.zeros(NUM_ENVS, np.int64))
    assert [info["bonus"] for info in infos] == [0.5] * NUM_ENVS


def test_what_cannot_be_wrapped_is_refused():
    with pytest.raises(TypeError, match=r"VectorEnv, got Clockwork: .* gymnasium.make_vec"):
        CuriousVectorEnv(Clockwork(0), Spy(1))
    envs = clockworks()
    envs.metadata["autoreset_mode"] = "sometimes"
    with pytest.raises(ValueError, match="must be an AutoresetMode, got 'sometimes'"):
        CuriousVectorEnv(envs, Spy(NUM_ENVS))
    with pytest.raises(TypeError, match="bonus must be a Bonus, got RNetwork"):
        CuriousVectorEnv(clockworks(), ec.RNetwork((4,)))
    with pytest.raises(ValueError, match="weight must be a finite number"):
        CuriousVectorEnv(clockworks(), Spy(NUM_ENVS), weight=float("nan"))
    envs = [lambda: Pictures(Clockwork(0))]
    with pytest.raises(TypeError, match=r"view must return an array .*, got dict: give view="):
        CuriousVectorEnv(SyncVectorEnv(envs), Spy(1))
    with pytest.raises(TypeError, match="NumpyToTorch goes around CuriousVectorEnv"):
        CuriousVectorEnv(clockworks(), Spy(NUM_ENVS), view=torch.from_numpy).reset()
