"""The agent's network: sizes, actions, and what it refuses."""

import numpy as np
import pytest
import torch

from episodic_curiosity import Agent


def test_the_nature_network_has_the_paper_s_size():
    """PPO alone had 1.7 million weights (section S7): 84 x 84 x 3 frames and 9 actions."""
    agent = Agent((3, 84, 84), num_actions=9)
    assert sum(p.numel() for p in agent.parameters()) == pytest.approx(1.7e6, rel=0.02)


def test_the_first_policy_is_nearly_uniform():
    output = Agent((3, 84, 84), num_actions=9)(torch.rand(4, 3, 84, 84))
    assert output.value.shape == (4,)
    torch.testing.assert_close(
        output.policy.probs, torch.full((4, 9), 1 / 9), atol=0.02, rtol=0
    )


def test_one_observation_or_many_arrays_or_tensors():
    agent = Agent((5,), num_actions=3)
    assert agent.act(torch.rand(7, 5)).shape == (7,)
    assert agent.act(torch.rand(5)).shape == ()
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
        (((3, 20, 84), 9), r"frames must be at least 36 x 36, got \(3, 20, 84\)"),
        (((5,), 0), "num_actions must be a whole number of at least 1, got 0"),
    ],
)
def test_impossible_agents(arguments, message):
    with pytest.raises(ValueError, match=message):
        Agent(*arguments)


def test_a_wrong_observation():
    with pytest.raises(ValueError, match=r"observation must have shape \(2, 5\), got \(2, 6\)"):
        Agent((5,), 3).act(torch.zeros(2, 6))
