"""Curiosity for Gymnasium's vector environments.

Shapes: N environments.
"""

from typing import Any

import numpy as np
from gymnasium.spaces import Discrete, MultiDiscrete, Space
from gymnasium.vector import VectorEnv, VectorWrapper

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
from episodic_curiosity.support.autoreset import AutoresetMode


class CuriousVectorEnv(VectorWrapper[Any, Any, Any, Any, Array]):
    """Adds a bonus to the reward, in every autoreset mode.

    `info["task_reward"]` and `info["bonus"]` are (N,) the two parts of the reward. Call
    `curiosity.learn()` between rollouts, if the bonus learns. `curiosity.eval()` is for
    evaluation, `curiosity.save(folder)` and `load` for checkpoints.

    With AutoresetMode.NEXT_STEP, the step after an episode's end is a reset: it is paid
    nothing, and the loss should leave it out.

    Args:
        env: a vector environment; RecordEpisodeStatistics inside it records the task's return,
            around this wrapper that of the sum.
        bonus: what to pay, made for as many environments.
        view: from a batch of observations to what curiosity sees, or a FromInfo.
        weight: factor on the bonus.
        training: False: nothing is paid or stored.
    """

    def __init__(
        self,
        env: VectorEnv[Any, Any, Array],
        bonus: Bonus,
        *,
        view: View | FromInfo = same,
        weight: float = 1.0,
        training: bool = True,
    ) -> None:
        if not isinstance(env, VectorEnv):
            raise TypeError(
                f"env must be a gymnasium.vector.VectorEnv, got {type(env).__name__}: make one "
                f"with gymnasium.make_vec"
            )
        super().__init__(env)
        mode = env.metadata.get("autoreset_mode")
        if not isinstance(mode, AutoresetMode):
            raise ValueError(
                f"env.metadata['autoreset_mode'] must be an AutoresetMode, got {mode!r}"
            )
        self.view = view
        self.curiosity = AttachedBonus(bonus, env.num_envs, weight=weight, training=training)
        check_view(view, bonus, env.single_observation_space, env.num_envs)
        self._mode = mode
        self._is_reset_next = np.zeros(env.num_envs, np.bool_)  # of NEXT_STEP

    def reset(
        self, *, seed: Any = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Resets the environments, or those of `options["reset_mask"]`."""
        mask = (options or {}).get("reset_mask")  # Gymnasium's environments remove it
        observation, info = self.env.reset(seed=seed, options=options)
        self.curiosity.begin(self._see(observation, info), where=mask)
        self._is_reset_next &= False if mask is None else ~mask
        return observation, info

    def step(self, actions: Any) -> tuple[Any, Array, Array, Array, dict[str, Any]]:
        """Steps the environments and adds the bonus to their rewards."""
        observation, reward, terminated, truncated, info = self.env.step(actions)
        now = self._see(observation, info)
        ended = terminated | truncated
        if self._mode == AutoresetMode.SAME_STEP and ended.any():
            stepped_to, begins, stepped = self._before_reset(now, info, ended), ended, None
        elif self._mode == AutoresetMode.NEXT_STEP and self._is_reset_next.any():
            stepped_to, begins, stepped = now, self._is_reset_next, ~self._is_reset_next
        else:
            stepped_to, begins, stepped = now, None, None
        action = _as_array(actions, self.single_action_space)
        bonus = self.curiosity.pay(stepped_to, action=action, where=stepped).cpu().numpy()
        if begins is not None:
            self.curiosity.begin(now, where=begins)
        self._is_reset_next = ended

        everywhere = np.ones(self.num_envs, np.bool_)
        info |= {"task_reward": reward, "_task_reward": everywhere}
        info |= {"bonus": bonus, "_bonus": everywhere}
        return observation, reward + bonus, terminated, truncated, info

    def _see(self, observation: Any, info: dict[str, Any]) -> Array:
        seen = (
            _from(info, self.view)
            if isinstance(self.view, FromInfo)
            else self.view(observation)
        )
        if not isinstance(seen, np.ndarray):
            raise TypeError(
                f"view must return a NumPy array, got {type(seen).__name__}: NumpyToTorch goes "
                f"around CuriousVectorEnv"
            )
        return seen

    def _before_reset(self, now: Array, info: dict[str, Any], ended: Array) -> Array:
        """Returns the views (N, ...) after the step; in `now`, new episodes have begun."""
        if isinstance(self.view, FromInfo):
            return with_rows(now, ended, _from(info["final_info"], self.view, ended))
        final = stacked(self.single_observation_space, list(info["final_obs"][ended]))
        return with_rows(now, ended, self.view(final))


def _from(info: dict[str, Any], view: FromInfo, rows: Any = slice(None)) -> Array:
    """What curiosity sees in the info of some rows."""
    if view.key not in info:
        raise ValueError(f"info must have {view.key!r}, got {', '.join(info) or 'nothing'}")
    found: Array = info[view.key][rows]
    if found.dtype != object:
        return found
    # Gymnasium batches tuples and lists as objects, None where there is none.
    nothing = np.zeros_like(next(row for row in found if row is not None))
    return np.stack([nothing if row is None else row for row in found])


def _as_array(actions: Any, space: Space[Any]) -> Array | None:
    """Actions (N, ...) for bonuses that depend on them; None for tuples and dicts of spaces.

    Discrete actions are numbered from 0.
    """
    if isinstance(actions, dict | tuple):
        return None
    start = space.start if isinstance(space, Discrete | MultiDiscrete) else None
    return np.asarray(actions) if start is None else np.asarray(actions) - start
