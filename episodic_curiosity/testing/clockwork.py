"""A toy environment that observes its own state, and a bonus that records what it sees.

Shapes: N environments.
"""

from typing import Any, Self

import gymnasium
import numpy as np
import torch
from gymnasium import spaces
from numpy.typing import NDArray
from torch import Tensor

from episodic_curiosity.bonus.base import Bonus, BonusContext, Sight
from episodic_curiosity.worlds.base import WorldSpec

Array = NDArray[Any]
NUM_ACTIONS = 4
NO_ACTION = -1.0  # led to the first observation of an episode


def length_of(env: int, episode: int) -> int:
    """Steps of an episode, 1 to 5."""
    return 1 + (3 * env + 2 * episode) % 5


def is_terminated(env: int, episode: int) -> bool:
    """True if an episode is terminated at its end; otherwise it is truncated."""
    return (env + episode) % 2 == 0


def reward_of(env: int, episode: int, time: int) -> float:
    """The task's reward for a step, another one for each; exact in float32."""
    return 16.0 * env + 4.0 * episode + time


class Clockwork(gymnasium.Env[Array, Any]):
    """Observes (environment, episode, time, last action).

    `info["position"]` is the first three. Episodes have unequal lengths, and end in turn by
    termination and truncation.
    """

    observation_space = spaces.Box(-np.inf, np.inf, (4,), np.float32)
    action_space = spaces.Discrete(NUM_ACTIONS)

    def __init__(self, env: int) -> None:
        self.env, self.episode, self.time = env, -1, 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Array, dict[str, Any]]:
        """Begins the next episode."""
        super().reset(seed=seed, options=options)
        self.episode += 1
        self.time = 0
        return self._observe(NO_ACTION)

    def step(self, action: Any) -> tuple[Array, float, bool, bool, dict[str, Any]]:
        """Advances the time by one step."""
        self.time += 1
        observation, info = self._observe(float(action))
        is_end = self.time == length_of(self.env, self.episode)
        is_terminal = is_terminated(self.env, self.episode)
        reward = reward_of(self.env, self.episode, self.time)
        return observation, reward, is_end and is_terminal, is_end and not is_terminal, info

    def _observe(self, action: float) -> tuple[Array, dict[str, Any]]:
        place = np.array([self.env, self.episode, self.time], np.float32)
        return np.append(place, np.float32(action)), {"position": place}


class Spy(Bonus):
    """Pays half the number of observations remembered of this episode, and keeps a record.

    Called correctly, it pays `time / 2`. `seen[n]` are the episodes of environment n, each a
    list of observations.
    """

    remembered: Tensor  # (N,) float32

    def __init__(self, num_envs: int) -> None:
        super().__init__(num_envs, (4,), "cpu")
        self.register_buffer("remembered", torch.zeros(num_envs))
        self.seen: list[list[list[tuple[float, ...]]]] = [[] for _ in range(num_envs)]
        self.actions: list[list[float]] = [[] for _ in range(num_envs)]

    @classmethod
    def for_run(cls, config: Any, spec: WorldSpec, context: BonusContext) -> Self:
        raise NotImplementedError("a spy is for tests")

    def pay(self, now: Sight) -> Tensor:
        bonus = self.remembered / 2
        remembered = torch.where(now.opens, 0.0, self.remembered) + now.rows
        self.remembered.copy_(remembered)
        for row in now.rows.nonzero().flatten().tolist():
            if now.opens[row]:
                self.seen[row].append([])
            elif now.action is not None:
                self.actions[row].append(float(now.action[row]))
            self.seen[row][-1].append(tuple(now.seen[row].tolist()))
        return bonus
