"""An agent that sees its memory: network, rollouts and updates, beside a loop by hand.

T = 5 steps, N = 3 environments, S = 2 numbers.
"""

from typing import ClassVar

import pytest
import torch
from torch import Tensor

import episodic_curiosity as ec
from episodic_curiosity.agent.collector import STREAM, Collector
from episodic_curiosity.agent.network import Agent
from episodic_curiosity.agent.ppo import PPO, PPOConfig
from episodic_curiosity.bonus.base import Sight
from episodic_curiosity.support.randomness import random_bits, seed_words
from tests.agent.scripted import NUM_ACTIONS, ByPlace, Scripted, script
from tests.bonus.test_episodic import corridor
from tests.support import fake_graphs

NUM_STEPS, NUM_ENVS, NUM_ROLLOUTS = 5, 3, 4
SEED = 3


class Counting(ByPlace):
    """A summary that can be foretold: where the agent is, and the step of the episode."""

    summary_size: ClassVar[int] = 2

    def __init__(self) -> None:
        super().__init__(NUM_ENVS)
        self.told = torch.zeros(NUM_ENVS, 2)

    @property
    def summary(self) -> Tensor:
        return self.told

    def pay(self, now: Sight) -> Tensor:
        step = (self.told[:, 1] + 0.1).masked_fill(now.opens, 0.0)
        self.told.copy_(torch.stack([now.seen[:, 1], step], dim=1))
        return super().pay(now)


def seeing_agent(shape=(4,), **options) -> Agent:
    torch.manual_seed(0)
    options = {"summary_size": 2, "summary_of": "ppo+ec"} | options
    agent = Agent(shape, NUM_ACTIONS, **options)
    torch.nn.init.normal_(agent.policy_head.weight)  # so that actions differ
    return agent


def collector_of(final="observation", **options) -> Collector:
    steps = script(NUM_ROLLOUTS * NUM_STEPS, NUM_ENVS, final=final)
    world = Scripted(steps, redraws=final == "snapshot", **options)
    return Collector(world, seeing_agent(), Counting(), NUM_STEPS, seed=SEED)


def copied(rollout):
    return rollout._replace(
        **{name: part.clone() for name, part in rollout._asdict().items() if part is not None}
    )


@pytest.mark.parametrize("shape", [(3, 42, 42), (3, 7, 7), (5,)])
@pytest.mark.parametrize("separate", [False, True])
def test_policy_and_values_depend_on_the_summary_and_the_observation(shape, separate):
    if separate and len(shape) == 3:
        return
    agent = seeing_agent(shape, separate_networks=separate)
    observation = torch.rand(3, *shape)
    summary = torch.tensor([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    same = agent(observation[:1].expand_as(observation), summary)
    assert len({round(value, 6) for value in same.value[:, 0].tolist()}) == 3
    assert len({round(value, 6) for value in same.policy.logits[:, 0].tolist()}) == 3
    # They act together: what the summary changes depends on the observation.
    other = agent(observation, summary).value - agent(observation, 0 * summary).value
    assert not torch.allclose(other[1:], (same.value - same.value[0])[1:])
    prepared = agent.prepare((255 * observation).byte())
    torch.testing.assert_close(
        agent(prepared, summary).value, agent((255 * observation).byte(), summary).value
    )


def test_it_is_as_large_as_another_but_for_the_weights_of_the_summary():
    plain, seeing = Agent((3, 42, 42), 3), seeing_agent((3, 42, 42))
    sizes = [sum(weight.numel() for weight in agent.parameters()) for agent in (plain, seeing)]
    assert sizes[1] - sizes[0] == 2 * 512 + 512 + 1  # and one more action


@pytest.mark.parametrize("final", ["observation", "snapshot"])
@torch.no_grad()
def test_beside_a_loop_by_hand(final):
    collector = collector_of(final)
    collector.reset()
    agent, steps = collector.agent, script(NUM_ROLLOUTS * NUM_STEPS, NUM_ENVS, final=final)
    told = Counting()
    told.begin(steps[0].view)
    truncations = 0
    for number in range(NUM_ROLLOUTS):
        rollout = collector.collect()
        for t in range(NUM_STEPS):
            clock = number * NUM_STEPS + t
            now, after = steps[clock], steps[clock + 1]
            summary = told.summary.clone()
            assert torch.equal(rollout.summary[t], summary)
            draw = random_bits(*seed_words(SEED), STREAM, clock, torch.arange(NUM_ENVS))
            decision = agent.decide(now.observation, draw, summary)
            for name, wanted in decision._asdict().items():
                torch.testing.assert_close(getattr(rollout, name)[t], wanted)
            told.bonus_same_step(after.view, after.first, action=decision.action)
            assert (told.summary[after.first, 1] == 0).all()  # of the new episode
            for env in after.truncated.nonzero()[:, 0]:
                last = after.final_observation
                if last is None:
                    last = after.final_snapshot.view(torch.float32)
                # The last observation is shown to no bonus: the summary is of the step before.
                wanted = agent(last[env : env + 1], summary[env : env + 1]).value[0]
                torch.testing.assert_close(rollout.final_value[t, env], wanted)
                truncations += 1
        following = steps[(number + 1) * NUM_STEPS].observation
        # The newest observation has been shown to the bonus.
        torch.testing.assert_close(rollout.value[-1], agent(following, told.summary).value)
    assert truncations > 2


def test_a_world_in_two_parts_pays_before_the_agent_acts_again():
    rollouts = []
    for in_two in (False, True):
        collector = collector_of(in_two=in_two)
        collector.reset()
        rollouts.append([copied(collector.collect()) for _ in range(NUM_ROLLOUTS)])
    for one, other in zip(*rollouts, strict=True):
        assert torch.equal(one.summary, other.summary)
        assert torch.equal(one.action, other.action)


@pytest.mark.parametrize("in_two", [False, True])
def test_graphs_around_a_world_that_the_cpu_steps_change_nothing(in_two, monkeypatch):
    def played():
        collector = collector_of(in_two=in_two, positions=False)
        collector.reset()
        return [copied(collector.collect()) for _ in range(NUM_ROLLOUTS)]

    wanted = played()
    fake_graphs.install(monkeypatch)
    monkeypatch.setattr(
        "episodic_curiosity.agent.collector.graph_device",
        lambda device, can_capture: device if can_capture else None,
    )
    for rollout, other in zip(played(), wanted, strict=True):
        for name, tensor in other._asdict().items():
            if tensor is not None:
                assert torch.equal(getattr(rollout, name), tensor), name


def test_an_update_sees_each_sample_with_its_summary():
    """At first the policy is the one that acted: it has the same probabilities."""
    collector = collector_of()
    collector.reset()
    rollout = copied(collector.collect())
    config = PPOConfig(num_minibatches=1, num_epochs=1)

    def change(rollout) -> float:
        ppo = PPO(collector.agent, config, num_updates=9, seed=0)
        before = {k: v.clone() for k, v in collector.agent.state_dict().items()}
        metrics = ppo.update(rollout, 0)
        learnt = collector.agent.body[0].weight[:, 4:] != before["body.0.weight"][:, 4:]
        assert learnt.any()
        collector.agent.load_state_dict(before)
        return metrics["approximate_kl"]

    assert change(rollout) == pytest.approx(0.0, abs=1e-6)
    assert change(rollout._replace(summary=rollout.summary.flip(1))) > 1e-4


def test_it_is_saved_and_loaded_with_a_bonus_alone(tmp_path):
    bonus = corridor(num_envs=2)
    seeing_agent(summary_size=bonus.summary_size).save(tmp_path)
    assert Agent.load(tmp_path).config.summary_of == "ppo+ec"
    wanted = r"sees its memory: it needs bonus=, the bonus of ppo\+ec with keep_summary"
    with pytest.raises(ValueError, match=rf"{wanted}.* got None"):
        ec.load_agent(tmp_path)
    with pytest.raises(ValueError, match=rf"{wanted}.* got ConstantBonus"):
        ec.load_agent(tmp_path, bonus=ec.ConstantBonus(2))
    with pytest.raises(ValueError, match=r"of 8 numbers of the memory of ppo\+ec, got"):
        ec.load_agent(tmp_path, bonus=bonus)
    bonus.keep_summary()
    agent = ec.load_agent(tmp_path, bonus=bonus)
    assert agent.act(torch.rand(2, 4), summary=bonus.summary).shape == (2,)
    with pytest.raises(ValueError, match=r"a summary of 8 numbers .*ppo\+ec, got none"):
        agent.act(torch.rand(2, 4))
    with pytest.raises(ValueError, match=r"summary must have shape \(3, 8\), got \(2, 8\)"):
        agent.act(torch.rand(3, 4), summary=bonus.summary)
    assert agent.act(torch.rand(4), summary=bonus.summary[0]).shape == ()
    ec.load_agent(tmp_path, bonus=ec.NormalisedBonus(bonus))
    array = bonus.summary.numpy()
    assert agent.act(torch.rand(2, 4).numpy(), summary=array).shape == (2,)
    for wrong, message in (
        ([0.0] * 8, "summary must be a tensor, got list"),
        (torch.tensor(1.0), r"summary must have shape \(2, 8\), got \(\)"),
        (bonus.summary.double(), "summary must be of dtype torch.float32, got torch.float64"),
        (bonus.summary + 2, r"summary must be in \[0, 1\]"),
        (bonus.summary * torch.nan, r"summary must be in \[0, 1\]"),
    ):
        with pytest.raises((TypeError, ValueError), match=message):
            agent.act(torch.rand(2, 4), summary=wrong)
    Agent((4,), 3).save(tmp_path)
    ec.load_agent(tmp_path, bonus=bonus)  # it ignores the bonus


def test_what_does_not_fit_is_refused():
    with pytest.raises(ValueError, match="the agent sees no summary of a memory, got 2"):
        Agent((4,), 3)(torch.rand(1, 4), torch.rand(1, 2))
    with pytest.raises(ValueError, match=r"must be given together, got 2 and None"):
        Agent((4,), 3, summary_size=2)
    world = Scripted(script(5, NUM_ENVS))
    with pytest.raises(ValueError, match=r"of 2 numbers of the memory of ppo\+ec, got none"):
        Collector(world, seeing_agent(), ByPlace(NUM_ENVS), 5, seed=0)
