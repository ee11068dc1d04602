"""The Grid Oracle: pays for every cell of the floor that an episode enters for the first time.

Unlike the other bonuses it sees positions: it is a reference. Shapes: N environments.
"""

from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor

from episodic_curiosity.bonus.base import Bonus, BonusConfig, BonusContext, Sight
from episodic_curiosity.bonus.coverage import VisitedCells, cell_of
from episodic_curiosity.bonus.diagnosis import Advice
from episodic_curiosity.bonus.method import Method
from episodic_curiosity.support.checks import check_number, check_type
from episodic_curiosity.worlds.base import WorldSpec


@dataclass(frozen=True, kw_only=True)
class OracleConfig(BonusConfig):
    """The pay for a new cell, and the size of a cell."""

    alpha: float = 0.0524691  # the authors' launcher_script.py; 0.052 in the paper
    cell: float | None = None  # side, in units of the world's positions; None: the world's own

    def __post_init__(self) -> None:
        check_number("alpha", self.alpha, above=0)
        if self.cell is not None:
            check_number("cell", self.cell, above=0)


class GridOracle(Bonus):
    """b = alpha where the cell is new in this episode, else 0.

    The cell an episode opens in is not paid for: no action led there.

    Args:
        num_envs: N, the number of environments.
        episode_steps: of the longest episode; each takes 8 bytes per environment.
        cell: side of a cell, in units of the positions.
        config: the pay for a new cell.
        device: of all tensors.
    """

    sees = "position"
    config: OracleConfig
    advice = Advice(
        scale="alpha",
        if_constant="no new cell is entered: try a smaller bonus.cell or a higher entropy",
    )

    def __init__(
        self,
        num_envs: int,
        episode_steps: int,
        cell: float,
        config: OracleConfig | None = None,
        *,
        device: torch.device | str = "cpu",
    ) -> None:
        super().__init__(num_envs, (3,), device)
        self.config = config or OracleConfig()
        check_type("config", self.config, OracleConfig)
        self.cells = VisitedCells(num_envs, episode_steps, cell, device)

    @classmethod
    def for_run(cls, config: OracleConfig, spec: WorldSpec, _: BonusContext) -> Self:
        cell = cell_of(spec) if config.cell is None else config.cell
        return cls(spec.num_envs, spec.episode_steps, cell, config, device=spec.device)

    def pay(self, now: Sight) -> Tensor:
        """Returns (N,) the pay for the cells entered, and remembers them."""
        return self.cells.visit(now.seen, now.opens, where=now.rows) * self.config.alpha


METHOD = Method(
    name="ppo+oracle",
    line="Grid Oracle: a bonus for each floor cell new to the episode",
    config=OracleConfig,
    bonus=GridOracle,
)
