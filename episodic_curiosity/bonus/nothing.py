"""No bonus, for plain PPO."""

from typing import Self

from torch import Tensor

from episodic_curiosity.bonus.base import Bonus, BonusContext, Sight
from episodic_curiosity.bonus.method import Method
from episodic_curiosity.worlds.base import WorldSpec


class NoBonus(Bonus):
    """b = 0."""

    sees = "observation"
    pays = False

    @classmethod
    def for_run(cls, config: None, spec: WorldSpec, _: BonusContext) -> Self:  # noqa: ARG003
        return cls(spec.num_envs, None, spec.device)

    def pay(self, now: Sight) -> Tensor:
        return now.stepped * 0.0

    def statistics(self) -> dict[str, float]:
        return {}


METHOD = Method(
    name="ppo", line="no bonus: the task's reward alone", config=None, bonus=NoBonus
)
