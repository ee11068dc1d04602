"""Curiosity in RLlib: its env runner, and two of them on a local Ray."""

import os
import signal
import time
from functools import partial
from itertools import count

import numpy as np
import pytest
import torch

ray = pytest.importorskip("ray")
pytest.importorskip("ray.rllib")
from ray.rllib.algorithms.algorithm import Algorithm  # noqa: E402
from ray.rllib.algorithms.ppo import PPOConfig  # noqa: E402
from ray.rllib.core.columns import Columns  # noqa: E402
from ray.rllib.core.rl_module.default_model_config import DefaultModelConfig  # noqa: E402
from ray.rllib.core.rl_module.rl_module import RLModuleSpec  # noqa: E402
from ray.rllib.core.rl_module.torch import TorchRLModule  # noqa: E402
from ray.rllib.env.single_agent_env_runner import SingleAgentEnvRunner  # noqa: E402
from ray.tune.registry import register_env  # noqa: E402

import episodic_curiosity as ec  # noqa: E402
from episodic_curiosity.adapters.rllib import (  # noqa: E402
    CuriosityConnector,
    Refits,
    add_curiosity,
    find_connector,
)
from episodic_curiosity.adapters.views import FromInfo  # noqa: E402
from episodic_curiosity.testing.adapters import (  # noqa: E402
    NUM_ENVS,
    ONLINE,
    AdapterConformance,
    Paid,
    curiosity,
    play,
)
from episodic_curiosity.testing.clockwork import Clockwork, Spy, reward_of  # noqa: E402
from tests.adapters.test_page import CODE  # noqa: E402

# Ray and RLlib use what they and others have deprecated.
pytestmark = pytest.mark.filterwarnings(
    "ignore::DeprecationWarning",
    "ignore::ResourceWarning",
    "ignore:.*Overriding environment rllib-single-agent-env-v0:UserWarning",
)
NUM_RUNNERS = 2


class Scripted(TorchRLModule):
    """Acts as it is told."""

    action = np.zeros(NUM_ENVS, np.int64)

    def _forward_exploration(self, batch, **_):  # noqa: ARG002
        return {Columns.ACTIONS: torch.from_numpy(self.action)}


class RunnerLoop:
    """RLlib's env runner, a step at a time."""

    def __init__(self, envs, make_connector):
        numbers = count()
        config = (
            PPOConfig()
            .environment(lambda _: envs[next(numbers)]())
            .env_runners(num_env_runners=0, num_envs_per_env_runner=NUM_ENVS)
            .rl_module(rl_module_spec=RLModuleSpec(module_class=Scripted))
        )
        config.env_runners(env_to_module_connector=lambda *_: make_connector())
        self.runner = SingleAgentEnvRunner(config=config)
        self.connector = find_connector(self.runner)
        self.curiosity = self.connector.curiosity

    def reset(self):
        self.runner.sample(num_timesteps=0, force_reset=True)

    def step(self, action):
        self.runner.module.action = action
        parts, stepped = np.zeros((3, NUM_ENVS)), np.zeros(NUM_ENVS, bool)
        for episode in self.runner.sample(num_timesteps=1, explore=True):
            row = int(episode.get_observations(-1)[0])
            info = episode.get_infos(-1)
            parts[:, row] = episode.get_rewards(-1), info["task_reward"], info["bonus"]
            stepped[row] = True
        return Paid(*parts, stepped)

    def close(self):
        self.runner.stop()


class TestRLlib(AdapterConformance):
    def make(self, envs, bonus, **options):
        make = partial(
            CuriosityConnector, make_bonus=lambda _: bonus, num_envs=NUM_ENVS, **options
        )
        return RunnerLoop(envs, make)

    def test_a_refit_clears_the_memories(self, new):
        bonus, central = curiosity(online=ONLINE), curiosity(online=ONLINE)
        loop = new(bonus)
        refits = Refits(
            central.fitting,
            1,
            lambda: loop.connector.set_weights(central.r_network.state_dict()),
        )
        play(loop, 8)
        assert refits.learn({0: loop.connector.take()}) == {"r_network_fits": 0.0}
        assert (bonus.memory.count > 0).all()
        play(loop, 16, begin=False)
        assert "r_network_accuracy" in refits.learn({0: loop.connector.take()})
        assert loop.connector.take() is None
        assert (bonus.memory.count == 0).all()
        assert bonus.r_network.fitted
        play(loop, begin=False)
        assert (bonus.memory.count > 0).all()


def test_positions_from_infos():
    oracle = ec.GridOracle(NUM_ENVS, episode_steps=5, cell=1.0)
    make = partial(
        CuriosityConnector,
        make_bonus=lambda _: oracle,
        num_envs=NUM_ENVS,
        view=FromInfo("position"),
    )
    loop = RunnerLoop([partial(Clockwork, env) for env in range(NUM_ENVS)], make)
    for transitions in play(loop):
        assert {round(transition.bonus, 6) for transition in transitions} == {0.052469}
    loop.close()


def test_a_bonus_that_would_learn_apart_is_refused():
    icm = ec.ICM((4,), NUM_ENVS, num_actions=4, observation_dtype=torch.float32)
    with pytest.raises(ValueError, match="an EpisodicCuriosity or learn nothing, got ICM"):
        CuriosityConnector(make_bonus=lambda _: icm, num_envs=NUM_ENVS)
    both = ec.ECRND(ec.RNetwork((4,)), NUM_ENVS)
    with pytest.raises(ValueError, match="an EpisodicCuriosity or learn nothing, got ECRND"):
        CuriosityConnector(make_bonus=lambda _: both, num_envs=NUM_ENVS)


def test_a_connector_s_own_state_leaves_its_memories():
    bonus, shared = curiosity(online=ONLINE), []
    refits = Refits(bonus.fitting, 1, lambda: shared.append(True))
    connector = CuriosityConnector(
        make_bonus=lambda _: curiosity(online=ONLINE), num_envs=NUM_ENVS
    )
    assert connector.merge_states([connector.get_state()] * 2) == {"refits": None}
    connector.refits = refits
    connector.set_state(connector.get_state())
    assert not shared
    other = connector.get_state()
    first = next(iter(other["refits"]["r_network"]))
    other["refits"] = {
        "r_network": other["refits"]["r_network"]
        | {first: bonus.r_network.state_dict()[first] + 1},
        "num_fits": 4,
    }
    connector.set_state(other)
    assert shared == [True]
    assert bonus.fitting.num_fits == 4
    assert torch.equal(bonus.r_network.state_dict()[first], other["refits"]["r_network"][first])


def test_unequal_shares_are_recorded_in_their_rows():
    """Two runners of three environments, of which the second one has seen less."""
    bonus = ec.EpisodicCuriosity(ec.RNetwork((4,)), 2 * NUM_ENVS, online=ONLINE_OF_ALL)
    refits = Refits(bonus.fitting, 2, lambda: None)
    connectors = []
    for calls in (5, 3):
        make = partial(CuriosityConnector, make_bonus=make_bonus, num_envs=NUM_ENVS)
        loop = RunnerLoop([partial(Clockwork, env) for env in range(NUM_ENVS)], make)
        play(loop, calls)
        connectors.append(loop.connector)
        loop.close()
    refits.learn({row: each.take() for row, each in enumerate(connectors)})
    newest = bonus.fitting.recorded.newest()
    assert newest.first.shape == (6, 2 * NUM_ENVS)  # a reset and five steps
    time, env = torch.full((2 * NUM_ENVS,), 5), torch.arange(2 * NUM_ENVS)
    assert newest.views(time, env)[:, 0].tolist() == [0, 1, 2, 0, 1, 2]
    for env in range(NUM_ENVS):
        seen = newest.views(torch.arange(6), torch.full((6,), env))
        assert newest.first[:, env].tolist() == (seen[:, 2] == 0).tolist()  # time 0
    # The shorter ones begin later, after two empty steps.
    assert newest.first[:3, NUM_ENVS:].all()
    assert newest.views(torch.tensor([2]), torch.tensor([4]))[0, 1:3].tolist() == [0, 0]


# Refits after 96 steps, of two runners with three environments each.
ONLINE_OF_ALL = ec.OnlineConfig(refit_every=96, history=192, fit=ONLINE.fit)


def make_bonus(num_envs):
    return ec.EpisodicCuriosity(
        ec.RNetwork((4,)),
        num_envs,
        alpha=1.0,
        beta=1.0,
        memory_capacity=4,
        online=ONLINE_OF_ALL,
    )


@pytest.fixture(scope="module")
def local_ray():
    ray.init(num_cpus=NUM_RUNNERS + 1, include_dashboard=False, log_to_driver=False)
    register_env("clockwork", lambda context: Clockwork(context.worker_index))
    yield
    ray.shutdown()


def tiny_config(make=make_bonus):
    config = (
        PPOConfig()
        .environment("clockwork")
        .env_runners(num_env_runners=NUM_RUNNERS, num_envs_per_env_runner=NUM_ENVS)
        .env_runners(rollout_fragment_length=10)
        .training(train_batch_size_per_learner=60, minibatch_size=30, num_epochs=1)
        .training(use_kl_loss=False)
        .rl_module(model_config=DefaultModelConfig(fcnet_hiddens=[8]))
    )
    return add_curiosity(config, make)


def on_runners(algorithm, function):
    return algorithm.env_runner_group.foreach_env_runner(function, local_env_runner=False)


def weights_of(env_runner):
    network = find_connector(env_runner).curiosity.bonus.r_network
    return [part.clone() for part in network.state_dict().values()]


def assert_equal_weights(algorithm):
    wanted = find_connector(algorithm.env_runner).refits.r_network.state_dict().values()
    everyone = on_runners(algorithm, weights_of)
    assert len(everyone) == NUM_RUNNERS
    for found in everyone:
        for one, other in zip(found, wanted, strict=True):
            torch.testing.assert_close(one, other, rtol=0, atol=0, equal_nan=True)


@pytest.mark.slow
@pytest.mark.usefixtures("local_ray")
class TestOnRay:
    @pytest.fixture
    def algorithm(self):
        algorithm = tiny_config().build_algo()
        yield algorithm
        algorithm.stop()

    def test_runners_share_one_r_network(self, algorithm):
        assert_equal_weights(algorithm)
        before = on_runners(algorithm, weights_of)[0]
        fits = [algorithm.train()["curiosity"]["r_network_fits"] for _ in range(4)]
        assert fits[0] == 0
        assert fits[-1] >= 1
        assert_equal_weights(algorithm)
        after = on_runners(algorithm, weights_of)[0]
        assert any(not torch.equal(*both) for both in zip(before, after, strict=True))
        paid = [algorithm.train()["env_runners"] for _ in range(3)][-1]
        parts = paid["episode_task_return_mean"], paid["episode_bonus_return_mean"]
        assert parts[1] != 0
        assert paid["episode_return_mean"] == pytest.approx(sum(parts), rel=1e-6)

    def test_a_checkpoint_continues_with_the_r_network(self, algorithm, tmp_path):
        for _ in range(3):
            algorithm.train()
        algorithm.save_to_path(tmp_path)
        saved = find_connector(algorithm.env_runner).refits
        algorithm.stop()  # its runners hold all cores
        other = Algorithm.from_checkpoint(tmp_path)
        restored = find_connector(other.env_runner).refits
        assert restored.fitting.num_fits == saved.fitting.num_fits >= 1
        for name, part in saved.r_network.state_dict().items():
            assert torch.equal(part, restored.r_network.state_dict()[name])
        assert_equal_weights(other)
        other.train()
        other.stop()

    def test_a_killed_runner_is_replaced_and_gets_the_weights(self, algorithm):
        for _ in range(3):
            algorithm.train()
        assert find_connector(algorithm.env_runner).refits.fitting.num_fits >= 1
        pids = on_runners(algorithm, lambda _: os.getpid())
        os.kill(pids[0], signal.SIGKILL)
        replaced = wait_for_runners(algorithm, lambda: pids[0])
        assert pids[1] in replaced
        assert_equal_weights(algorithm)
        for _ in range(3):
            result = algorithm.train()
        assert result["curiosity"]["r_network_fits"] >= 2
        assert_equal_weights(algorithm)

    def test_the_script_of_the_documentation(self, tmp_path, monkeypatch):
        monkeypatch.setenv("TMPDIR", str(tmp_path))
        (script,) = (code for code in CODE if "rllib" in code)
        added = [line for line in script.splitlines() if line.endswith("  # curiosity")]
        assert 5 <= len(added) <= 10
        names = {"total_steps": 5_000}
        exec(script.replace("algorithm.stop()", ""), names)
        refits = find_connector(names["algorithm"].env_runner).refits
        assert refits.fitting.steps_since_fit >= 4_000  # of an iteration
        names["algorithm"].stop()

    def test_nothing_is_paid_in_evaluation(self):
        config = tiny_config(Spy)
        config.evaluation(evaluation_interval=1, evaluation_num_env_runners=0)
        algorithm = config.build_algo()
        result = algorithm.train()
        evaluated = result["evaluation"]["env_runners"]
        assert evaluated["episode_bonus_return_mean"] == 0
        assert evaluated["episode_return_mean"] == evaluated["episode_task_return_mean"]
        # A Spy pays 1/2 for the first step of an episode.
        assert result["env_runners"]["episode_bonus_return_mean"] >= 0.5
        assert "curiosity" not in result
        algorithm.stop()


def wait_for_runners(algorithm, lost):
    """Trains until all runners are there again; the ids of their processes."""
    for _ in range(20):
        algorithm.train()
        pids = on_runners(algorithm, lambda _: os.getpid())
        if len(pids) == NUM_RUNNERS and lost() not in pids:
            return pids
        time.sleep(1)
    raise AssertionError("the runner was not replaced")


def test_the_bonus_reaches_the_returns():
    """Without Ray's processes: the local runner alone."""
    spy = Spy(NUM_ENVS)
    make = partial(CuriosityConnector, make_bonus=lambda _: spy, num_envs=NUM_ENVS, weight=2.0)
    loop = RunnerLoop([partial(Clockwork, env) for env in range(NUM_ENVS)], make)
    episodes = loop.runner.sample(num_timesteps=30, explore=True)
    for episode in (each for each in episodes if each.is_done):
        env, number, length, _ = episode.get_observations(-1).tolist()
        task = sum(reward_of(int(env), int(number), t) for t in range(1, int(length) + 1))
        assert episode.get_return() == task + length * (length + 1) / 2
    loop.close()
