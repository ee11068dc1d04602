"""PPO learns: to balance a pole, and to aim."""

import pytest
import torch

from episodic_curiosity import Agent
from episodic_curiosity.agent.ppo import PPO, PPOConfig
from episodic_curiosity.support.randomness import random_bits
from tests.agent.playing import CartPole, mean_return, play, rollout_of

pytestmark = pytest.mark.slow


def test_ppo_solves_cartpole():
    """CartPole-v1 counts as solved at a mean return of 475."""
    torch.manual_seed(0)
    agent = Agent((4,), num_actions=2)
    # Returns of 500 would drown the policy's gradient in that of the values: hence the scale.
    config = PPOConfig(
        num_steps=32,
        num_epochs=10,
        learning_rate=1e-3,
        clip_range=0.2,
        gamma=0.98,
        lam=0.9,
        reward_scale=0.1,
        clip_values=False,
    )
    num_updates = 60
    ppo = PPO(agent, config, num_updates=num_updates, seed=0)
    env = CartPole(num_envs=32)
    env.reset(seed=0)
    first = torch.ones(32, dtype=torch.bool)
    for number in range(num_updates):
        rollout = play(agent, env, config.num_steps, number, first)
        ppo.update(rollout, number)
        first = rollout.first[-1]
    assert mean_return(agent, num_envs=20, seed=1) >= 475


@pytest.mark.parametrize("separate", [False, True])
def test_ppo_learns_to_aim(separate):
    """Continuous actions, paid by how near they come to what is observed."""
    torch.manual_seed(0)
    agent = Agent((2,), num_actions=2, continuous=True, separate_networks=separate)
    config = PPOConfig(num_steps=4, learning_rate=1e-2, clip_range=0.2, clip_values=False)
    num_updates = 40
    ppo = PPO(agent, config, num_updates=num_updates, seed=0)
    generator = torch.Generator().manual_seed(0)
    ends = torch.ones(5, 64, dtype=torch.bool)
    distances = []
    for number in range(num_updates):
        aim = torch.rand(5, 64, 2, generator=generator) - 0.5
        draw = random_bits(torch.arange(5 * 64), number)
        action, log_prob, value = agent.decide(aim.flatten(0, 1), draw)
        action = action.view(5, 64, 2)[:-1]
        distance = (action - aim[:-1]).norm(dim=2)
        distances.append(distance.mean().item())
        rollout = rollout_of(
            observation=aim,
            action=action,
            log_prob=log_prob.view(5, 64)[:-1],
            value=value.view(5, 64, 1),
            reward=-distance,
            first=ends,
            terminated=ends[1:],
        )
        ppo.update(rollout, number)
    assert distances[0] > 1.2
    assert distances[-1] < 0.4
