"""PPO+1: a constant bonus at every step, which rewards staying alive."""

from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor

from episodic_curiosity.bonus.base import Bonus, BonusConfig, BonusContext, Sight
from episodic_curiosity.bonus.diagnosis import Advice
from episodic_curiosity.bonus.method import Method
from episodic_curiosity.support.checks import check_number, check_type
from episodic_curiosity.worlds.base import WorldSpec


@dataclass(frozen=True, kw_only=True)
class ConstantConfig(BonusConfig):
    """Config of the constant bonus."""

    scale: float = 1.0  # the pay of a step

    def __post_init__(self) -> None:
        check_number("scale", self.scale, above=0)


class ConstantBonus(Bonus):
    """b = scale at every step.

    In our trainer the step that ends an episode pays nothing, as with every bonus. Ending early
    forfeits the remaining bonus, provided that no value is bootstrapped at a terminal state.

    Args:
        num_envs: N, the number of environments.
        config: the pay of a step.
        device: of all tensors.
    """

    sees = "observation"
    advice = Advice(varies=False)
    config: ConstantConfig

    def __init__(
        self,
        num_envs: int,
        config: ConstantConfig | None = None,
        *,
        device: torch.device | str = "cpu",
    ) -> None:
        super().__init__(num_envs, None, device)
        self.config = config or ConstantConfig()
        check_type("config", self.config, ConstantConfig)

    @classmethod
    def for_run(cls, config: ConstantConfig, spec: WorldSpec, _: BonusContext) -> Self:
        return cls(spec.num_envs, config, device=spec.device)

    def pay(self, now: Sight) -> Tensor:
        return now.stepped * self.config.scale


METHOD = Method(
    name="ppo+1",
    line="a constant bonus at every step, which rewards staying alive",
    config=ConstantConfig,
    bonus=ConstantBonus,
)
