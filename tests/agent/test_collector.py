"""Rollouts beside a loop by hand: T = 5 steps, N = 3 environments, H = 2 value heads."""

import pytest
import torch
from torch import Tensor

from episodic_curiosity.agent import tally as tallying
from episodic_curiosity.agent.collector import STREAM, Collector
from episodic_curiosity.agent.network import Agent
from episodic_curiosity.support.randomness import random_bits, seed_words
from episodic_curiosity.worlds.base import Rollout, Step, can_step_in_two
from tests.agent.scripted import NUM_ACTIONS, ByPlace, Scripted, script
from tests.support import fake_graphs

NUM_STEPS, NUM_ENVS, NUM_VALUES = 5, 3, 2
NUM_ROLLOUTS = 4
SEED = 3


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    """Episodes count as they end."""
    monkeypatch.setattr(tallying, "LONGEST_WAIT", 1)


def agent_for(world: Scripted) -> Agent:
    torch.manual_seed(0)
    is_continuous = not world.spec.num_actions
    agent = Agent(
        (4,),
        2 if is_continuous else NUM_ACTIONS,
        continuous=is_continuous,
        num_values=NUM_VALUES,
    )
    torch.nn.init.normal_(agent.policy_head.weight)  # so that actions differ
    return agent


def collector_of(world: Scripted, bonus: ByPlace | None = None, **options) -> Collector:
    bonus = bonus or ByPlace(NUM_ENVS)
    return Collector(world, agent_for(world), bonus, NUM_STEPS, seed=SEED, **options)


def steps_of(**options) -> list[Step]:
    return script(NUM_ROLLOUTS * NUM_STEPS, NUM_ENVS, **options)


def copied(rollout: Rollout) -> Rollout:
    return Rollout(*(None if field is None else field.clone() for field in rollout))


def play(collector: Collector, num_rollouts: int = NUM_ROLLOUTS) -> list[Rollout]:
    return [copied(collector.collect()) for _ in range(num_rollouts)]


@torch.no_grad()
def by_hand(agent: Agent, steps: list[Step], finals: list[Tensor | None]) -> list[Rollout]:
    """The rollouts of a script, one step of one environment after the other."""
    rollouts = []
    for start in range(0, len(steps) - 1, NUM_STEPS):
        shape = (NUM_STEPS, NUM_ENVS)
        kept = {name: torch.zeros(shape) for name in ("log_prob", "reward", "bonus")}
        kept["action"] = torch.zeros(shape, dtype=torch.int64)
        kept["terminated"] = torch.zeros(shape, dtype=torch.bool)
        kept["final_value"] = torch.zeros(*shape, NUM_VALUES)
        seen = steps[start : start + NUM_STEPS + 1]
        kept["observation"] = torch.stack([step.observation for step in seen])
        kept["first"] = torch.stack([step.first for step in seen])
        kept["value"] = torch.stack([agent(step.observation).value for step in seen])
        for t in range(NUM_STEPS):
            after, final = seen[t + 1], finals[start + t + 1]
            for env in range(NUM_ENVS):
                draw = random_bits(*seed_words(SEED), STREAM, start + t, torch.tensor([env]))
                decision = agent.decide(seen[t].observation[env : env + 1], draw)
                kept["action"][t, env] = decision.action
                kept["log_prob"][t, env] = decision.log_prob
                kept["reward"][t, env] = after.reward[env]
                kept["bonus"][t, env] = 0.0 if after.first[env] else 0.1 * after.view[env, 0]
                kept["terminated"][t, env] = after.terminated[env]
                if after.truncated[env]:
                    kept["final_value"][t, env] = agent(final[env : env + 1]).value
        rollouts.append(Rollout(**kept))
    return rollouts


def assert_close(found: Rollout, wanted: Rollout) -> None:
    for name, tensor in wanted._asdict().items():
        if tensor is not None:
            torch.testing.assert_close(getattr(found, name), tensor, msg=name)


@pytest.mark.parametrize("final", ["observation", "snapshot"])
def test_beside_a_loop_by_hand(final):
    steps = steps_of(final=final)
    assert any(step.terminated.any() for step in steps)
    assert any(step.truncated.any() for step in steps)
    finals = [
        step.final_observation
        if step.final_snapshot is None
        else step.final_snapshot.view(torch.float32)
        for step in steps
    ]
    world = Scripted(steps, redraws=final == "snapshot")
    collector = collector_of(world)
    collector.reset()
    rollouts = play(collector)
    for found, wanted in zip(rollouts, by_hand(collector.agent, steps, finals), strict=True):
        assert_close(found, wanted)
    taken = torch.cat([rollout.action for rollout in rollouts])
    assert torch.equal(torch.stack(world.actions), taken)
    assert len(taken.unique()) == NUM_ACTIONS


@pytest.mark.parametrize("in_two", [False, True])
@pytest.mark.parametrize("continuous", [False, True])
@pytest.mark.parametrize("needs_views", [False, True])
def test_graphs_around_a_world_that_the_cpu_steps_change_nothing(
    continuous, needs_views, in_two, monkeypatch
):
    def played() -> tuple[list[Rollout], dict[str, float]]:
        world = Scripted(steps_of(), continuous=continuous, positions=False, in_two=in_two)
        collector = collector_of(world, ByPlace(NUM_ENVS, needs_views))
        collector.reset()
        return play(collector), collector.tally.take()

    (wanted, tallied), asked = played(), []
    fake_graphs.install(monkeypatch)
    monkeypatch.setattr(
        "episodic_curiosity.agent.collector.graph_device",
        lambda device, can_capture: (
            asked.append(can_capture) or (device if can_capture else None)
        ),
    )
    found, found_tally = played()
    assert asked == [False, True]  # of the whole step, and of what goes around the world
    for rollout, other in zip(found, wanted, strict=True):
        for name, tensor in other._asdict().items():
            if tensor is not None:
                assert torch.equal(getattr(rollout, name), tensor), name
    assert found_tally == tallied


@pytest.mark.parametrize("redraws", [False, True])
def test_a_world_in_two_parts_is_paid_for_while_it_simulates(redraws):
    def played(in_two: bool) -> tuple[list[Rollout], dict[str, float], list[str], ByPlace]:
        world = Scripted(steps_of(), redraws=redraws, in_two=in_two)
        bonus = ByPlace(NUM_ENVS, needs_views=True)
        pay = bonus.pay
        bonus.pay = lambda now: world.calls.append("pay") or pay(now)
        collector = collector_of(world, bonus)
        collector.reset()
        return play(collector), collector.tally.take(), world.calls, bonus

    wanted, tallied, _, bonus = played(in_two=False)
    found, found_tally, calls, late_bonus = played(in_two=True)
    for now, late in zip(bonus.shown[1:], late_bonus.shown[1:], strict=True):
        assert torch.equal(now.action, late.action)  # that led to what is seen
    for rollout, other in zip(found, wanted, strict=True):
        for field, tensor in zip(rollout, other, strict=True):
            assert (field is None and tensor is None) or torch.equal(field, tensor)
    assert found_tally == tallied
    # The reset pays for nothing, the last step of a rollout is paid for at its end.
    rollout = ["begin", "end"] + (NUM_STEPS - 1) * ["begin", "pay", "end"] + ["pay"]
    assert calls == ["pay"] + NUM_ROLLOUTS * rollout


class Doubled(Scripted):
    """Pays twice, in `step` alone: it does not define the two parts."""

    def step(self, actions: Tensor) -> Step:
        step = super().step(actions)
        return step._replace(reward=2 * step.reward)


def test_a_world_whose_step_is_another_one_is_stepped_by_it():
    worlds = Scripted(steps_of(), in_two=True), Doubled(steps_of(), in_two=True)
    assert [can_step_in_two(world) for world in worlds] == [True, False]
    rewards = []
    for world in worlds:
        collector = collector_of(world)
        collector.reset()
        (rollout,) = play(collector, 1)
        rewards.append(rollout.reward)
    assert torch.equal(rewards[1], 2 * rewards[0])
    worlds[0].step = worlds[1].step  # replaced in this object alone
    assert not can_step_in_two(worlds[0])


def test_a_world_can_be_stepped_again_after_an_error_of_the_bonus():
    world, bonus = Scripted(steps_of(), in_two=True), ByPlace(NUM_ENVS)
    collector = collector_of(world, bonus)
    collector.reset()
    pay, bonus.pay = bonus.pay, lambda _: 1 / 0
    with pytest.raises(ZeroDivisionError):
        collector.collect()
    assert world.calls == ["begin", "end", "begin", "end"]
    bonus.pay = pay
    collector.reset()
    play(collector, 1)


@pytest.mark.parametrize("reports_last", [True, False])
def test_coverage_is_the_same_where_a_graph_records_the_steps(reports_last):
    steps = steps_of()
    if not reports_last:
        steps = [step._replace(final_position=None) for step in steps]

    def covered(held_in: torch.device | None) -> float:
        collector = collector_of(Scripted(steps))
        collector._around_world = held_in
        collector.reset()
        play(collector)
        return collector.tally.take()["coverage"]

    assert covered(torch.device("cpu")) == covered(None)


def test_without_bootstrap_nothing_follows_a_time_out():
    collector = collector_of(Scripted(steps_of()), bootstrap=False)
    collector.reset()
    rollouts = play(collector)
    assert any(rollout.truncated.any() for rollout in rollouts)
    assert not any(rollout.final_value.any() for rollout in rollouts)


def test_continuous_actions_are_clipped_for_the_world_and_the_bonus_alone():
    bonus, world = ByPlace(NUM_ENVS), Scripted(steps_of(), continuous=True)
    collector = collector_of(world, bonus)
    collector.reset()
    (rollout,) = play(collector, 1)
    assert rollout.action.shape == (NUM_STEPS, NUM_ENVS, 2)
    assert rollout.action.abs().max() > 1
    assert torch.equal(torch.stack(world.actions), rollout.action.clamp(-1, 1))
    assert [now.action for now in bonus.shown[1:]] == world.actions
    with torch.no_grad():
        policy = collector.agent(rollout.observation[:-1].flatten(0, 1)).policy
        log_prob = policy.log_prob(rollout.action.flatten(0, 1))
    torch.testing.assert_close(rollout.log_prob.flatten(), log_prob)


def test_the_bonus_is_shown_every_step_once_and_the_action_that_led_there():
    bonus, steps = ByPlace(NUM_ENVS), steps_of()
    world = Scripted(steps)
    collector = collector_of(world, bonus)
    collector.reset()
    play(collector)
    actions = [None, *world.actions]
    for now, step, action in zip(bonus.shown, steps, actions, strict=True):
        assert now.seen is step.view
        assert now.action is action
        assert torch.equal(now.opens, step.first)
        assert torch.equal(now.stepped, ~step.first)


@pytest.mark.parametrize("redraws", [False, True])
def test_what_curiosity_saw_is_kept_beside_the_observation(redraws):
    steps = steps_of()
    world = Scripted(steps, redraws=redraws)
    collector = collector_of(world, ByPlace(NUM_ENVS, needs_views=True))
    collector.reset()
    for number, rollout in enumerate(play(collector)):
        assert (rollout.view is None) == redraws
        assert (rollout.snapshot is None) != redraws
        views = world.redraw(rollout.snapshot) if redraws else rollout.view
        seen = steps[number * NUM_STEPS : (number + 1) * NUM_STEPS]
        assert torch.equal(views, torch.stack([step.view for step in seen]))


def test_nobody_keeps_views_that_nobody_needs():
    collector = collector_of(Scripted(steps_of(), redraws=True))
    collector.reset()
    (rollout,) = play(collector, 1)
    assert rollout.view is None
    assert rollout.snapshot is None


@pytest.mark.parametrize("redraws", [False, True])
def test_it_goes_on_from_a_state_as_if_nothing_had_happened(redraws):
    steps = steps_of(final="snapshot" if redraws else "observation")
    collector = collector_of(
        Scripted(steps, redraws=redraws), ByPlace(NUM_ENVS, needs_views=True)
    )
    collector.reset()
    play(collector, 2)
    state = collector.state_dict()
    wanted = play(collector, 2)
    tallied = collector.tally.take()

    other = collector_of(Scripted(steps, redraws=redraws), ByPlace(NUM_ENVS, needs_views=True))
    other.bonus.load_state_dict(collector.bonus.state_dict())
    other.load_state_dict(state)
    for found, rollout in zip(play(other, 2), wanted, strict=True):
        for field, tensor in zip(found, rollout, strict=True):
            assert (field is None and tensor is None) or torch.equal(field, tensor)
    assert other.tally.take() == tallied


def test_a_world_that_cannot_be_restored_begins_anew_but_its_agent_goes_on():
    steps, bonus = steps_of(), ByPlace(NUM_ENVS)
    collector = collector_of(Scripted(steps, restores=False))
    collector.reset()
    (begun,) = play(collector, 1)
    state = collector.state_dict()
    assert "world" not in state
    collector.tally.take()

    other = collector_of(Scripted(steps, restores=False), bonus)
    other.load_state_dict(state)
    (begun_anew,) = bonus.shown
    assert begun_anew.seen is steps[0].view
    assert begun_anew.opens.all()
    other.tally.take()
    (rollout,) = play(other, 1)
    assert rollout.first[0].all()
    assert torch.equal(rollout.observation, begun.observation)
    assert not torch.equal(rollout.action, begun.action)  # draws are not used twice
    # Nothing of the episodes that were given up counts for the new ones.
    fresh = collector_of(Scripted(steps))
    fresh.reset()
    play(fresh, 1)
    found, wanted = other.tally.take(), fresh.tally.take()
    for name in ("episodes", "reward", "bonus", "length", "coverage"):
        assert found[name] == wanted[name]


def test_a_world_that_begins_anew_plays_other_episodes_than_the_first_ones():
    worlds = [Scripted(steps_of(), restores=False) for _ in range(4)]
    collector = collector_of(worlds[0])
    collector.reset()
    play(collector, 1)
    early = collector.state_dict()
    play(collector, 1)
    for world, state in zip(worlds[1:], (early, early, collector.state_dict()), strict=True):
        collector_of(world).load_state_dict(state)
    (first,), (once,), (again,), (later,) = (world.seeds for world in worlds)
    assert first is None  # the seed that the world was made with
    assert once == again != later
    assert isinstance(once, int)


@pytest.mark.parametrize("num_steps", [10**10, 10**18])
def test_a_rollout_that_does_not_fit_is_refused_beforehand(num_steps):
    world = Scripted(steps_of())
    with pytest.raises(
        MemoryError, match=rf"a rollout of {num_steps} steps x 3 env.* lower `ppo.num_steps`"
    ):
        Collector(world, agent_for(world), ByPlace(NUM_ENVS), num_steps, seed=0)


def test_too_few_steps():
    world = Scripted(steps_of())
    with pytest.raises(ValueError, match="num_steps must be an integer of at least 1"):
        Collector(world, agent_for(world), ByPlace(NUM_ENVS), 0, seed=0)
