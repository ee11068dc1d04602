"""Curiosity for Stable-Baselines3: a wrapper and two callbacks.

Shapes: N environments.
"""

from collections import deque
from pathlib import Path
from typing import Any

import numpy as np
from stable_baselines3.common.callbacks import BaseCallback, CheckpointCallback
from stable_baselines3.common.vec_env import (
    VecEnv,
    VecEnvWrapper,
    VecMonitor,
    VecNormalize,
    is_vecenv_wrapped,
)
from stable_baselines3.common.vec_env.base_vec_env import VecEnvObs, VecEnvStepReturn

from episodic_curiosity.adapters.attached import AttachedBonus
from episodic_curiosity.adapters.views import (
    Array,
    FromInfo,
    View,
    check_view,
    same,
    stacked,
    with_rows,
)
from episodic_curiosity.bonus.base import Bonus

LOG_EVERY = 1_000  # steps of all environments: rollouts of off-policy algorithms are short


class CuriousVecEnv(VecEnvWrapper):
    """Adds a bonus to the reward.

    `infos[i]["task_reward"]` and `infos[i]["bonus"]` are the two parts of the reward.
    `curiosity.eval()` is for evaluation, `curiosity.save(folder)` and `load` for checkpoints.

    Args:
        venv: the environments. Monitor and VecMonitor go inside, so that they record the
            task's reward alone; VecNormalize goes around this wrapper.
        bonus: what to pay, made for as many environments.
        view: from a batch of observations to what curiosity sees, or a FromInfo.
        weight: factor on the bonus.
        training: False: nothing is paid or stored.
    """

    def __init__(
        self,
        venv: VecEnv,
        bonus: Bonus,
        *,
        view: View | FromInfo = same,
        weight: float = 1.0,
        training: bool = True,
    ) -> None:
        if not isinstance(venv, VecEnv):
            raise TypeError(
                f"venv must be a VecEnv, got {type(venv).__name__}: make one with make_vec_env"
            )
        if is_vecenv_wrapped(venv, VecNormalize):
            raise ValueError(
                "VecNormalize must be around CuriousVecEnv, got it inside: what is remembered "
                "would change with its statistics"
            )
        if is_vecenv_wrapped(venv, CuriousVecEnv):
            raise ValueError("CuriousVecEnv must be there once, got one around another")
        super().__init__(venv)
        self.view = view
        self.curiosity = AttachedBonus(bonus, venv.num_envs, weight=weight, training=training)
        check_view(view, bonus, venv.observation_space, venv.num_envs)
        self._actions: Array | None = None
        self._returns = np.zeros((venv.num_envs, 2))  # task reward and bonus so far
        self.episode_returns: deque[Array] = deque(maxlen=100)  # both, of the newest episodes

    def reset(self) -> VecEnvObs:
        """Resets all environments."""
        observation = self.venv.reset()
        self.curiosity.begin(self._begins_with(observation))
        self._returns[:] = 0
        return observation

    def step_async(self, actions: Array) -> None:
        """Steps all environments."""
        self._actions = actions
        self.venv.step_async(actions)

    def step_wait(self) -> VecEnvStepReturn:
        """Adds the bonus to the rewards of the step."""
        observation, reward, done, infos = self.venv.step_wait()
        stepped_to = self._stepped_to(observation, done, infos)
        bonus = self.curiosity.pay(stepped_to, action=self._actions).cpu().numpy()
        if done.any():
            self.curiosity.begin(self._begins_with(observation), where=done)

        for info, task_reward, paid in zip(infos, reward, bonus, strict=True):
            info |= {"task_reward": float(task_reward), "bonus": float(paid)}
        self._returns += np.stack([reward, bonus], axis=1)
        self.episode_returns.extend(self._returns[done])
        self._returns[done] = 0
        return observation, reward + bonus, done, infos

    def _begins_with(self, observation: VecEnvObs) -> Array:
        """Returns the views (N, ...) that episodes begin with."""
        if isinstance(self.view, FromInfo):
            return _from(self.unwrapped.reset_infos, self.view)
        seen: Array = self.view(observation)
        return seen

    def _stepped_to(
        self, observation: VecEnvObs, done: Array, infos: list[dict[str, Any]]
    ) -> Array:
        """Returns the views (N, ...) after the step, the last ones of episodes included."""
        if isinstance(self.view, FromInfo):
            return _from(infos, self.view)
        seen: Array = self.view(observation)
        if not done.any():
            return seen
        final = [infos[row]["terminal_observation"] for row in np.flatnonzero(done)]
        return with_rows(seen, done, self.view(stacked(self.venv.observation_space, final)))


class CuriosityCallback(BaseCallback):
    """Lets the bonus of a CuriousVecEnv learn between rollouts, and logs.

    It learns at the start of a rollout, when the last one is complete: a refit clears memories.
    It logs `rollout/ep_task_reward_mean`, `rollout/ep_bonus_mean` and the metrics of the bonus,
    under `curiosity/`.
    """

    def _init_callback(self) -> None:
        self._env = find_curious(self.training_env)
        self._logged_at = 0

    def _on_rollout_start(self) -> None:
        self._record("curiosity", self._env.curiosity.learn())

    def _on_step(self) -> bool:
        return True

    def _on_rollout_end(self) -> None:
        if self.num_timesteps - self._logged_at < LOG_EVERY:
            return
        self._logged_at = self.num_timesteps
        self._record("curiosity", self._env.curiosity.metrics())
        if self._env.episode_returns:
            task, bonus = np.mean(self._env.episode_returns, axis=0)
            self._record("rollout", {"ep_task_reward_mean": task, "ep_bonus_mean": bonus})

    def _record(self, group: str, values: dict[str, float]) -> None:
        for name, value in values.items():
            self.logger.record(f"{group}/{name}", value)


class CuriousCheckpointCallback(CheckpointCallback):
    """Saves curiosity with each model: `NAME.curiosity/` next to `NAME.zip`.

    `env.curiosity.load("NAME.curiosity")` restores it.
    """

    def _on_step(self) -> bool:
        go_on = super()._on_step()
        if self.n_calls % self.save_freq == 0:
            model = Path(self._checkpoint_path(extension="zip"))
            find_curious(self.training_env).curiosity.save(model.with_suffix(".curiosity"))
        return go_on


def find_curious(env: VecEnv) -> CuriousVecEnv:
    """Returns the CuriousVecEnv within an algorithm's environments."""
    while isinstance(env, VecEnvWrapper):
        if isinstance(env, CuriousVecEnv):
            return env
        if isinstance(env, VecMonitor):
            raise ValueError(
                "VecMonitor must be inside CuriousVecEnv, got it around: it would log the sum "
                "of reward and bonus"
            )
        env = env.venv
    raise ValueError(
        f"the model's environments must have a CuriousVecEnv, got {type(env).__name__}"
    )


def _from(infos: Any, view: FromInfo) -> Array:
    if lacking := [row for row, info in enumerate(infos) if view.key not in info]:
        raise ValueError(f"infos must have {view.key!r}, got none in row {lacking[0]}")
    return np.stack([info[view.key] for info in infos])
