"""Statistics of the episodes that have ended, kept on the device until read.

Shapes: N environments, A actions.
"""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from episodic_curiosity.bonus.coverage import Coverage
from episodic_curiosity.support.state import check_part, check_parts, copied
from episodic_curiosity.worlds.base import Step, WorldSpec

SUMS = ("episodes", "reward", "bonus", "length", "coverage")


class EpisodeTally:
    """Sums over complete episodes, and how often each action was taken, since the last `take`.

    Rewards are as the world pays them.
    """

    def __init__(self, spec: WorldSpec, *, whole_at_start: bool) -> None:
        """Without `whole_at_start` the first episode of each environment does not count."""
        num_envs, device = spec.num_envs, spec.device
        self._spec = spec
        self._whole_at_start = whole_at_start
        # Of the episodes under way: reward, bonus, length, and whether they are complete.
        self._running = torch.zeros(num_envs, 3, dtype=torch.float64, device=device)
        self._counts = torch.full((num_envs,), whole_at_start, device=device)
        self._sums = torch.zeros(len(SUMS), dtype=torch.float64, device=device)
        self._actions = torch.zeros(max(1, spec.num_actions), device=device)
        self._tensors = {
            "running": self._running,
            "counts": self._counts,
            "sums": self._sums,
            "actions": self._actions,
        }
        self._coverage = Coverage.of(spec) if spec.has_position else None
        if self._coverage is not None:
            cells = self._coverage.state_dict()
            self._tensors |= {f"cells.{name}": tensor for name, tensor in cells.items()}

    def open(self, step: Step) -> None:
        """Takes the step of a reset; unfinished episodes are dropped."""
        self._running.zero_()
        self._counts.fill_(self._whole_at_start)
        if self._coverage is not None:
            self._coverage.add(step)

    def add(self, step: Step, action: Tensor, bonus: Tensor) -> None:
        """Takes a step, the action that led to it and the bonus paid for it."""
        one = torch.ones_like(bonus)
        self._running += torch.stack([step.reward, bonus, one], dim=1)
        covered = self._coverage.add(step) if self._coverage else 0 * one
        ended = torch.column_stack([one, self._running, covered])  # (N, len(SUMS))
        self._sums += (ended * (step.first & self._counts)[:, None]).sum(dim=0)
        self._running.masked_fill_(step.first[:, None], 0.0)
        self._counts |= step.first
        if self._spec.num_actions:
            self._actions.index_add_(0, action, one)

    def take(self) -> dict[str, float]:
        """Means over the episodes since the last call, and the shares of the actions.

        No means where no episode ended. Synchronises with the GPU.
        """
        sums = dict(zip(SUMS, self._sums.tolist(), strict=True))
        metrics = {"episodes": sums.pop("episodes")}
        if metrics["episodes"]:
            metrics |= {name: total / metrics["episodes"] for name, total in sums.items()}
            if self._coverage is None:
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
        return copied(self._tensors)

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continues from such a state of the same world."""
        check_parts(state, set(self._tensors))
        for name, tensor in self._tensors.items():
            check_part(state, name, tensor)
        for name, tensor in self._tensors.items():
            tensor.copy_(state[name])
