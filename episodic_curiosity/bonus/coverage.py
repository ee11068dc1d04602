"""The cells of the floor that each episode has visited, for coverage and the Grid Oracle.

Shapes: N environments, V cells that an episode can visit.
"""

from typing import Self

import torch
from torch import Tensor, nn

from episodic_curiosity.support.checks import (
    check_at_least,
    check_mask,
    check_number,
    check_tensor,
)
from episodic_curiosity.support.compiling import fused
from episodic_curiosity.worlds.base import Step, WorldSpec

AXIS_BITS = 21  # three of them fill an int64 without its sign


class VisitedCells(nn.Module):
    """The cells each environment has visited in its episode, N * V * 8 bytes.

    V = episode_steps + 1: the cell an episode opens in counts, and every step can add one.
    Exact within 2 ** 20 = 1,048,576 cells of the origin; places farther out count as the
    border. Never synchronises with the GPU.
    """

    codes: Tensor  # (N, V) int64, the cells visited, in the first `count` places
    count: Tensor  # (N,) int64, changed in place by `visit`

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

    @classmethod
    def of(cls, spec: WorldSpec) -> Self:
        """Makes one for a world."""
        return cls(spec.num_envs, spec.episode_steps, cell_of(spec), spec.device)

    @property
    def num_envs(self) -> int:
        return self.codes.shape[0]

    @property
    def device(self) -> torch.device:
        return self.codes.device

    def visit(self, position: Tensor, first: Tensor, where: Tensor | None = None) -> Tensor:
        """Enters (N, 3) positions; returns (N,) whether the cell is new in its episode.

        Where the (N,) mask `first` is true, the cells and the count of the previous episode are
        cleared first. Rows outside the (N,) mask `where` enter nothing. A respawn within an
        episode clears nothing. An episode longer than `episode_steps` finds no new cells once
        all V places are taken.
        """
        check_tensor("position", position, (self.num_envs, 3), self.device)
        check_mask("first", first, self.num_envs, self.device)
        codes = self.codes
        if self.device.type == "cpu":  # no GPU to synchronise with: leave out empty places
            codes = codes[:, : max(1, int(self.count.max()))]
        most = self.codes.shape[1]
        code, new, place = _find(codes, self.count, position, first, where, self.cell, most)
        kept = self.codes.gather(1, place)
        self.codes.scatter_(1, place, torch.where(new[:, None], code, kept))
        return new


@fused
def _find(
    codes: Tensor,
    count: Tensor,
    position: Tensor,
    first: Tensor,
    where: Tensor | None,
    cell: float,
    most: int,
) -> tuple[Tensor, Tensor, Tensor]:
    """The cells' codes (N, 1), whether they are new (N,) and places for them (N, 1); counts."""
    count.masked_fill_(first, 0)
    code = _codes_of(position, cell)[:, None]
    places = torch.arange(codes.shape[1], device=codes.device)
    is_known = ((codes == code) & (places < count[:, None])).any(dim=1)
    new = ~(is_known | (count == most))
    if where is not None:
        new = new & where
    place = count.clamp(max=most - 1)[:, None]  # the next free
    count += new
    return code, new, place


def _codes_of(position: Tensor, cell: float) -> Tensor:
    """One integer (N,) per cell; positions are truncated toward zero on every axis.

    So the cells at the origin are twice as wide, as in the published numbers.
    """
    # In float64: a float32 quotient just below a whole number can round up to it.
    cells = (position.double() / cell).to(torch.int64)
    farthest = (1 << AXIS_BITS - 1) - 1
    x, y, z = (cells.clamp(-farthest, farthest) + farthest).unbind(dim=1)
    return (x << 2 * AXIS_BITS) | (y << AXIS_BITS) | z


def cell_of(spec: WorldSpec) -> float:
    """The side of a world's oracle cells; raises if the world has no positions."""
    if not spec.has_position:
        raise ValueError(f"{spec.task} does not tell positions: there are no cells to visit")
    return spec.oracle_cell


class Coverage(VisitedCells):
    """Cells covered by each environment's episode, the one count of training, tests and films.

    It counts the place where an episode begins, the place of every step, and the last one if
    the world reports it (`final_position`). Otherwise the last place is not counted, because
    the position of that step already belongs to the next episode.
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
