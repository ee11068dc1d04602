"""What came of the episodes that N environments have ended, summed up without waiting.

Shapes: N environments, A actions.
"""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from episodic_curiosity.bonus.oracle import VisitedCells
from episodic_curiosity.bonus.state import check_part, check_parts, copied
from episodic_curiosity.worlds.base import Step, WorldSpec

SUMS = ("episodes", "reward", "bonus", "length", "coverage")


class EpisodeTally:
    """Sums of whole episodes, and how often each action was taken, since it was last asked.

    Rewards are as the world pays them. Coverage counts Grid-Oracle cells; the very last place
    of an episode is left out, which the world leaves in the step that reaches it.
    """

    def __init__(self, spec: WorldSpec, *, whole_at_start: bool) -> None:
        """Without `whole_at_start` the episodes that are under way at first do not count."""
        num_envs, device = spec.num_envs, spec.device
        self._spec = spec
        self._whole_at_start = whole_at_start
        self._cells = VisitedCells.of(spec) if spec.has_position else None
        # Of the episodes under way: reward, bonus, length, and whether they are whole.
        self._running = torch.zeros(num_envs, 3, dtype=torch.float64, device=device)
        self._counts = torch.full((num_envs,), whole_at_start, device=device)
        self._sums = torch.zeros(len(SUMS), dtype=torch.float64, device=device)
        self._actions = torch.zeros(max(1, spec.num_actions), device=device)

    def open(self, step: Step) -> None:
        """Takes in the first observations of all; episodes that were under way are given up."""
        self._running.zero_()
        self._counts.fill_(self._whole_at_start)
        self._visit(step)

    def add(self, step: Step, action: Tensor, bonus: Tensor) -> None:
        """Takes in a step, the action that led there and what curiosity paid for it."""
        paid = torch.stack([step.reward, bonus, torch.ones_like(bonus)], dim=1)
        self._running += paid
        covered = self._cells.count if self._cells is not None else torch.zeros_like(bonus)
        ended = torch.cat(
            [torch.ones_like(self._running[:, :1]), self._running, covered[:, None].double()],
            dim=1,
        )  # (N, len(SUMS))
        self._sums += (ended * (step.first & self._counts)[:, None]).sum(dim=0)
        self._running.masked_fill_(step.first[:, None], 0.0)
        self._counts |= step.first
        if self._spec.num_actions:
            self._actions.index_add_(0, action, torch.ones_like(bonus))
        self._visit(step)

    def take(self) -> dict[str, float]:
        """Means over the episodes since this was last asked, and the shares of the actions.

        No means where no episode ended. Waits for the device.
        """
        sums = dict(zip(SUMS, self._sums.tolist(), strict=True))
        metrics = {"episodes": sums.pop("episodes")}
        if metrics["episodes"]:
            metrics |= {name: total / metrics["episodes"] for name, total in sums.items()}
            if self._cells is None:
                del metrics["coverage"]
        names = self._spec.action_names or tuple(map(str, range(self._spec.num_actions)))
        taken = self._actions[: self._spec.num_actions]
        shares = (taken / taken.sum().clamp(min=1)).tolist()
        metrics |= {f"action/{name}": share for name, share in zip(names, shares, strict=True)}
        self._sums.zero_()
        self._actions.zero_()
        return metrics

    def state_dict(self) -> dict[str, Any]:
        """A copy of everything."""
        return copied(self._tensors())

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Goes on from such a state of the same world."""
        tensors = self._tensors()
        check_parts(state, set(tensors))
        for name, tensor in tensors.items():
            check_part(state, name, tensor)
        for name, tensor in tensors.items():
            tensor.copy_(state[name])

    def _visit(self, step: Step) -> None:
        if self._cells is not None:
            assert step.position is not None
            self._cells.visit(step.position, step.first)

    def _tensors(self) -> dict[str, Tensor]:
        cells = {} if self._cells is None else self._cells.state_dict()
        return {
            "running": self._running,
            "counts": self._counts,
            "sums": self._sums,
            "actions": self._actions,
            **{f"cells.{name}": tensor for name, tensor in cells.items()},
        }
