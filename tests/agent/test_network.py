"""The agent's network: sizes, actions, and what it refuses."""

import math

import numpy as np
import pytest
import torch

from episodic_curiosity import Agent
from episodic_curiosity.support.randomness import random_bits


def test_the_nature_network_has_the_paper_s_size():
    """PPO alone had 1.7 million weights (section S7): 84 x 84 x 3 frames and 9 actions."""
    agent = Agent((3, 84, 84), num_actions=9)
    assert sum(p.numel() for p in agent.parameters()) == pytest.approx(1.7e6, rel=0.02)


@pytest.mark.parametrize(
    ("shape", "num_features"),
    [
        ((3, 7, 7), 64 * 7 * 7),  # MiniGrid
        ((4, 35, 20), 64 * 9 * 5),  # 35 x 20, 18 x 10, 9 x 5
        ((1, 1, 2), 64 * 2),
    ],
)
def test_small_frames_are_not_strided_away(shape, num_features):
    agent = Agent(shape, num_actions=5)
    assert agent.body[-2].in_features == num_features
    frames = torch.randint(0, 256, (6, *shape), dtype=torch.uint8)
    one_changed = frames.clone()
    one_changed[:, 0, 0, -1] ^= 128  # a corner
    with torch.no_grad():
        before, after = agent(frames), agent(one_changed)
        as_floats = agent(frames / 255)
    assert (before.value != after.value).all()
    torch.testing.assert_close(before.value, as_floats.value)


@pytest.mark.parametrize("shape", [(3, 42, 45), (9, 36, 144), (3, 20, 20), (5,)])
def test_prepared_observations_give_the_same_output(shape):
    # Blocks of (9, 36, 144) have the sizes of its frames: (9, 36, 144) again.
    agent = Agent(shape, 4)
    observation = torch.randint(0, 256, (7, *shape), dtype=torch.uint8)
    rows = torch.tensor([6, 0, 3])
    prepared = agent.prepare(observation)
    assert (prepared.dtype, len(prepared)) == (torch.uint8, 7)
    found = agent(prepared.index_select(0, rows))
    expected = agent(observation[rows])
    assert torch.equal(found.value, expected.value)
    assert torch.equal(found.policy.logits, expected.policy.logits)


def test_the_first_policy_is_nearly_uniform():
    output = Agent((3, 84, 84), num_actions=9)(torch.rand(4, 3, 84, 84))
    assert output.value.shape == (4, 1)
    torch.testing.assert_close(
        output.policy.probs, torch.full((4, 9), 1 / 9), atol=0.02, rtol=0
    )


def test_one_observation_or_many_arrays_or_tensors():
    agent = Agent((5,), num_actions=3)
    assert agent.act(torch.rand(7, 5)).shape == (7,)
    assert agent.act(torch.rand(5)).shape == ()
    assert agent.act(np.zeros((7, 5))).shape == (7,)  # of float64, as NumPy makes them
    actions = agent.act(np.zeros((7, 5), dtype=np.float32))
    assert isinstance(actions, np.ndarray)
    assert actions.shape == (7,)
    assert actions.dtype == np.int64


def test_continuous_actions():
    agent = Agent((27,), num_actions=8, continuous=True)
    observation = torch.rand(6, 27)
    assert agent.act(observation).shape == (6, 8)
    with torch.no_grad():
        policy = agent(observation).policy
    assert policy.log_prob(torch.zeros(6, 8)).shape == (6,)
    most_likely = agent.act(observation, deterministic=True)
    assert torch.equal(most_likely, policy.mean)


def test_separate_networks_by_hand():
    """The ant's: 27 features, 8 motors; a network has 27 x 64 + 64 + 64 x 64 + 64 weights."""
    agent = Agent((27,), num_actions=8, continuous=True, separate_networks=True)
    network, policy_head, value_head = 5_952, 64 * 8 + 8, 64 + 1
    assert sum(p.numel() for p in agent.parameters()) == (
        2 * network + policy_head + value_head + 8
    )
    observation = torch.rand(6, 27)
    output = agent(observation)
    (policy_only,) = torch.autograd.grad(
        output.policy.mean.sum(), [agent.body[0].weight], retain_graph=True
    )
    assert policy_only.abs().sum() > 0
    of_values = torch.autograd.grad(
        output.value.sum(), list(agent.parameters()), allow_unused=True
    )
    names = [name for name, _ in agent.named_parameters()]
    reached = {name for name, found in zip(names, of_values, strict=True) if found is not None}
    assert reached == {name for name in names if name.startswith("value_")}
    # Orthogonal columns or rows of length sqrt(2), in heads 0.01 and 1, and no biases.
    for body in (agent.body, agent.value_body):
        first, second = body[0].weight.detach(), body[2].weight.detach()
        torch.testing.assert_close(first.T @ first, 2 * torch.eye(27), atol=1e-5, rtol=0)
        torch.testing.assert_close(second @ second.T, 2 * torch.eye(64), atol=1e-5, rtol=0)
        assert body[0].bias.abs().sum() == body[2].bias.abs().sum() == 0
    assert agent.policy_head.weight.norm(dim=1).tolist() == pytest.approx([0.01] * 8)
    assert agent.value_head.weight.norm().item() == pytest.approx(1.0)
    by_hand = observation
    for layer in (0, 2):
        by_hand = (by_hand @ agent.value_body[layer].weight.T).tanh()
    torch.testing.assert_close(output.value, by_hand @ agent.value_head.weight.T)


def test_separate_networks_are_saved(tmp_path):
    observation = torch.rand(2, 5)
    for separate in (True, False):
        saved = Agent((5,), num_actions=3, separate_networks=separate)
        saved.save(tmp_path)
        loaded = Agent.load(tmp_path)
        assert loaded.config == saved.config
        assert torch.equal(loaded(observation).value, saved(observation).value)


def draws(num_envs, step=0):
    return random_bits(torch.arange(num_envs), step)


def test_decisions_follow_the_policy():
    """20,000 draws at one observation; a share strays by about 0.0035."""
    agent = Agent((5,), num_actions=3)
    with torch.no_grad():
        agent.policy_head.bias.copy_(torch.tensor([0.5, 0.3, 0.2]).log())
    observation = torch.zeros(20_000, 5)
    decision = agent.decide(observation, draws(20_000))
    with torch.no_grad():
        policy, value = agent(observation)
    shares = decision.action.bincount() / 20_000
    torch.testing.assert_close(shares, policy.probs[0], atol=0.015, rtol=0)
    assert torch.equal(decision.log_prob, policy.log_prob(decision.action))
    assert torch.equal(decision.value, value)


def test_continuous_decisions_follow_the_policy():
    agent = Agent((5,), num_actions=2, continuous=True, num_values=2)
    with torch.no_grad():
        agent.log_std.copy_(torch.tensor([0.5, 2.0]).log())
        agent.policy_head.bias.copy_(torch.tensor([3.0, -1.0]))
    observation = torch.zeros(20_000, 5)
    decision = agent.decide(observation, draws(20_000))
    assert decision.action.shape == (20_000, 2)
    assert decision.value.shape == (20_000, 2)
    spread, mean = torch.std_mean(decision.action, dim=0)
    torch.testing.assert_close(mean, torch.tensor([3.0, -1.0]), atol=0.05, rtol=0)
    torch.testing.assert_close(spread, torch.tensor([0.5, 2.0]), atol=0, rtol=0.03)
    noise = (decision.action - mean) / spread
    within_one = (noise.abs() < 1).float().mean(dim=0)
    torch.testing.assert_close(within_one, torch.full((2,), 0.683), atol=0.015, rtol=0)
    assert abs((noise[:, 0] * noise[:, 1]).mean()) < 0.03
    with torch.no_grad():
        centre = agent(observation).policy.mean
    scale = torch.tensor([0.5, 2.0])
    by_hand = -0.5 * ((decision.action - centre) / scale).square() - scale.log()
    by_hand = (by_hand - 0.5 * math.log(2 * math.pi)).sum(dim=1)
    torch.testing.assert_close(decision.log_prob, by_hand)


def test_the_same_bits_decide_the_same_alone_and_in_a_batch():
    agent = Agent((5,), num_actions=3)
    observation = torch.rand(7, 5)
    together = agent.decide(observation, draws(7)).action
    alone = [agent.decide(observation[i : i + 1], draws(7)[i : i + 1]).action for i in range(7)]
    assert torch.equal(together, torch.cat(alone))
    later = [agent.decide(observation, draws(7, step)).action.tolist() for step in range(9)]
    assert together.tolist() == later[0] != later[1]


@pytest.mark.parametrize("unit", [0.0, 1.0 - 2.0**-24])
def test_the_rarest_bits_still_decide(unit, monkeypatch):
    monkeypatch.setattr(
        "episodic_curiosity.agent.network.random_unit",
        lambda draw, entries, *_: torch.full((len(draw), len(entries)), unit),
    )
    discrete = Agent((5,), 3).decide(torch.rand(2, 5), draws(2))
    assert ((discrete.action >= 0) & (discrete.action < 3)).all()
    assert discrete.log_prob.isfinite().all()
    continuous = Agent((5,), 3, continuous=True).decide(torch.rand(2, 5), draws(2))
    assert continuous.action.isfinite().all()


def test_the_deterministic_action_is_the_most_likely_one():
    agent = Agent((5,), num_actions=3)
    observation = torch.rand(20, 5)
    with torch.no_grad():
        expected = agent(observation).policy.probs.argmax(dim=1)
    assert torch.equal(agent.act(observation, deterministic=True), expected)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (((3, 84), 9), r"observation_shape must be .* got \(3, 84\)"),
        (((5,), 0), "num_actions must be an integer of at least 1, got 0"),
    ],
)
def test_impossible_agents(arguments, message):
    with pytest.raises(ValueError, match=message):
        Agent(*arguments)


def test_an_agent_without_values():
    with pytest.raises(ValueError, match="num_values must be an integer of at least 1"):
        Agent((5,), 3, num_values=0)


def test_frames_have_one_network():
    with pytest.raises(ValueError, match=r"separate_networks are for vectors, got frames of"):
        Agent((3, 84, 84), 9, separate_networks=True)


def test_a_wrong_observation():
    with pytest.raises(ValueError, match=r"observation must have shape \(2, 5\), got \(2, 6\)"):
        Agent((5,), 3).act(torch.zeros(2, 6))
