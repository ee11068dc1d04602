"""PPO in a single file, in CleanRL's manner, with episodic curiosity (ECO).

    python examples/cleanrl_ppo.py --env-id MountainCar-v0 --total-steps 500_000

Lines that end with `# curiosity` are all that curiosity adds. Shapes: T steps, N environments.
"""

from dataclasses import dataclass

import gymnasium
import numpy as np
import torch
import tyro
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.wrappers.vector import RecordEpisodeStatistics
from torch import Tensor, nn
from torch.distributions import Categorical

import episodic_curiosity as ec  # curiosity
from episodic_curiosity.adapters.gymnasium import CuriousVectorEnv  # curiosity


@dataclass
class Args:
    env_id: str = "MountainCar-v0"  # with a vector of floats to see and discrete actions
    total_steps: int = 500_000
    num_envs: int = 16
    num_steps: int = 128  # T, of an environment per update
    num_epochs: int = 4
    num_minibatches: int = 4
    learning_rate: float = 2.5e-4
    gamma: float = 0.99
    gae_lambda: float = 0.95
    clip: float = 0.2
    entropy: float = 0.01
    value_weight: float = 0.5
    max_norm: float = 0.5
    seed: int = 0
    bonus_weight: float = 1.0  # curiosity
    refit_every: int = 50_000  # curiosity


class Agent(nn.Module):
    """A policy and a value of vectors."""

    def __init__(self, num_features: int, num_actions: int) -> None:
        super().__init__()
        self.actor = nn.Sequential(
            nn.Linear(num_features, 64),
            nn.Tanh(),
            nn.Linear(64, 64),
            nn.Tanh(),
            nn.Linear(64, num_actions),
        )
        self.critic = nn.Sequential(
            nn.Linear(num_features, 64),
            nn.Tanh(),
            nn.Linear(64, 64),
            nn.Tanh(),
            nn.Linear(64, 1),
        )

    def forward(self, observation: Tensor) -> tuple[Categorical, Tensor]:
        return Categorical(logits=self.actor(observation)), self.critic(observation).squeeze(-1)


def estimate_advantages(
    rewards: Tensor, values: Tensor, dones: Tensor, next_value: Tensor, args: Args
) -> Tensor:
    """GAE over (T, N) steps; `dones[t]` says whether step t ended an episode."""
    advantages = torch.zeros_like(rewards)
    advantage = torch.zeros_like(next_value)
    for t in reversed(range(len(rewards))):
        after = next_value if t == len(rewards) - 1 else values[t + 1]
        goes_on = 1.0 - dones[t]
        error = rewards[t] + args.gamma * after * goes_on - values[t]
        advantage = error + args.gamma * args.gae_lambda * goes_on * advantage
        advantages[t] = advantage
    return advantages


def make_envs(args: Args) -> VectorEnv:
    same_step = {"autoreset_mode": AutoresetMode.SAME_STEP}
    envs = gymnasium.make_vec(args.env_id, num_envs=args.num_envs, vector_kwargs=same_step)
    return RecordEpisodeStatistics(envs)  # inside curiosity: of the task's reward alone


def train(args: Args) -> list[float]:
    """Returns the task's mean episode return after each update, as far as episodes ended."""
    torch.manual_seed(args.seed)
    envs = recorded = make_envs(args)
    r_network = ec.RNetwork(envs.single_observation_space.shape)  # curiosity
    online = ec.OnlineConfig(refit_every=args.refit_every)  # curiosity
    bonus = ec.EpisodicCuriosity(r_network, args.num_envs, beta=1.0, online=online)  # curiosity
    envs = CuriousVectorEnv(envs, bonus, weight=args.bonus_weight)  # curiosity

    agent = Agent(envs.single_observation_space.shape[0], int(envs.single_action_space.n))
    optimiser = torch.optim.Adam(agent.parameters(), lr=args.learning_rate, eps=1e-5)
    shape = (args.num_steps, args.num_envs)
    observations = torch.zeros((*shape, *envs.single_observation_space.shape))
    actions = torch.zeros(shape, dtype=torch.int64)
    log_probs, rewards, dones, values = (torch.zeros(shape) for _ in range(4))

    first, _ = envs.reset(seed=args.seed)
    observation = torch.as_tensor(first, dtype=torch.float32)
    returns: list[float] = []
    for update in range(args.total_steps // (args.num_steps * args.num_envs)):
        for t in range(args.num_steps):
            observations[t] = observation
            with torch.no_grad():
                policy, values[t] = agent(observation)
                actions[t] = policy.sample()
                log_probs[t] = policy.log_prob(actions[t])
            seen, reward, terminated, truncated, _ = envs.step(actions[t].numpy())
            observation = torch.as_tensor(seen, dtype=torch.float32)
            rewards[t] = torch.as_tensor(reward)  # of task and curiosity
            dones[t] = torch.as_tensor(terminated | truncated)
        metrics = envs.curiosity.learn() | envs.curiosity.metrics()  # curiosity

        with torch.no_grad():
            _, next_value = agent(observation)
        advantages = estimate_advantages(rewards, values, dones, next_value, args)
        targets = advantages + values
        batch = [
            part.flatten(0, 1)
            for part in (observations, actions, log_probs, advantages, targets)
        ]
        for _ in range(args.num_epochs):
            order = torch.randperm(len(batch[0]))
            for rows in order.chunk(args.num_minibatches):
                loss = ppo_loss(agent, *(part[rows] for part in batch), args)
                optimiser.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(agent.parameters(), args.max_norm)
                optimiser.step()

        if recorded.return_queue:
            returns.append(float(np.mean(recorded.return_queue)))
            steps = (update + 1) * args.num_steps * args.num_envs
            line = f"{steps:,} steps: return {returns[-1]:.1f}"
            line += f", bonus {metrics['bonus_mean']:.4f}"  # curiosity
            print(line)
    envs.close()
    return returns


def ppo_loss(
    agent: Agent,
    observation: Tensor,
    action: Tensor,
    log_prob: Tensor,
    advantage: Tensor,
    target: Tensor,
    args: Args,
) -> Tensor:
    policy, value = agent(observation)
    ratio = (policy.log_prob(action) - log_prob).exp()
    advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
    clipped = ratio.clamp(1 - args.clip, 1 + args.clip)
    gain = torch.min(ratio * advantage, clipped * advantage).mean()
    error = 0.5 * (value - target).square().mean()
    return args.value_weight * error - gain - args.entropy * policy.entropy().mean()


if __name__ == "__main__":
    train(tyro.cli(Args))
