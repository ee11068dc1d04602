"""The Grid Oracle: pays for every cell of the floor that an episode enters for the first time.

Unlike the other bonuses it reads positions: it is a reference, and its cells measure coverage.
Shapes: N environments, V cells that an episode can visit.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import torch
from torch import Tensor, nn

from episodic_curiosity.bonus.state import check_part, check_parts, copied
from episodic_curiosity.bonus.statistics import BonusStatistics
from episodic_curiosity.support.checks import (
    check_at_least,
    check_mask,
    check_number,
    check_tensor,
)
from episodic_curiosity.worlds.base import Rollout, Step, WorldSpec

AXIS_BITS = 21  # three of them fill an int64 without its sign


class VisitedCells(nn.Module):
    """The cells each environment has visited in its episode, N * V * 8 bytes in all.

    V = episode_steps + 1: the cell an episode opens in counts, and every step can add one.
    Exact within 2 ** 20 = 1,048,576 cells of the origin; places farther out count as the
    border. Never synchronises with the GPU.
    """

    codes: Tensor  # (N, V) int64, the cells visited, in the first `count` places
    count: Tensor  # (N,) int64, changed in place by `visit`
    _places: Tensor  # (V,) int64, 0 .. V - 1

    def __init__(
        self, num_envs: int, episode_steps: int, cell: float, device: torch.device | str = "cpu"
    ) -> None:
        super().__init__()
        check_at_least("num_envs", num_envs, 1)
        check_at_least("episode_steps", episode_steps, 1)
        check_number("cell", cell, above=0)
        self.cell = cell
        size = (num_envs, episode_steps + 1)
        self.register_buffer("codes", torch.zeros(size, dtype=torch.int64, device=device))
        self.register_buffer("count", torch.zeros(num_envs, dtype=torch.int64, device=device))
        places = torch.arange(size[1], device=device)
        self.register_buffer("_places", places, persistent=False)

    @classmethod
    def of(cls, spec: WorldSpec, cell: float | None = None) -> Self:
        """Makes one for a world, with the world's oracle cells unless another size is given."""
        if not spec.has_position:
            raise ValueError(
                f"{spec.task} does not tell positions: there are no cells to visit"
            )
        cell = spec.oracle_cell if cell is None else cell
        return cls(spec.num_envs, spec.episode_steps, cell, spec.device)

    @property
    def num_envs(self) -> int:
        return self.codes.shape[0]

    @property
    def device(self) -> torch.device:
        return self.codes.device

    def visit(self, position: Tensor, first: Tensor) -> Tensor:
        """Enters (N, 3) positions; returns (N,) whether the cell is new in its episode.

        Where the (N,) mask `first` is true, the cells and the count of the previous episode are
        cleared first. A respawn within an episode clears nothing. An episode longer than
        `episode_steps` finds no new cells once all V places are taken.
        """
        check_tensor("position", position, (self.num_envs, 3), self.device)
        check_mask("first", first, self.num_envs, self.device)
        self.count.masked_fill_(first, 0)
        code = self._codes_of(position)[:, None]  # (N, 1)
        codes, places = self.codes, self._places
        if self.device.type == "cpu":  # no GPU to synchronise with: leave out empty places
            used = max(1, int(self.count.max()))
            codes, places = codes[:, :used], places[:used]
        is_known = ((codes == code) & (places < self.count[:, None])).any(dim=1)
        is_full = self.count == len(self._places)
        new = ~(is_known | is_full)
        place = self.count.clamp(max=len(self._places) - 1)[:, None]  # (N, 1), the next free
        kept = self.codes.gather(1, place)
        self.codes.scatter_(1, place, torch.where(new[:, None], code, kept))
        self.count += new
        return new

    def _codes_of(self, position: Tensor) -> Tensor:
        """One integer (N,) per cell; positions are truncated toward zero on every axis.

        So the cells at the origin are twice as wide, as in the published numbers.
        """
        # In float64: a float32 quotient just below a whole number can round up to it.
        cells = (position.double() / self.cell).to(torch.int64)
        farthest = (1 << AXIS_BITS - 1) - 1
        x, y, z = (cells.clamp(-farthest, farthest) + farthest).unbind(dim=1)
        return (x << 2 * AXIS_BITS) | (y << AXIS_BITS) | z


class Coverage(VisitedCells):
    """Cells covered by each environment's episode, the one count of training, tests and films.

    Counted are the place an episode opens in, that of every step, and the last one where the
    world reports it (`final_position`). Without it the last place is not counted: the position
    of that step already belongs to the next episode.
    """

    def add(self, step: Step) -> Tensor:
        """Enters a step, a reset's included; returns (N,) the cells covered so far.

        Of an episode that ends in this step it is the final count; `count` is the next one's.
        """
        assert step.position is not None
        if step.final_position is not None:
            self.visit(place_reached(step), torch.zeros_like(step.first))
        ended = self.count.clone()
        self.visit(step.position, step.first)
        return torch.where(step.first, ended, self.count)


def place_reached(step: Step) -> Tensor:
    """(N, 3) where the actions led: the final position of an episode that ends, if reported."""
    assert step.position is not None
    if step.final_position is None:
        return step.position
    return torch.where(step.first[:, None], step.final_position, step.position)


@dataclass(frozen=True, kw_only=True)
class OracleConfig:
    """The pay for a new cell, and the size of a cell."""

    alpha: float = 0.0524691  # the authors' launcher_script.py; 0.052 in the paper
    cell: float | None = None  # side, in units of the world's positions; None: the world's own

    def __post_init__(self) -> None:
        check_number("alpha", self.alpha, above=0)
        if self.cell is not None:
            check_number("cell", self.cell, above=0)


class OracleBonus:
    """b = alpha where the cell is new in this episode, else 0.

    The cell an episode opens in is not paid for: no action led there. Neither is its last
    place, which the authors' convention never shows to a bonus.
    """

    needs_views = False

    def __init__(self, spec: WorldSpec, config: OracleConfig) -> None:
        self.config = config
        self.cells = VisitedCells.of(spec, config.cell)
        self._paid = BonusStatistics(spec.device)

    def bonus(self, step: Step, action: Tensor | None = None) -> Tensor:  # noqa: ARG002
        """Returns (N,) the pay for the cells entered, and remembers them."""
        if step.position is None:
            raise ValueError("the Grid Oracle needs positions, got a step without them")
        new = self.cells.visit(step.position, step.first)
        bonus = (new & ~step.first) * self.config.alpha
        self._paid.add(bonus, where=~step.first)
        return bonus

    def learn(self, rollout: Rollout) -> dict[str, float]:  # noqa: ARG002
        """Does nothing: there is nothing to learn."""
        return {}

    def metrics(self) -> dict[str, float]:
        """Bonus statistics since the last call; synchronises with the GPU."""
        return self._paid.metrics()

    def state_dict(self) -> dict[str, Any]:
        """A copy of the cells visited and of the statistics."""
        return {"cells": copied(self.cells.state_dict()), "paid": self._paid.sums.clone()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continues from a state of equally many environments and equally long episodes."""
        check_parts(state, {"cells", "paid"})
        check_part(state, "cells", self.cells.state_dict())
        check_part(state, "paid", self._paid.sums)
        self.cells.load_state_dict(state["cells"])
        self._paid.sums.copy_(state["paid"])
