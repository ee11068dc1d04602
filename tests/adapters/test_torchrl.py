"""Curiosity in TorchRL: partial resets, specs, collectors and advantages."""

from functools import partial
from operator import itemgetter

import numpy as np
import pytest
import torch
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from tensordict.nn import TensorDictModule
from torch import nn
from torchrl.collectors import Collector
from torchrl.data.tensor_specs import Composite, Unbounded
from torchrl.envs import Compose, ParallelEnv, RewardSum, SerialEnv, TransformedEnv
from torchrl.envs.libs.gym import GymEnv, GymWrapper, default_info_dict_reader
from torchrl.envs.utils import check_env_specs
from torchrl.objectives.value import GAE

import episodic_curiosity as ec
from episodic_curiosity.adapters.torchrl import CuriosityTransform
from episodic_curiosity.testing.adapters import (
    NUM_ENVS,
    AdapterConformance,
    Paid,
    curiosity,
    play,
    transitions_of,
)
from episodic_curiosity.testing.clockwork import NUM_ACTIONS, Clockwork, Spy
from tests.adapters.test_gymnasium import Pictures, finished_returns

POSITION = Composite(position=Unbounded((3,)))
EVERYWHERE = np.ones(NUM_ENVS, bool)


def wrapped(make, categorical=True):
    return GymWrapper(make(), categorical_action_encoding=categorical)


def clockworks(batched=SerialEnv, count=NUM_ENVS, categorical=True):
    envs = [partial(wrapped, partial(Clockwork, env), categorical) for env in range(count)]
    return batched(count, envs)


class TorchRLLoop:
    """The calls that TorchRL's collectors make."""

    def __init__(self, env, categorical=True):
        self.env = env
        self.curiosity = env.transform.curiosity
        self.categorical = categorical

    def reset(self):
        self.now = self.env.reset()

    def step(self, action):
        action = torch.from_numpy(action)
        if not self.categorical:
            action = nn.functional.one_hot(action, NUM_ACTIONS)
        stepped, self.now = self.env.step_and_maybe_reset(self.now.set("action", action))
        parts = (stepped["next", name] for name in ("reward", "task_reward", "bonus"))
        return Paid(*(part.flatten().numpy() for part in parts), EVERYWHERE)

    def close(self):
        if not self.env.is_closed:  # it opens with the first reset
            self.env.close()


class TestTorchRL(AdapterConformance):
    categorical = True

    def make(self, envs, bonus, **options):
        made = [partial(wrapped, env, self.categorical) for env in envs]
        transform = CuriosityTransform(bonus, **options)
        env = TransformedEnv(SerialEnv(len(made), made), transform)
        return TorchRLLoop(env, self.categorical)


class TestOneHotActions(TestTorchRL):
    categorical = False


def curious(bonus, batched=SerialEnv, **options):
    return TransformedEnv(clockworks(batched), CuriosityTransform(bonus, **options))


def test_what_is_written_is_declared():
    env = curious(Spy(NUM_ENVS))
    check_env_specs(env)
    assert set(env.full_reward_spec.keys()) == {"reward", "task_reward", "bonus"}
    rollout = env.rollout(6, break_when_any_done=False)
    assert rollout["next", "bonus"].shape == (NUM_ENVS, 6, 1)
    assert "bonus" not in set(rollout.keys())


class Value(nn.Module):
    def forward(self, observation):
        return observation.sum(-1, keepdim=True) / 8


def collected(env, frames):
    """The batches of TorchRL's collector with random actions, each (N, T)."""
    collector = Collector(env, frames_per_batch=frames, total_frames=3 * frames)
    yield from collector
    collector.shutdown()


def test_the_bonus_reaches_the_advantages():
    """With gamma = lambda = 0 an advantage is reward + bonus - value."""
    value = TensorDictModule(Value(), in_keys=["observation"], out_keys=["state_value"])
    advantage = GAE(gamma=0.0, lmbda=0.0, value_network=value)
    found = [[] for _ in range(NUM_ENVS)]
    for batch in collected(curious(Spy(NUM_ENVS), weight=0.25), 7 * NUM_ENVS):
        advantage(batch)
        sums = (batch["advantage"] + batch["state_value"]).squeeze(-1)  # (N, T)
        for row, part in zip(found, sums.tolist(), strict=True):
            row.extend(part)
    for env, row in enumerate(found):
        wanted = [each.reward for each, _ in zip(transitions_of(env, 0.25), row, strict=False)]
        np.testing.assert_allclose(row, wanted, rtol=1e-6)
        assert len(row) == 21


def test_returns_of_the_task_and_of_the_bonus_are_summed_apart():
    spy = Spy(NUM_ENVS)
    sums = RewardSum(in_keys=["task_reward", "bonus"])
    env = TransformedEnv(clockworks(), Compose(CuriosityTransform(spy), sums))
    batch = torch.cat(list(collected(env, 7 * NUM_ENVS)), dim=1)
    ended = batch["next", "done"]
    returns = batch["next", "episode_task_reward"][ended].tolist()
    assert sorted(returns) == sorted(finished_returns(spy))
    lengths = batch["next", "observation"][..., 2:3][ended]
    bonuses = batch["next", "episode_bonus"][ended]
    torch.testing.assert_close(bonuses, lengths * (lengths + 1) / 4)


def test_memories_travel_with_the_environments_state():
    first, second = curious(curiosity()), curious(curiosity())
    loops = [TorchRLLoop(env) for env in (first, second)]
    play(loops[0], 9)
    loops[1].curiosity.bonus.r_network.fitted.fill_(False)
    play(loops[1], 9)
    second.load_state_dict(first.state_dict())
    assert play(loops[0], begin=False) == play(loops[1], begin=False)


def positioned(env):
    env = GymWrapper(Clockwork(env), categorical_action_encoding=True)
    return env.set_info_dict_reader(default_info_dict_reader(["position"], POSITION))


def test_positions_are_a_key():
    oracle = ec.GridOracle(NUM_ENVS, episode_steps=5, cell=1.0)
    envs = SerialEnv(NUM_ENVS, [partial(positioned, env) for env in range(NUM_ENVS)])
    transform = CuriosityTransform(oracle, view=itemgetter("position"))
    for transitions in play(TorchRLLoop(TransformedEnv(envs, transform))):
        assert {round(transition.bonus, 6) for transition in transitions} == {0.052469}


@pytest.mark.parametrize("mode", [AutoresetMode.SAME_STEP, AutoresetMode.DISABLED])
def test_a_vector_environment_of_gymnasium(mode):
    envs = SyncVectorEnv(
        [partial(Clockwork, env) for env in range(NUM_ENVS)], autoreset_mode=mode
    )
    envs = GymWrapper(envs, categorical_action_encoding=True)
    env = TransformedEnv(envs, CuriosityTransform(Spy(NUM_ENVS)), auto_unwrap=True)
    rollout = env.rollout(20, break_when_any_done=False)
    time = rollout["next", "observation"][..., 2:3]
    torch.testing.assert_close(rollout["next", "bonus"], time / 2)
    assert (time.amax(dim=1) > 2).all()


def test_a_single_environment_is_a_batch_of_one():
    spy = Spy(1)
    env = TransformedEnv(wrapped(partial(Clockwork, 2)), CuriosityTransform(spy))
    rollout = env.rollout(12, break_when_any_done=False)
    found = rollout["next", "reward"].flatten().tolist()
    wanted = [each.reward for each, _ in zip(transitions_of(2, 1.0), found, strict=False)]
    assert found == wanted


def test_continuous_actions():
    icm = ec.ICM((3,), 2, action_shape=(1,), observation_dtype=torch.float32)
    envs = SerialEnv(2, partial(GymEnv, "Pendulum-v1"))
    rollout = TransformedEnv(envs, CuriosityTransform(icm)).rollout(6)
    assert torch.equal(icm.recent.action[:6], rollout["action"].transpose(0, 1))
    assert (rollout["next", "bonus"] > 0).all()


def test_a_view_is_needed_where_observations_have_other_names():
    env = wrapped(lambda: Pictures(Clockwork(0)))
    env = TransformedEnv(env, CuriosityTransform(ec.ConstantBonus(1)))
    with pytest.raises(ValueError, match=r"where there is no 'observation', got .*image"):
        env.reset()


def test_a_transform_within_the_workers_is_refused():
    def make():
        return TransformedEnv(wrapped(partial(Clockwork, 0)), CuriosityTransform(Spy(1)))

    with pytest.raises(ValueError, match="must be around ParallelEnv or SerialEnv, got it in"):
        SerialEnv(2, make).reset()


@pytest.mark.slow  # starts processes
def test_environments_in_processes():
    here, elsewhere = (
        TorchRLLoop(curious(curiosity(), batched)) for batched in (SerialEnv, ParallelEnv)
    )
    assert play(here) == play(elsewhere)
    elsewhere.close()


def test_what_is_no_bonus_and_no_view_is_refused():
    with pytest.raises(TypeError, match="bonus must be a Bonus, got NoneType"):
        CuriosityTransform(None)
    with pytest.raises(TypeError, match="view must be a function, got str"):
        CuriosityTransform(Spy(NUM_ENVS), view="observation")
    env = clockworks()
    transform = CuriosityTransform(
        Spy(NUM_ENVS), view=lambda tensordict: tensordict["observation"].numpy()
    )
    with pytest.raises(TypeError, match="what view returns must be a Tensor, got ndarray"):
        TransformedEnv(env, transform).reset()
