"""Curiosity for TorchRL: a transform of a batched environment.

Shapes: N environments, the product of the environment's batch size.
"""

from collections.abc import Callable
from typing import Any, Self

import torch
from tensordict import TensorDictBase
from torch import Tensor
from torchrl.data.tensor_specs import Composite, OneHot, Unbounded
from torchrl.envs.transforms import Transform

from episodic_curiosity.adapters.attached import AttachedBonus
from episodic_curiosity.adapters.views import check_seen
from episodic_curiosity.bonus.base import Bonus
from episodic_curiosity.support.checks import check_type


class CuriosityTransform(Transform):  # type: ignore[misc]
    """Adds a bonus to `("next", "reward")`.

    `("next", "task_reward")` and `("next", "bonus")` are its two parts; a RewardSum after this
    transform sums each over an episode. Call `curiosity.learn()` between batches.
    `curiosity.eval()` is for evaluation; `env.eval()` is not, because TorchRL calls it for
    every environment. `curiosity.save(folder)` and `load` are for checkpoints.

    The transform goes around ParallelEnv or SerialEnv, so that one bonus serves all rows.

    Args:
        bonus: what to pay, made for as many environments.
        view: from a tensordict of N rows to what curiosity sees; None: its "observation".
        weight: factor on the bonus.
        training: False: nothing is paid or stored.
    """

    def __init__(
        self,
        bonus: Bonus,
        *,
        view: Callable[[TensorDictBase], Tensor] | None = None,
        weight: float = 1.0,
        training: bool = True,
    ) -> None:
        super().__init__(in_keys=["reward"], out_keys=["reward", "task_reward", "bonus"])
        check_type("bonus", bonus, Bonus)
        if view is not None and not callable(view):
            raise TypeError(f"view must be a function, got {type(view).__name__}")
        self.view = _observation if view is None else view
        self.curiosity = AttachedBonus(bonus, bonus.num_envs, weight=weight, training=training)

    def train(self, mode: bool = True) -> Self:
        """Leaves curiosity as it is: TorchRL switches every transform to evaluation."""
        self.training = mode
        return self

    def transform_reward_spec(self, reward_spec: Composite) -> Composite:
        """Declares the two parts of the reward."""
        like = reward_spec["reward"]
        for name in self.out_keys:
            reward_spec[name] = Unbounded(like.shape, device=like.device, dtype=like.dtype)
        return reward_spec

    def _reset(
        self, tensordict: TensorDictBase, tensordict_reset: TensorDictBase
    ) -> TensorDictBase:
        if self.curiosity.training:
            rows = self._rows(tensordict, "_reset")
            self.curiosity.begin(self._see(tensordict_reset), where=rows)
        return tensordict_reset

    _reset_on_native_autoreset = _reset

    def _step(
        self, tensordict: TensorDictBase, next_tensordict: TensorDictBase
    ) -> TensorDictBase:
        task_reward = next_tensordict.get("reward")
        bonus = torch.zeros_like(task_reward)
        if self.curiosity.training:
            paid = self.curiosity.pay(
                self._see(next_tensordict),
                action=self._action(tensordict),
                where=self._rows(tensordict, "_step"),
            )
            bonus.copy_(paid.view(bonus.shape))
        next_tensordict.set("task_reward", task_reward)
        next_tensordict.set("bonus", bonus)
        next_tensordict.set("reward", task_reward + bonus)
        return next_tensordict

    def _check_batched_worker_compat(self) -> None:
        raise ValueError(
            "CuriosityTransform must be around ParallelEnv or SerialEnv, got it inside: every "
            "worker would have a bonus of its own"
        )

    def _see(self, tensordict: TensorDictBase) -> Tensor:
        """Returns the views (N, ...)."""
        num_envs = tensordict.numel()
        if num_envs != self.curiosity.num_envs:
            raise ValueError(
                f"the bonus must be for {num_envs} environments, got one for "
                f"{self.curiosity.num_envs}"
            )
        seen = self.view(tensordict.reshape(num_envs))
        check_seen(seen, self.curiosity.bonus)
        check_type("what view returns", seen, Tensor)
        return seen.to(self.curiosity.bonus.device)

    def _action(self, tensordict: TensorDictBase) -> Tensor | None:
        """Actions, (N,) int64 or (N, ...) float32; None if they have other names."""
        action = tensordict.get("action", None)
        if action is None:
            return None
        if self._is_one_hot:
            action = action.long().argmax(-1)
        rows: Tensor = action.reshape(
            self.curiosity.num_envs, *action.shape[tensordict.batch_dims :]
        )
        return rows.to(self.curiosity.bonus.device)

    def _rows(self, tensordict: TensorDictBase, key: str) -> Tensor | None:
        """The (N,) mask of a partial reset or step; None: all rows."""
        mask: Any = tensordict.get(key, None)
        return None if mask is None else mask.reshape(-1).to(self.curiosity.bonus.device)

    @property
    def _is_one_hot(self) -> bool:
        return isinstance(self.parent.full_action_spec.get("action", None), OneHot)


def _observation(tensordict: TensorDictBase) -> Tensor:
    keys = list(tensordict.keys())
    if "observation" not in keys:
        raise ValueError(
            f"view must be given where there is no 'observation', got {', '.join(keys)}"
        )
    observation: Tensor = tensordict["observation"]
    return observation
