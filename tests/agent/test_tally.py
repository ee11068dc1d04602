"""What is told of episodes, beside a count by hand: 40 steps, 3 environments."""

import math

import pytest
import torch
from torch import Tensor

from episodic_curiosity.agent import tally as tallying
from episodic_curiosity.agent.tally import EpisodeTally
from episodic_curiosity.worlds.base import Step, WorldSpec
from tests.agent.scripted import NUM_ACTIONS, Scripted, script

NUM_STEPS, NUM_ENVS = 40, 3
GENERATOR = torch.Generator().manual_seed(5)
STEPS = script(NUM_STEPS, NUM_ENVS)
ACTIONS = torch.randint(NUM_ACTIONS, (NUM_STEPS, NUM_ENVS), generator=GENERATOR)
BONUSES = torch.randn(NUM_STEPS, NUM_ENVS, generator=GENERATOR)


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    """Episodes count as they end, unless a test says otherwise."""
    monkeypatch.setattr(tallying, "LONGEST_WAIT", 1)


def tally_of(*, whole_at_start: bool = True, **options) -> EpisodeTally:
    return EpisodeTally(Scripted(STEPS, **options).spec, whole_at_start=whole_at_start)


def play(tally: EpisodeTally, start: int = 0, stop: int = NUM_STEPS) -> None:
    for time in range(start, stop):
        tally.add(STEPS[time + 1], ACTIONS[time], BONUSES[time])


def cell(position: Tensor | None, env: int) -> tuple[int, ...]:
    assert position is not None
    return tuple(int(axis / 30.0) for axis in position[env].tolist())


def by_hand(whole_at_start: bool, wait: int = 1) -> dict[str, float]:
    """Means over the episodes that ended, one environment after the other.

    Those count whose beginning is a multiple of `wait` steps ago, at their end or later.
    """
    ended = []
    for env in range(NUM_ENVS):
        reward = bonus = length = 0.0
        began = 0
        cells, counts = {cell(STEPS[0].position, env)}, whole_at_start
        for time in range(NUM_STEPS):
            step = STEPS[time + 1]
            reward += step.reward[env].item()
            bonus += BONUSES[time, env].item()
            length += 1
            if step.first[env]:
                cells.add(cell(step.final_position, env))
                if counts and began + wait * math.ceil(length / wait) <= NUM_STEPS:
                    ended.append((reward, bonus, length, float(len(cells))))
                reward = bonus = length = 0.0
                cells, counts, began = set(), True, time + 1
            cells.add(cell(step.position, env))
    means = [sum(column) / len(ended) for column in zip(*ended, strict=True)]
    names = ("reward", "bonus", "length", "coverage")
    return {"episodes": len(ended)} | dict(zip(names, means, strict=True))


@pytest.mark.parametrize("wait", [1, 5, 12])
@pytest.mark.parametrize("whole_at_start", [True, False])
def test_beside_a_count_by_hand(whole_at_start, wait, monkeypatch):
    monkeypatch.setattr(tallying, "LONGEST_WAIT", wait)
    tally = tally_of(whole_at_start=whole_at_start)
    tally.open(STEPS[0])
    play(tally)
    told = tally.take()
    wanted = by_hand(whole_at_start, wait)
    assert {name: told[name] for name in wanted} == pytest.approx(wanted)
    for action in range(NUM_ACTIONS):
        share = ACTIONS.eq(action).float().mean().item()
        assert told[f"action/{action}"] == pytest.approx(share)


def test_episodes_that_begin_in_mid_clock_do_not_count():
    counts = [by_hand(whole_at_start)["episodes"] for whole_at_start in (True, False)]
    assert counts[0] == counts[1] + NUM_ENVS


def test_early_successes_wait_for_those_that_began_with_them(monkeypatch):
    """Episodes of at most 5 steps; one that succeeds pays 50 and ends."""
    monkeypatch.setattr(tallying, "LONGEST_WAIT", 1_800)
    spec = WorldSpec(
        task="test/goals",
        num_envs=3,
        device=torch.device("cpu"),
        observation_shape=(1,),
        observation_dtype=torch.float32,
        view_shape=(1,),
        view_dtype=torch.float32,
        num_actions=2,
        episode_steps=5,
    )
    tally = EpisodeTally(spec, whole_at_start=True)
    none = torch.zeros(3, dtype=torch.bool)

    def step(rewards, first):
        first = torch.tensor(first, dtype=torch.bool)
        seen = torch.zeros(3, 1)
        return Step(seen, seen, torch.tensor(rewards), first, first, none)

    tally.open(step([0.0, 0.0, 0.0], [1, 1, 1]))
    told = []
    for rewards, first in [
        ([0.0, 0.0, 0.0], [0, 0, 0]),
        ([50.0, 1.0, 0.0], [1, 0, 0]),  # a success; it begins again after 2 steps
        ([50.0, 0.0, 0.0], [1, 0, 0]),  # and again after 3
        ([0.0, 0.0, 0.0], [0, 0, 0]),
        ([0.0, 0.0, 0.0], [0, 1, 1]),  # the others are truncated after 5 steps
        ([0.0, 0.0, 0.0], [0, 0, 0]),
        ([0.0, 0.0, 0.0], [0, 0, 0]),
        ([2.0, 0.0, 0.0], [1, 0, 0]),  # and so is the third of the first
    ]:
        tally.add(step(rewards, first), torch.zeros(3, dtype=torch.int64), torch.zeros(3))
        metrics = tally.take()
        told.append((metrics["episodes"], metrics.get("reward")))
    nothing = (0.0, None)
    assert told == [nothing] * 4 + [(3.0, 17.0), nothing, (1.0, 50.0), (1.0, 2.0)]


def test_nothing_is_told_twice_and_there_are_no_means_of_no_episodes():
    tally = tally_of()
    tally.open(STEPS[0])
    play(tally)
    tally.take()
    shares = {f"action/{action}": 0.0 for action in range(NUM_ACTIONS)}
    assert tally.take() == {"episodes": 0.0} | shares


def test_episodes_that_were_under_way_are_given_up_at_a_new_beginning():
    tally, fresh = tally_of(), tally_of()
    tally.open(STEPS[0])
    play(tally)
    tally.take()
    for other in (tally, fresh):
        other.open(STEPS[0])
        play(other)
    assert tally.take() == fresh.take()


def test_what_a_world_does_not_have_is_not_told():
    tally = tally_of(positions=False)
    tally.open(STEPS[0])
    play(tally)
    told = tally.take()
    assert "reward" in told
    assert "coverage" not in told

    tally = tally_of(continuous=True)
    tally.open(STEPS[0])
    tally.add(STEPS[1], torch.zeros(NUM_ENVS, 2), BONUSES[0])
    assert not any(name.startswith("action") for name in tally.take())


def test_it_goes_on_from_a_state():
    tally, other = tally_of(), tally_of()
    tally.open(STEPS[0])
    play(tally, 0, 17)
    state = tally.state_dict()
    play(tally, 17)
    other.load_state_dict(state)
    play(other, 17)
    assert other.take() == tally.take()


def test_a_state_of_something_else_is_refused():
    state = tally_of().state_dict()
    with pytest.raises(ValueError, match="a state has actions, began, cells"):
        tally_of().load_state_dict({"running": state["running"]})
    with pytest.raises(ValueError, match="the state's running"):
        tally_of().load_state_dict(state | {"running": state["running"][:2]})
