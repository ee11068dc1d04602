"""A bonus at the environments of another library: what all adapters share.

Shapes: N environments.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

import torch
from torch import Tensor, nn

from episodic_curiosity.bonus.base import Bonus, Given
from episodic_curiosity.support.checks import (
    check_mask,
    check_number,
    check_type,
    first_difference,
    to_tensor,
)
from episodic_curiosity.support.saving import LoadError
from episodic_curiosity.support.state import copied
from episodic_curiosity.support.state_files import read_state, save_state

KIND = "curiosity"  # of its files


class AttachedBonus(nn.Module):
    """A bonus with its weight, which pays and stores in training mode only.

    `eval()` switches to evaluation and `train()` back. Then a row counts from its next episode,
    because the bonus has not seen the beginning of the current one.

    Args:
        bonus: any bonus of this package, or a subclass of Bonus.
        num_envs: N, the number of environments.
        weight: factor on the bonus; may be changed at any time.
        training: False: nothing is paid, stored or learnt.
    """

    begun: Tensor  # (N,) bool, the present episode was seen from its first observation on

    def __init__(
        self, bonus: Bonus, num_envs: int, *, weight: float = 1.0, training: bool = True
    ) -> None:
        super().__init__()
        check_type("bonus", bonus, Bonus)
        check_number("weight", weight)
        self.bonus = bonus
        self.weight = weight
        self.num_envs = num_envs
        nowhere = torch.zeros(num_envs, dtype=torch.bool, device=bonus.device)
        self.register_buffer("begun", nowhere)
        self.train(training)

    def begin(self, seen: Given, *, where: Given | None = None) -> None:
        """Begins an episode with (N, ...) what is seen, in the rows of the (N,) mask."""
        if self.training:
            rows = self._mask(where)
            self.bonus.begin(seen, where=rows)
            self.begun |= rows

    def pay(
        self, seen: Given, *, action: Given | None = None, where: Given | None = None
    ) -> Tensor:
        """Returns weight * bonus, (N,), of what is seen after a step, 0 outside the mask."""
        if not self.training:
            return torch.zeros(self.num_envs, device=self.bonus.device)
        rows = self.begun & self._mask(where)
        return self.weight * self.bonus.bonus(seen, action=action, where=rows)

    def learn(self) -> dict[str, float]:
        """Lets the bonus learn, as ECO and ICM do; call it between rollouts."""
        return self.bonus.learn() if self.training and self.bonus.learns else {}

    def metrics(self) -> dict[str, float]:
        """Metrics of the bonus, before its weight, since the last call."""
        return self.bonus.metrics()

    def train(self, mode: bool = True) -> Self:
        """Switches between training and evaluation."""
        if mode and self.bonus.num_envs != self.num_envs:
            raise ValueError(
                f"the bonus must be for {self.num_envs} environments, got one for "
                f"{self.bonus.num_envs}"
            )
        if mode != self.training:
            self.begun.zero_()
        return super().train(mode)

    def save(self, folder: str | Path) -> None:
        """Writes everything, memories included, as safetensors and JSON."""
        save_state(Path(folder), KIND, super().state_dict())  # no copy

    def load(self, folder: str | Path) -> None:
        """Restores what `save` wrote; raises before anything has changed."""
        try:
            self.load_state_dict(read_state(Path(folder), KIND))
        except LoadError:
            raise
        except (ValueError, KeyError, TypeError, RuntimeError) as error:
            raise LoadError(f"{folder} is of another bonus: {error}") from None

    def state_dict(self, **options: Any) -> dict[str, Any]:  # type: ignore[override]
        """Returns a copy of the complete state, for an exact resume."""
        state: dict[str, Any] = super().state_dict(**options)
        return state if "destination" in options else copied(state)  # as of a Bonus

    def load_state_dict(
        self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False
    ) -> Any:
        """Restores a state of `state_dict`; raises before anything has changed."""
        check_type("state_dict", state_dict, Mapping)
        inner = {name.removeprefix("bonus."): part for name, part in state_dict.items()}
        begun = {"begun": inner.pop("begun")} if "begun" in inner else {}
        if difference := first_difference(begun, {"begun": self.begun}):
            raise ValueError(f"the state {difference}")
        loaded = self.bonus.load_state_dict(inner, strict, assign)
        self.begun.copy_(begun["begun"])
        return loaded

    def _mask(self, given: Given | None) -> Tensor:
        """The rows (N,) as a mask on the device; all without one."""
        if given is None:
            return torch.ones_like(self.begun)
        mask = to_tensor("where", given, self.begun.device)
        check_mask("where", mask, self.num_envs, self.begun.device)
        return mask
