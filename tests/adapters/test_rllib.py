"""Curiosity in RLlib: its env runner, and two of them on a local Ray."""

import os
import signal
import time
from functools import partial
from itertools import count
from typing import ClassVar

import numpy as np
import pytest
import torch

ray = pytest.importorskip("ray")
pytest.importorskip("ray.rllib")
from ray.rllib.algorithms.algorithm import Algorithm  # noqa: E402
from ray.rllib.algorithms.ppo import PPOConfig  # noqa: E402
from ray.rllib.callbacks.callbacks import RLlibCallback  # noqa: E402
from ray.rllib.connectors.env_to_module import FlattenObservations  # noqa: E402
from ray.rllib.core.columns import Columns  # noqa: E402
from ray.rllib.core.rl_module.default_model_config import DefaultModelConfig  # noqa: E402
from ray.rllib.core.rl_module.rl_module import RLModuleSpec  # noqa: E402
from ray.rllib.core.rl_module.torch import TorchRLModule  # noqa: E402
from ray.rllib.env.single_agent_env_runner import SingleAgentEnvRunner  # noqa: E402
from ray.rllib.utils import force_list  # noqa: E402
from ray.tune.registry import register_env  # noqa: E402

import episodic_curiosity as ec  # noqa: E402
from episodic_curiosity.adapters import rllib_kept  # noqa: E402
from episodic_curiosity.adapters.rllib import (  # noqa: E402
    CuriosityCallback,
    CuriosityConnector,
    add_curiosity,
    find_connector,
)
from episodic_curiosity.adapters.rllib_central import Central  # noqa: E402
from episodic_curiosity.adapters.views import FromInfo  # noqa: E402
from episodic_curiosity.bonus.copies import LearningCopy  # noqa: E402
from episodic_curiosity.testing.adapters import (  # noqa: E402
    NUM_ENVS,
    ONLINE,
    AdapterConformance,
    Paid,
    actions_after,
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
        bonus = curiosity(online=ONLINE)
        loop = new(bonus)
        central = central_of([loop.connector], curiosity(online=ONLINE))
        play(loop, 8)
        told = learn(central, [loop.connector])
        assert told["r_network_fits"] == 0
        assert told["memory_fill"] == bonus.memory.count.float().mean() / 4
        assert (bonus.memory.count > 0).all()
        play(loop, 16, begin=False)
        assert "r_network_accuracy" in learn(central, [loop.connector])
        assert loop.connector.take().calls is None
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


def runner_loop(make, view=lambda observation: observation):
    make = partial(CuriosityConnector, make_bonus=make, num_envs=NUM_ENVS, view=view)
    return RunnerLoop([partial(Clockwork, env) for env in range(NUM_ENVS)], make)


def central_of(connectors, bonus):
    """Learns for these connectors, which get its first weights."""

    def share(learnt):
        for connector in connectors:
            connector.copy.receive(learnt)

    central = Central(LearningCopy(bonus), len(connectors), share)
    central.share_news()
    return central


def learn(central, connectors):
    return central.learn({row: each.take() for row, each in enumerate(connectors)})


def fitted():
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(5)
        r_network = ec.RNetwork((4,))
    r_network.fitted.fill_(True)
    return r_network


BONUSES = {
    "ec": lambda num_envs: ec.EpisodicCuriosity(fitted(), num_envs),
    "eco": lambda num_envs: ec.EpisodicCuriosity(fitted(), num_envs, online=ONLINE_OF_ALL),
    "icm": lambda num_envs: ec.ICM(
        (4,), num_envs, num_actions=4, observation_dtype=torch.float32
    ),
    "constant": lambda num_envs: ec.ConstantBonus(num_envs),
    "normalised": lambda num_envs: ec.NormalisedBonus(BONUSES["ec"](num_envs)),
    "normalised eco": lambda num_envs: ec.NormalisedBonus(BONUSES["eco"](num_envs)),
    "rnd": lambda num_envs: ec.RND((4,), num_envs),
    "ngu": lambda num_envs: ec.NGU((4,), num_envs, num_actions=4),
    "e3b": lambda num_envs: ec.E3B((4,), num_envs, num_actions=4),
    "noveld": lambda num_envs: ec.NovelD((4,), num_envs),
    "etd": lambda num_envs: ec.ETD((4,), num_envs),
    "ec-rnd": lambda num_envs: ec.ECRND(fitted(), num_envs),
}
FIXED = ("ec", "constant")  # these learn nothing
EPISODE = ("memory", "inverted", "inner.memory")  # parts that last for an episode


def learnt_of(bonus):
    """Copies of what a bonus has learnt, without the sums that only one copy has."""
    return {
        name: part.detach().clone()
        for name, part in bonus.tensors_of(bonus.learnt).items()
        if not name.endswith("past.sums")
    }


def are_equal(one, other):
    assert one.keys() == other.keys()
    return all(  # an accuracy may be NaN
        torch.equal(part.nan_to_num(), other[name].nan_to_num()) for name, part in one.items()
    )


@pytest.mark.parametrize("name", BONUSES)
def test_two_runners_pay_by_what_one_copy_learns(name):
    loops = [runner_loop(BONUSES[name], lambda observation: observation / 8) for _ in range(2)]
    connectors = [loop.connector for loop in loops]
    bonuses = [connector.copy.bonus for connector in connectors]
    central = central_of(connectors, BONUSES[name](2 * NUM_ENVS))
    learning = central.learning.bonus
    before = learnt_of(learning)
    for iteration in range(3):
        for loop in loops:
            play(loop, 20, begin=iteration == 0)
        episodic = [bonus.tensors_of(EPISODE) for bonus in bonuses]
        kept = [{key: part.clone() for key, part in parts.items()} for parts in episodic]
        told = learn(central, connectors)
        is_refit = "r_network_loss" in told
        assert is_refit == ("eco" in name)
        for bonus, parts in zip(bonuses, kept, strict=True):
            assert are_equal(learnt_of(bonus), learnt_of(learning))
            if not is_refit:  # else memories are empty
                assert are_equal(bonus.tensors_of(EPISODE), parts)
    assert are_equal(learnt_of(learning), before) == (name in FIXED)
    assert told["bonus_mean"] != 0
    for loop in loops:
        loop.close()


def test_the_statistics_are_those_of_all_runners():
    """RND whitens by every observation, and knows the deviation of all errors."""
    loops = [runner_loop(BONUSES["rnd"]) for _ in range(2)]
    connectors = [loop.connector for loop in loops]
    central = central_of(connectors, BONUSES["rnd"](2 * NUM_ENVS))
    num_steps = num_seen = num_errors = 0
    for _ in range(3):
        for loop, calls in zip(loops, (20, 7), strict=True):
            play(loop, calls)
        taken = [connector.take() for connector in connectors]
        for part in taken:
            num_seen += int((part.calls.opens | part.calls.stepped).sum())
            num_steps += int(part.calls.stepped.sum())
            num_errors += int(part.statistics["deviation.past"][0])
        central.learn(dict(enumerate(taken)))
    rnd = central.learning.bonus
    assert rnd.distillation.whitening.count == num_seen > num_steps
    assert rnd.deviation.past.sums[0] == num_errors > 0
    assert rnd.deviation.divisor.isfinite()
    for loop in loops:
        assert loop.connector.copy.bonus.deviation.divisor == rnd.deviation.divisor
        loop.close()


def steps_of(connector):
    return connector.take().calls.stepped.sum(axis=0)


def test_what_is_kept_is_bounded():
    """With room for five steps, a runner keeps five of each environment, and what they began
    with, and marks that some are missing.
    """
    make = partial(ec.RND, (4,), num_steps=5)
    loop = runner_loop(make)
    assert loop.connector.copy.bonus.recent is None
    play(loop, 3)
    calls = loop.connector.take().calls
    assert calls.opens[0].all()
    assert len(calls.seen) == 4
    play(loop, 12, begin=False)
    calls = loop.connector.take().calls
    assert calls.seen.shape == (len(calls.action), NUM_ENVS, 4)
    assert calls.action.shape == calls.stepped.shape
    assert calls.stepped.sum(axis=0).min() == 5
    assert calls.stepped[2:].sum(axis=0).min() < 5  # not one call too many
    assert calls.opens[0].all()
    assert not calls.stepped[0].any()
    assert (calls.opens[1:] == (calls.seen[1:, :, 2] == 0)).all()  # where time is 0
    assert (calls.opens ^ calls.stepped).all()
    loop.close()


@pytest.mark.parametrize("kind", [ec.E3B, ec.NGU, ec.ICM])
def test_a_bonus_with_room_for_five_transitions_learns_from_five(kind):
    """The same as one process would learn from, where runners see more in an iteration."""
    make = partial(kind, (4,), num_actions=4, observation_dtype=torch.float32, num_steps=5)
    held = []
    for per_iteration in (17, 1):
        loop = runner_loop(make)
        loop.reset()
        bonus = make(NUM_ENVS)
        central = central_of([loop.connector], bonus)
        found = [[] for _ in range(NUM_ENVS)]
        for number in range(1, 18):
            paid = loop.step(actions_after(found))
            for row in np.flatnonzero(paid.stepped):
                found[row].append(None)
            if number % per_iteration == 0:
                central.learning.record(central._side_by_side({0: loop.connector.take().calls}))
        recent = bonus.recent if kind is ec.ICM else bonus.trail.recent
        transitions = recent.take()
        both = torch.cat([transitions.observation, transitions.next_observation], dim=1)
        held.append(sorted(both.tolist()))
        loop.close()
    assert len(held[0]) == 5 * NUM_ENVS
    assert held[0] == held[1]


class Hoarder(Spy):
    """Learns from all that it is shown, and does not say how much that is."""

    learnt = ("remembered",)

    def record(self, now):
        pass

    def learn(self, rollout=None):  # noqa: ARG002
        return {}


def test_a_bonus_without_a_ring_is_bounded_too(monkeypatch):
    loop = runner_loop(Hoarder)
    play(loop, 12)
    every = len(loop.connector.take().calls.seen)
    assert every == 13
    monkeypatch.setattr(rllib_kept, "MOST_BYTES", 5 * NUM_ENVS * 4 * 4)
    short = runner_loop(Hoarder)
    with pytest.warns(RuntimeWarning, match="learns from the newest 5 steps of each env") as w:
        play(short, 30)
    assert len(w) == 1
    assert steps_of(short.connector).min() == 5
    for each in (loop, short):
        each.close()


def test_bonuses_that_cannot_learn_apart_are_refused():
    class Nameless(Spy):
        def learn(self, rollout=None):  # noqa: ARG002
            return {}

    class Forgetful(Nameless):
        learnt = ("remembered",)

    with pytest.raises(ValueError, match="Nameless must name in `learnt` what its `learn`"):
        LearningCopy(Nameless(NUM_ENVS))
    with pytest.raises(ValueError, match="Forgetful must define record, to learn"):
        LearningCopy(Forgetful(NUM_ENVS))


def test_a_connector_s_own_state_is_not_sent_to_runners():
    """RLlib restores the state that it has just asked for: that clears no memories."""
    bonus, shared = curiosity(online=ONLINE), []
    connector = CuriosityConnector(
        make_bonus=lambda _: curiosity(online=ONLINE), num_envs=NUM_ENVS
    )
    assert connector.merge_states([connector.get_state()] * 2) == {"learnt": None}
    connector.central = Central(LearningCopy(bonus), 1, shared.append)
    connector.central.share_news()
    connector.set_state(connector.get_state())
    assert len(shared) == 1
    other = connector.get_state()
    tensors, (name, *_) = other["learnt"]["tensors"], learnt_of(bonus)
    tensors[name] += 1
    other["learnt"]["extra"][""]["num_fits"] = 4
    connector.set_state(other)
    assert [set(news) for news in shared] == [{"r_network"}] * 2
    assert torch.equal(shared[1]["r_network"][name], tensors[name])
    assert bonus.fitting.num_fits == 4
    assert torch.equal(learnt_of(bonus)[name], tensors[name])


def test_unequal_shares_are_recorded_in_their_rows():
    """Two runners of three environments, of which the second one has seen less."""
    bonus = ec.EpisodicCuriosity(ec.RNetwork((4,)), 2 * NUM_ENVS, online=ONLINE_OF_ALL)
    loops = [runner_loop(make_bonus), runner_loop(make_bonus)]
    connectors = [loop.connector for loop in loops]
    for loop, calls in zip(loops, (5, 3), strict=True):
        play(loop, calls)
        loop.close()
    learn(central_of(connectors, bonus), connectors)
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


def test_connectors_of_the_user_may_take_the_environment_alone():
    """RLlib accepts this outdated signature, too."""
    flatten = FlattenObservations()
    for theirs in (lambda env: flatten, lambda env, spaces, device: [flatten]):  # noqa: ARG005
        config = PPOConfig().environment(lambda _: Clockwork(0))
        config.env_runners(env_to_module_connector=theirs, num_envs_per_env_runner=2)
        add_curiosity(config, lambda num_envs: ec.ConstantBonus(num_envs))
        ours, behind = config._env_to_module_connector(None, None, None)
        assert isinstance(ours, CuriosityConnector)
        assert behind is flatten


# Refits after 96 steps, of two runners with three environments each.
ONLINE_OF_ALL = ec.OnlineConfig(refit_every=96, history=192, fit=ONLINE.fit)


def make_bonus(num_envs):
    """ECO with random weights, others in every process."""
    return ec.EpisodicCuriosity(
        ec.RNetwork((4,)),
        num_envs,
        alpha=1.0,
        beta=1.0,
        memory_capacity=4,
        online=ONLINE_OF_ALL,
    )


def make_normalised(num_envs):
    return ec.NormalisedBonus(make_bonus(num_envs))


@pytest.fixture(scope="module")
def local_ray():
    ray.init(num_cpus=NUM_RUNNERS + 1, include_dashboard=False, log_to_driver=False)
    register_env("clockwork", lambda context: Clockwork(context.worker_index))
    yield
    ray.shutdown()


def tiny_config(make, callbacks=()):
    config = (
        PPOConfig()
        .environment("clockwork")
        .env_runners(num_env_runners=NUM_RUNNERS, num_envs_per_env_runner=NUM_ENVS)
        .env_runners(rollout_fragment_length=10)
        .training(train_batch_size_per_learner=60, minibatch_size=30, num_epochs=1)
        .training(use_kl_loss=False)
        .rl_module(model_config=DefaultModelConfig(fcnet_hiddens=[8]))
    )
    # Smaller numbers: the R-network's similarity to large ones can be exactly 1.
    add_curiosity(config, make, view=lambda observation: observation / 8)
    return config.callbacks([*force_list(config.callbacks_class), *callbacks])


def on_runners(algorithm, function):
    return algorithm.env_runner_group.foreach_env_runner(function, local_env_runner=False)


def learnt_by_runner(env_runner):
    return learnt_of(find_connector(env_runner).copy.bonus)


def central_bonus(algorithm):
    return find_connector(algorithm.env_runner).central.learning.bonus


def assert_shared(algorithm):
    """Both runners pay by what the central copy has learnt."""
    everyone = on_runners(algorithm, learnt_by_runner)
    assert len(everyone) == NUM_RUNNERS
    for found in everyone:
        assert are_equal(found, learnt_of(central_bonus(algorithm)))


class Witness(RLlibCallback):
    """Looks at new runners, after curiosity's callback and before they step."""

    remembered: ClassVar[list[int]] = []  # observations in their memories

    def on_env_runners_recreated(self, *, env_runner_group, env_runner_indices, **_):
        Witness.remembered += env_runner_group.foreach_env_runner(
            lambda runner: int(find_connector(runner).copy.bonus.inner.memory.count.sum()),
            local_env_runner=False,
            remote_worker_ids=env_runner_indices,
        )


def attach(env_runner, make):
    """Gives a runner another bonus."""
    connectors = env_runner._env_to_module.connectors
    place = connectors.index(find_connector(env_runner))
    connectors[place] = CuriosityConnector(
        make_bonus=make, num_envs=NUM_ENVS, view=lambda observation: observation / 8
    )


@pytest.mark.slow
@pytest.mark.usefixtures("local_ray")
class TestEveryBonusOnRay:
    @pytest.fixture(scope="class")
    def algorithm(self):
        algorithm = tiny_config(Spy).build_algo()
        yield algorithm
        algorithm.stop()

    @pytest.mark.parametrize("name", BONUSES)
    def test_runners_share_what_is_learnt(self, algorithm, name):
        attach(algorithm.env_runner, BONUSES[name])
        on_runners(algorithm, partial(attach, make=BONUSES[name]))
        CuriosityCallback().on_algorithm_init(algorithm=algorithm)
        assert_shared(algorithm)
        before = learnt_of(central_bonus(algorithm))
        for _ in range(3):
            told = algorithm.train()["curiosity"]
        assert_shared(algorithm)
        assert are_equal(learnt_of(central_bonus(algorithm)), before) == (name in FIXED)
        assert told["bonus_mean"] != 0


@pytest.mark.slow
@pytest.mark.usefixtures("local_ray")
class TestOneAlgorithmOnRay:
    """Its tests follow each other: it takes long to start, and the last one stops it."""

    @pytest.fixture(scope="class")
    def algorithm(self):
        algorithm = tiny_config(make_normalised, [Witness]).build_algo()
        yield algorithm
        algorithm.stop()

    def test_returns_are_told_apart(self, algorithm):
        fits = [algorithm.train()["curiosity"]["r_network_fits"] for _ in range(4)]
        assert fits[0] == 0
        assert fits[-1] >= 1
        assert_shared(algorithm)
        paid = [algorithm.train()["env_runners"] for _ in range(3)][-1]
        parts = paid["episode_task_return_mean"], paid["episode_bonus_return_mean"]
        assert parts[1] != 0
        assert paid["episode_return_mean"] == pytest.approx(sum(parts), rel=1e-6)

    def test_a_killed_runner_begins_anew_with_what_was_learnt(self, algorithm):
        for _ in range(3):
            algorithm.train()
        assert central_bonus(algorithm).inner.fitting.num_fits >= 1
        pids = on_runners(algorithm, lambda _: os.getpid())
        Witness.remembered.clear()
        os.kill(pids[0], signal.SIGKILL)
        replaced = wait_for_runners(algorithm, lambda: pids[0])
        assert pids[1] in replaced
        assert Witness.remembered == [0]
        assert_shared(algorithm)
        algorithm.train()
        # In the rows of its environments, what the new ones saw begins with an episode.
        newest = central_bonus(algorithm).inner.recorded.newest()
        time, env = torch.meshgrid(
            torch.arange(len(newest.first)), torch.arange(NUM_ENVS), indexing="ij"
        )
        views = newest.views(time.flatten(), env.flatten()).view(*time.shape, 4) * 8
        episode, clock = views[..., 1], views[..., 2]
        anew = episode[1:] < episode[:-1]
        assert (anew.sum(dim=0) == 1).all()
        assert newest.first[1:, :NUM_ENVS][anew].all()
        assert (clock[1:][anew] == 0).all()
        for _ in range(3):
            result = algorithm.train()
        assert result["curiosity"]["r_network_fits"] >= 2
        assert_shared(algorithm)

    def test_a_checkpoint_continues_with_what_was_learnt(self, algorithm, tmp_path):
        for _ in range(4):
            algorithm.train()
        algorithm.save_to_path(tmp_path)
        saved = central_bonus(algorithm)
        algorithm.stop()  # its runners hold all cores
        other = Algorithm.from_checkpoint(tmp_path)
        restored = central_bonus(other)
        assert restored.inner.fitting.num_fits == saved.inner.fitting.num_fits >= 1
        assert are_equal(learnt_of(restored), learnt_of(saved))
        assert restored.divisor != 1
        assert torch.equal(restored.deviation.past.sums, saved.deviation.past.sums)
        assert_shared(other)
        other.train()
        other.stop()


@pytest.mark.slow
@pytest.mark.usefixtures("local_ray")
class TestOnRay:
    def test_the_script_of_the_documentation(self, tmp_path, monkeypatch):
        monkeypatch.setenv("TMPDIR", str(tmp_path))
        (script,) = (code for code in CODE if "rllib" in code)
        added = [line for line in script.splitlines() if line.endswith("  # curiosity")]
        assert 5 <= len(added) <= 10
        names = {"total_steps": 4_000}  # an iteration
        exec(script.replace("algorithm.stop()", ""), names)
        fitting = central_bonus(names["algorithm"]).fitting
        assert fitting.steps_since_fit >= 4_000
        names["algorithm"].stop()

    def test_nothing_is_paid_in_evaluation(self):
        config = tiny_config(Spy).env_runners(num_env_runners=0)
        config.evaluation(evaluation_interval=1, evaluation_num_env_runners=0)
        algorithm = config.build_algo()
        result = algorithm.train()
        evaluated = result["evaluation"]["env_runners"]
        assert evaluated["episode_bonus_return_mean"] == 0
        assert evaluated["episode_return_mean"] == evaluated["episode_task_return_mean"]
        # A Spy pays 1/2 for the first step of an episode.
        assert result["env_runners"]["episode_bonus_return_mean"] >= 0.5
        assert result["curiosity"]["bonus_mean"] >= 0.5
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


@pytest.mark.parametrize(
    ("make_bonus", "sentence"),
    [
        (Spy(NUM_ENVS), "make_bonus must be a function .* to a bonus, got Spy"),
        (lambda _: Spy(7), r"make_bonus\(3\) must make a bonus for 3 environments, got"),
    ],
)
def test_what_makes_no_bonus_is_refused_before_runners_start(make_bonus, sentence):
    config = PPOConfig().env_runners(num_envs_per_env_runner=3)
    with pytest.raises((TypeError, ValueError), match=sentence):
        add_curiosity(config, make_bonus)


def test_curiosity_is_added_once():
    config = PPOConfig().env_runners(num_envs_per_env_runner=3)
    add_curiosity(config, Spy)
    with pytest.raises(ValueError, match="add_curiosity must be called once"):
        add_curiosity(config, Spy)


@pytest.mark.slow
@pytest.mark.usefixtures("local_ray")
def test_curiosity_that_is_added_too_early_is_refused_when_the_algorithm_is_built():
    config = PPOConfig().environment("clockwork")
    add_curiosity(config, Spy)
    config.env_runners(num_env_runners=0, num_envs_per_env_runner=3)
    with pytest.raises(ValueError, match="curiosity was added") as error:
        config.build_algo()
    assert str(error.value) == (
        "curiosity was added for 1 environments per env runner, the config has 3: call "
        "add_curiosity after config.env_runners"
    )


@pytest.mark.slow
@pytest.mark.usefixtures("local_ray")
def test_a_bonus_for_other_views_is_refused_when_the_algorithm_is_built():
    config = tiny_config(lambda num_envs: ec.RND((17,), num_envs))
    config.env_runners(num_env_runners=0)
    with pytest.raises(ValueError, match=r"the bonus was made for views of shape \(17,\), got"):
        config.build_algo()


def test_callbacks_of_the_user_stay_and_come_after_curiosity():
    config = PPOConfig().callbacks(Witness, on_algorithm_init=print)
    add_curiosity(config, Spy)
    assert config.callbacks_class == [CuriosityCallback, Witness]
    assert config.callbacks_on_algorithm_init[0] is print


@pytest.mark.slow
@pytest.mark.usefixtures("local_ray")
def test_callbacks_that_replace_curiosity_s_are_refused_when_the_algorithm_is_built():
    config = PPOConfig().environment("clockwork").env_runners(num_env_runners=0)
    add_curiosity(config, Spy)
    config.callbacks(Witness)
    with pytest.raises(
        ValueError, match=r"call add_curiosity after config\.callbacks"
    ) as error:
        config.build_algo()
    assert "must contain CuriosityCallback, got Witness" in str(error.value)
