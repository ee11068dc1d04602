"""The conformance suite of adapters: curiosity in another library's loop, on toy environments.

Subclass `AdapterConformance` with a name that begins with Test, and define `make`: a loop that
steps `Clockwork` environments through the adapter. Shapes: N environments, T steps.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
import pytest
import torch

from episodic_curiosity.adapters.attached import AttachedBonus
from episodic_curiosity.bonus.base import Bonus
from episodic_curiosity.bonus.curiosity import EpisodicCuriosity
from episodic_curiosity.reachability.fit_config import FitConfig
from episodic_curiosity.reachability.network import RNetwork
from episodic_curiosity.reachability.online import OnlineConfig
from episodic_curiosity.reachability.pairs import PairsConfig
from episodic_curiosity.support.saving import LoadError
from episodic_curiosity.testing.clockwork import (
    NO_ACTION,
    NUM_ACTIONS,
    Array,
    Clockwork,
    Spy,
    length_of,
    reward_of,
)

NUM_ENVS = 3
STEPS = 40  # calls of `Loop.step`
# The smallest refit: every 16 steps of an environment.
ONLINE = OnlineConfig(
    refit_every=16 * NUM_ENVS,
    history=32 * NUM_ENVS,
    fit=FitConfig(
        iterations=2, batch_size=4, pairs=PairsConfig(k=1, gamma=1, sampler="uniform")
    ),
)


class Paid(NamedTuple):
    """The data of one call that a loop's policy learns from, all (N,)."""

    reward: Array  # the sum
    task_reward: Array
    bonus: Array
    stepped: Array  # bool; false where the call was a reset alone


class Loop(Protocol):
    """NUM_ENVS environments of another library, with curiosity."""

    curiosity: AttachedBonus

    def reset(self) -> None: ...
    def step(self, action: Array) -> Paid:
        """Steps with (N,) int64 actions; where an episode has ended, the next one begins."""
        ...

    def close(self) -> None: ...


class Transition(NamedTuple):
    """One step of one environment, in the order of Paid."""

    reward: float
    task_reward: float
    bonus: float


class AdapterConformance:
    """The tests; a subclass says how a library steps."""

    def make(
        self, envs: Sequence[Callable[[], Clockwork]], bonus: Bonus, **options: Any
    ) -> Loop:
        """Makes the loop; options are the adapter's `weight` and `training`."""
        raise NotImplementedError

    @pytest.fixture
    def new(self) -> Iterator[Callable[..., Loop]]:
        """Makes loops that are closed after the test."""
        loops: list[Loop] = []

        def make(bonus: Bonus, **options: Any) -> Loop:
            envs = [partial(Clockwork, env) for env in range(NUM_ENVS)]
            loops.append(self.make(envs, bonus, **options))
            return loops[-1]

        yield make
        for loop in loops:
            loop.close()

    def test_every_observation_is_seen_once_and_in_order(self, new: Any) -> None:
        spy = Spy(NUM_ENVS)
        play(new(spy))
        for env, episodes in enumerate(spy.seen):
            assert len(episodes) > 3
            for episode, seen in enumerate(episodes):
                last = (
                    len(seen) - 1 if episode == len(episodes) - 1 else length_of(env, episode)
                )
                assert [view[:3] for view in seen] == [
                    (env, episode, time) for time in range(last + 1)
                ]

    def test_actions_are_those_that_led_to_what_is_seen(self, new: Any) -> None:
        spy = Spy(NUM_ENVS)
        play(new(spy))
        for episodes, actions in zip(spy.seen, spy.actions, strict=True):
            assert all(seen[0][3] == NO_ACTION for seen in episodes)
            assert [view[3] for seen in episodes for view in seen[1:]] == actions
            assert len(set(actions)) == NUM_ACTIONS

    @pytest.mark.parametrize("weight", [1.0, 0.25])
    def test_reward_and_bonus_are_added_and_told_apart(self, new: Any, weight: float) -> None:
        for env, transitions in enumerate(play(new(Spy(NUM_ENVS), weight=weight))):
            assert len(transitions) > 20
            for found, wanted in zip(transitions, transitions_of(env, weight), strict=False):
                assert found == wanted

    def test_bonuses_are_those_of_a_plain_loop(self, new: Any) -> None:
        """Equal in every library, because all are compared with the same."""
        paid = play(new(curiosity()))
        wanted = bonuses_of_a_plain_loop(curiosity())
        for env, transitions in enumerate(paid):
            found = [transition.bonus for transition in transitions]
            np.testing.assert_allclose(found, wanted[env][: len(found)], atol=1e-6)
            assert len({round(bonus, 4) for bonus in found}) > 10

    def test_nothing_is_paid_or_stored_in_evaluation(self, new: Any) -> None:
        spy = Spy(NUM_ENVS)
        loop = new(spy, training=False)
        for env, transitions in enumerate(play(loop)):
            for found, wanted in zip(transitions, transitions_of(env, 0.0), strict=False):
                assert found == wanted
        assert loop.curiosity.learn() == {}
        assert spy.seen == [[] for _ in range(NUM_ENVS)]
        assert not spy.opened.any()

    def test_after_evaluation_a_row_counts_from_its_next_episode_on(self, new: Any) -> None:
        spy = Spy(NUM_ENVS)
        loop = new(spy)
        play(loop, 7)
        loop.curiosity.eval()
        resumed = play(loop, 6, begin=False)
        loop.curiosity.train()
        before = [len(episodes) for episodes in spy.seen]
        resumed = play(loop, STEPS, begin=False)
        for env, episodes in enumerate(spy.seen):
            assert all(seen[0][2] == 0 for seen in episodes)
            unpaid = [found.bonus == 0 for found in resumed[env]].index(False)
            first = episodes[before[env]][0]
            assert resumed[env][unpaid].task_reward == reward_of(env, int(first[1]), 1)

    def test_a_saved_episode_continues(self, new: Any, tmp_path: Path) -> None:
        first, second = new(curiosity()), new(curiosity(), training=False)
        for loop in (first, second):
            play(loop, 9)
        first.curiosity.save(tmp_path)
        wanted = play(first, STEPS, begin=False)
        second.curiosity.train()
        second.curiosity.load(tmp_path)
        assert play(second, STEPS, begin=False) == wanted
        with pytest.raises(LoadError, match="is of another bonus"):
            new(Spy(NUM_ENVS)).curiosity.load(tmp_path)

    def test_a_refit_clears_the_memories(self, new: Any) -> None:
        bonus = curiosity(online=ONLINE)
        loop = new(bonus)
        play(loop, 8)
        assert loop.curiosity.learn() == {}
        assert (bonus.memory.count > 0).all()
        play(loop, 16, begin=False)
        assert "r_network_accuracy" in loop.curiosity.learn()
        assert (bonus.memory.count == 0).all()
        play(loop, STEPS, begin=False)
        assert (bonus.memory.count > 0).all()

    def test_a_bonus_for_other_environments_is_refused(self, new: Any) -> None:
        with pytest.raises(ValueError, match="must be for 3 environments, got one for 5"):
            new(Spy(5)).reset()
        play(new(Spy(5), training=False), 2)
        other = EpisodicCuriosity(RNetwork((3, 8, 8)), NUM_ENVS)
        with pytest.raises(ValueError, match=r"for views of shape \(3, 8, 8\), got \(4,\)"):
            new(other).reset()


def play(loop: Loop, steps: int = STEPS, *, begin: bool = True) -> list[list[Transition]]:
    """The transitions of each environment."""
    if begin:
        loop.reset()
    found: list[list[Transition]] = [[] for _ in range(NUM_ENVS)]
    for _ in range(steps):
        paid = loop.step(actions_after(found))
        for row in np.flatnonzero(paid.stepped):
            found[row].append(Transition(*(float(part[row]) for part in paid[:3])))
    return found


def actions_after(found: list[list[Any]]) -> Array:
    """Actions (N,) that depend on the number of steps of each environment, without resets."""
    return (np.arange(NUM_ENVS) + [len(each) for each in found]) % NUM_ACTIONS


def transitions_of(env: int, weight: float) -> Iterator[Transition]:
    """The expected pay of an environment's steps if the bonus is a Spy."""
    for episode in count():
        for time in range(1, length_of(env, episode) + 1):
            task_reward, bonus = reward_of(env, episode, time), weight * time / 2
            yield Transition(task_reward + bonus, task_reward, bonus)


def curiosity(online: OnlineConfig | None = None) -> EpisodicCuriosity:
    """Episodic curiosity with random weights, the same at every call."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(5)
        r_network = RNetwork((4,))
    r_network.fitted.fill_(online is None)
    return EpisodicCuriosity(
        r_network, NUM_ENVS, alpha=1.0, beta=1.0, memory_capacity=4, online=online
    )


def bonuses_of_a_plain_loop(bonus: EpisodicCuriosity) -> list[list[float]]:
    """The bonuses of each environment's steps, by `begin` and `bonus` alone."""
    envs = [Clockwork(env) for env in range(NUM_ENVS)]
    bonus.begin(np.stack([env.reset()[0] for env in envs]))
    paid: list[list[float]] = [[] for _ in envs]
    for _ in range(STEPS):
        action = actions_after(paid)
        stepped = [env.step(each) for env, each in zip(envs, action, strict=True)]
        now = bonus.bonus(np.stack([each[0] for each in stepped]), action=action)
        for row, amount in enumerate(now.tolist()):
            paid[row].append(amount)
        ended = np.array([each[2] or each[3] for each in stepped])
        views = [
            env.reset()[0] if is_end else each[0]
            for env, is_end, each in zip(envs, ended, stepped, strict=True)
        ]
        bonus.begin(np.stack(views), where=ended)
    return paid
