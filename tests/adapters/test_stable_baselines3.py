"""Curiosity in Stable-Baselines3: what is paid, learnt, logged and saved."""

import numpy as np
import pytest
import torch
from stable_baselines3 import DQN, PPO
from stable_baselines3.common.callbacks import BaseCallback, EvalCallback
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.logger import Logger
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import (
    DummyVecEnv,
    SubprocVecEnv,
    VecMonitor,
    VecNormalize,
    VecTransposeImage,
)

import episodic_curiosity as ec
from episodic_curiosity.adapters.stable_baselines3 import (
    CuriosityCallback,
    CuriousCheckpointCallback,
    CuriousVecEnv,
    find_curious,
)
from episodic_curiosity.adapters.views import FromInfo, channels_first
from episodic_curiosity.testing.adapters import (
    NUM_ENVS,
    ONLINE,
    AdapterConformance,
    Paid,
    curiosity,
    play,
)
from episodic_curiosity.testing.clockwork import Clockwork, Spy
from tests.adapters.test_gymnasium import Pictures, finished_returns

EVERYWHERE = np.ones(NUM_ENVS, bool)


class StableBaselinesLoop:
    """The calls that SB3's algorithms make."""

    def __init__(self, env):
        self.env, self.curiosity = env, find_curious(env).curiosity
        self.reset, self.close = env.reset, env.close

    def step(self, action):
        _, reward, _, infos = self.env.step(action)
        told = [[info[name] for info in infos] for name in ("task_reward", "bonus")]
        return Paid(reward, *map(np.array, told), EVERYWHERE)


class TestStableBaselines3(AdapterConformance):
    def make(self, envs, bonus, **options):
        return StableBaselinesLoop(CuriousVecEnv(DummyVecEnv(envs), bonus, **options))


@pytest.mark.slow  # starts processes
def test_environments_in_processes():
    envs = [lambda env=env: Clockwork(env) for env in range(NUM_ENVS)]
    loops = [
        StableBaselinesLoop(CuriousVecEnv(vec_env(envs), curiosity()))
        for vec_env in (DummyVecEnv, SubprocVecEnv)
    ]
    here, elsewhere = (np.array(play(loop)) for loop in loops)  # (N, T, 3)
    np.testing.assert_allclose(here, elsewhere, rtol=1e-6)  # rewards of float32 and of float64
    loops[1].close()


def clockworks(wrapper=Monitor, count=NUM_ENVS):
    return DummyVecEnv([lambda env=env: wrapper(Clockwork(env)) for env in range(count)])


def ppo(env, **options):
    return PPO("MlpPolicy", env, n_steps=8, batch_size=8, n_epochs=1, device="cpu", **options)


def test_the_bonus_reaches_the_advantages():
    """With gamma = lambda = 0 an advantage is reward + bonus - value."""
    found = []

    class Look(BaseCallback):
        def _on_step(self):
            return True

        def _on_rollout_end(self):
            buffer = self.model.rollout_buffer
            assert (buffer.observations[0, :, :3] == [[n, 0, 0] for n in range(NUM_ENVS)]).all()
            found.append(buffer.advantages + buffer.values)  # (T, N)

    env = CuriousVecEnv(clockworks(), Spy(NUM_ENVS), weight=0.25)
    model = ppo(env, gamma=0.0, gae_lambda=0.0, seed=0)
    model.learn(8 * NUM_ENVS, callback=[CuriosityCallback(), Look()])
    wanted = play(
        StableBaselinesLoop(CuriousVecEnv(clockworks(), Spy(NUM_ENVS), weight=0.25)), 8
    )
    wanted = [[transition.reward for transition in row] for row in wanted]
    np.testing.assert_allclose(found[0].T, wanted, rtol=1e-6)


class Recorded(Logger):
    """Keeps what SB3 would print."""

    def __init__(self):
        super().__init__(None, [])
        self.dumped = []

    def dump(self, step=0):
        self.dumped.append(dict(self.name_to_value))
        super().dump(step)


@pytest.mark.parametrize("outer", [lambda env: env, VecNormalize])
def test_reward_and_bonus_are_logged_apart(outer, monkeypatch):
    monkeypatch.setattr("episodic_curiosity.adapters.stable_baselines3.LOG_EVERY", 24)
    env = CuriousVecEnv(clockworks(), Spy(NUM_ENVS), weight=0.5)
    model = ppo(outer(env))
    model.set_logger(logged := Recorded())
    model.learn(48, callback=CuriosityCallback())
    returns = finished_returns(env.curiosity.bonus)
    last = logged.dumped[-1]
    assert last["rollout/ep_task_reward_mean"] == pytest.approx(np.mean(returns))
    assert last["rollout/ep_rew_mean"] == pytest.approx(np.mean(returns))  # Monitor's
    lengths = [len(seen) - 1 for row in env.curiosity.bonus.seen for seen in row]
    bonuses = [sum(0.25 * time for time in range(1, length + 1)) for length in lengths]
    assert len(env.episode_returns) == len(returns) < len(lengths)
    assert 0 < last["rollout/ep_bonus_mean"] < max(bonuses)
    assert last["curiosity/bonus_mean"] == pytest.approx(last_mean(env.curiosity.bonus, 24))


def last_mean(spy, steps):
    """The mean bonus, before its weight, of the newest steps of all environments."""
    times = [[time for seen in row for time in range(1, len(seen))] for row in spy.seen]
    newest = np.concatenate([row[-steps // NUM_ENVS :] for row in times])
    return newest.mean() / 2


def test_eco_is_refitted_between_rollouts():
    """The first rollout is 24 of the 48 steps that a refit needs."""
    told = []

    class Look(BaseCallback):
        def _on_step(self):
            return True

        def _on_rollout_start(self):
            told.append(
                (self.num_timesteps, bonus.fitting.num_fits, int(bonus.memory.count.sum()))
            )

    bonus = curiosity(online=ONLINE)
    model = ppo(CuriousVecEnv(clockworks(), bonus))
    model.learn(24 * 5, callback=[CuriosityCallback(), Look()])
    steps, fits, remembered = zip(*told, strict=True)
    assert steps == (0, 24, 48, 72, 96)
    assert fits == (0, 0, 1, 1, 2)  # begun episodes count as steps of the replay, too
    assert [count == 0 for count in remembered] == [False, False, True, False, True]


def test_nothing_is_paid_where_a_policy_is_evaluated():
    spy = Spy(NUM_ENVS)
    model = ppo(CuriousVecEnv(clockworks(), spy))
    held_out = CuriousVecEnv(clockworks(count=2), spy, training=False)
    returns, _ = evaluate_policy(
        model, held_out, n_eval_episodes=4, return_episode_rewards=True
    )
    # The first two episodes of environments 0 and 1: of lengths 1, 3, 4 and 1.
    assert sorted(returns) == sorted([1, 5 + 6 + 7, 17 + 18 + 19 + 20, 21])
    assert spy.seen == [[]] * NUM_ENVS


def test_a_checkpoint_has_curiosity_beside_the_model(tmp_path):
    env = CuriousVecEnv(clockworks(), curiosity(online=ONLINE))
    callbacks = [
        CuriosityCallback(),
        CuriousCheckpointCallback(save_freq=20, save_path=str(tmp_path), name_prefix="agent"),
    ]
    ppo(env).learn(24 * 3, callback=callbacks)
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"agent_60_steps.zip", "agent_60_steps.curiosity"}

    fresh = CuriousVecEnv(clockworks(), curiosity(online=ONLINE))
    fresh.curiosity.load(tmp_path / "agent_60_steps.curiosity")
    assert fresh.curiosity.bonus.fitting.num_fits == 1
    assert fresh.curiosity.bonus.r_network.fitted
    model = PPO.load(tmp_path / "agent_60_steps.zip", env=fresh, device="cpu")
    model.learn(24, callback=CuriosityCallback(), reset_num_timesteps=False)
    assert model.num_timesteps == 84


def test_dqn_stores_the_sum_of_reward_and_bonus():
    spy = Spy(NUM_ENVS)
    env = CuriousVecEnv(clockworks(), spy)
    model = DQN("MlpPolicy", env, buffer_size=300, learning_starts=12, device="cpu")
    model.learn(60, callback=CuriosityCallback())
    replay = model.replay_buffer
    times = replay.next_observations[
        : replay.pos, :, 2
    ]  # the last observation, not the next first
    rewards = replay.rewards[: replay.pos]
    envs, episodes = replay.observations[: replay.pos, :, :2].transpose(2, 0, 1)
    np.testing.assert_allclose(rewards, 16 * envs + 4 * episodes + times + times / 2)
    assert len(times) == 20


def test_positions_come_from_the_infos():
    oracle = ec.GridOracle(NUM_ENVS, episode_steps=5, cell=1.0)
    env = CuriousVecEnv(clockworks(), oracle, view=FromInfo("position"))
    for transitions in play(StableBaselinesLoop(env)):
        assert {round(transition.bonus, 6) for transition in transitions} == {0.052469}
    env = CuriousVecEnv(clockworks(), oracle, view=FromInfo("place"))
    with pytest.raises(ValueError, match="infos must have 'place', got none in row 0"):
        env.reset()


def test_continuous_actions():
    icm = ec.ICM((3,), 2, action_shape=(1,), observation_dtype=torch.float32)
    env = CuriousVecEnv(make_vec_env("Pendulum-v1", n_envs=2), icm)
    ppo(env, seed=0).learn(32, callback=CuriosityCallback())
    assert icm.recent.action[:16].abs().sum() > 0
    assert icm.metrics()["bonus_mean"] > 0
    assert icm.learn()["icm_forward_loss"] > 0


def picture(observation):
    return channels_first(observation["image"])


@pytest.mark.parametrize(
    ("inner", "view"), [(lambda env: env, picture), (VecTransposeImage, None)]
)
def test_frames_before_and_after_sb3_transposes_them(inner, view):
    r_network = ec.RNetwork((4, 9, 8))
    r_network.fitted.fill_(True)
    bonus = ec.EpisodicCuriosity(r_network, NUM_ENVS)
    env = CuriousVecEnv(
        inner(clockworks(wrapper=Pictures)),
        bonus,
        view=view or (lambda observation: observation["image"]),
    )
    torch.manual_seed(0)
    for transitions in play(StableBaselinesLoop(env)):
        assert len({transition.bonus for transition in transitions}) > 5
    with pytest.raises(ValueError, match=r"made for views of shape \(4, 9, 8\), got "):
        CuriousVecEnv(VecTransposeImage(clockworks(wrapper=Pictures)), bonus, view=picture)


def test_wrappers_in_the_wrong_order_are_refused():
    with pytest.raises(ValueError, match="VecNormalize must be around CuriousVecEnv, got"):
        CuriousVecEnv(VecNormalize(clockworks()), Spy(NUM_ENVS))
    model = ppo(VecMonitor(CuriousVecEnv(clockworks(wrapper=lambda env: env), Spy(NUM_ENVS))))
    with pytest.raises(ValueError, match="VecMonitor must be inside CuriousVecEnv, got"):
        model.learn(24, callback=CuriosityCallback())
    with pytest.raises(ValueError, match="must have a CuriousVecEnv, got DummyVecEnv"):
        ppo(clockworks()).learn(24, callback=CuriosityCallback())
    with pytest.raises(TypeError, match=r"must be a VecEnv, got Clockwork: .* make_vec_env"):
        CuriousVecEnv(Clockwork(0), Spy(1))


def test_evaluation_beside_vec_normalize_needs_both_wrappers():
    def wrapped(**options):
        return CuriousVecEnv(clockworks(), Spy(NUM_ENVS), **options)

    model = ppo(VecNormalize(wrapped()))
    both = VecNormalize(wrapped(training=False), training=False, norm_reward=False)
    model.learn(48, callback=[CuriosityCallback(), EvalCallback(both, eval_freq=2)])
    assert both.obs_rms.mean.tolist() == model.get_vec_normalize_env().obs_rms.mean.tolist()
    alone = VecNormalize(clockworks(), training=False, norm_reward=False)
    with pytest.raises(AssertionError, match="not being wrapped the same way"):
        model.learn(48, callback=[CuriosityCallback(), EvalCallback(alone, eval_freq=2)])


def test_a_monitor_inside_logs_the_tasks_return():
    env = CuriousVecEnv(VecMonitor(clockworks(wrapper=lambda env: env)), Spy(NUM_ENVS))
    model = ppo(env)
    model.learn(48, callback=CuriosityCallback())
    recorded = [info["r"] for info in model.ep_info_buffer]
    assert sorted(recorded) == sorted(finished_returns(env.curiosity.bonus))


def test_one_curious_environment_around_another_is_refused():
    env = CuriousVecEnv(make_vec_env("CartPole-v1", 2), ec.ConstantBonus(2))
    with pytest.raises(ValueError, match="must be there once"):
        CuriousVecEnv(env, ec.ConstantBonus(2))
