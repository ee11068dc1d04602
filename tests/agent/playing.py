"""Rollouts for tests: made up, or played on CartPole."""

import numpy as np
import torch
from gymnasium.envs.classic_control.cartpole import CartPoleVectorEnv

from episodic_curiosity.support.randomness import random_bits
from episodic_curiosity.worlds.base import Rollout


def rollout_of(**fields):
    """A rollout of what is given and zeros; `value` (T + 1, N, H) says how large it is."""
    num_steps, num_envs, num_values = fields["value"].shape
    num_steps -= 1
    zeros = torch.zeros(num_steps, num_envs)
    empty = {
        "observation": torch.zeros(num_steps + 1, num_envs, 1),
        "action": zeros.long(),
        "log_prob": zeros,
        "reward": zeros,
        "bonus": zeros,
        "first": torch.zeros(num_steps + 1, num_envs, dtype=torch.bool),
        "terminated": zeros.bool(),
        "final_value": torch.zeros(num_steps, num_envs, num_values),
    }
    return Rollout(**(empty | fields))


def random_rollout(
    num_steps, num_envs, num_values=1, *, observation_shape=(4,), num_actions=3, seed=0
):
    """Anything at all, as the contract of Rollout allows it; frames are bytes."""
    generator = torch.Generator().manual_seed(seed)

    def unit(*shape):
        return torch.rand(*shape, generator=generator)

    observation = unit(num_steps + 1, num_envs, *observation_shape)
    if len(observation_shape) == 3:
        observation = (255 * observation).to(torch.uint8)
    first = unit(num_steps + 1, num_envs) < 0.3
    terminated = first[1:] & (unit(num_steps, num_envs) < 0.5)
    truncated = first[1:] & ~terminated
    return Rollout(
        observation=observation,
        action=(num_actions * unit(num_steps, num_envs)).long(),
        log_prob=-0.5 - unit(num_steps, num_envs),
        value=unit(num_steps + 1, num_envs, num_values),
        reward=unit(num_steps, num_envs),
        bonus=unit(num_steps, num_envs),
        first=first,
        terminated=terminated,
        final_value=unit(num_steps, num_envs, num_values) * truncated[:, :, None],
    )


class CartPole(CartPoleVectorEnv):
    """CartPole-v1, resetting in the same step; what it returns is the last of an episode."""

    def step(self, action):
        result = super().step(action)
        done, self.prev_done = self.prev_done, np.zeros(self.num_envs, dtype=bool)
        self.state[:, done] = self.np_random.uniform(self.low, self.high, (4, done.sum()))
        self.steps[done] = 0
        return result

    def observation(self):
        return torch.from_numpy(self.state.T.astype(np.float32))


def play(agent, env, num_steps, number, first):
    """Plays on for T steps from where CartPole stands, `first` being true at new episodes."""
    steps = {name: [] for name in Rollout._fields if name not in Rollout._field_defaults}
    env_index = torch.arange(env.num_envs)
    for t in range(num_steps + 1):
        observation = env.observation()
        decision = agent.decide(observation, random_bits(env_index, number, t))
        for name, tensor in (("observation", observation), ("value", decision.value)):
            steps[name].append(tensor)
        steps["first"].append(first)
        if t == num_steps:
            break
        final, reward, terminated, truncated, _ = env.step(decision.action.numpy())
        terminated, truncated = torch.from_numpy(terminated), torch.from_numpy(truncated)
        first = terminated | truncated
        final_value = torch.zeros_like(decision.value)
        if (cut_off := truncated & ~terminated).any():
            with torch.no_grad():
                values = agent(torch.from_numpy(final)).value
            final_value = torch.where(cut_off[:, None], values, final_value)
        steps["action"].append(decision.action)
        steps["log_prob"].append(decision.log_prob)
        steps["reward"].append(torch.from_numpy(reward))
        steps["bonus"].append(torch.zeros(env.num_envs))
        steps["terminated"].append(terminated)
        steps["final_value"].append(final_value)
    return Rollout(**{name: torch.stack(tensors) for name, tensors in steps.items()})


def mean_return(agent, num_envs, seed):
    """The mean return of one episode in each environment, most likely actions taken."""
    env = CartPole(num_envs=num_envs)
    env.reset(seed=seed)
    alive, total = np.ones(num_envs, dtype=bool), np.zeros(num_envs)
    while alive.any():
        action = agent.act(env.observation(), deterministic=True)
        _, reward, terminated, truncated, _ = env.step(action.numpy())
        total += reward * alive
        alive &= ~(terminated | truncated)
    return total.mean()
