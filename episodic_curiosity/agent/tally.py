"""Statistics of the episodes that have ended, kept on the device until read.

Episodes that succeed end before those that are truncated. If each counted when it ends, the
first to count would all be successes. So an episode counts when it would have been truncated:
`episode_steps` after its beginning.
Shapes: N environments, A actions, W steps that episodes wait.
"""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from episodic_curiosity.bonus.coverage import Coverage
from episodic_curiosity.support.compiling import fused
from episodic_curiosity.support.state import check_part, check_parts, copied
from episodic_curiosity.worlds.base import Step, WorldSpec

SUMS = ("episodes", "reward", "bonus", "length", "coverage")
# W is at most this, the longest episodes of the paper. A limit far beyond the usual length, as
# Gymnasium's tasks may have, would leave a short run without a curve.
LONGEST_WAIT = 1_800


class EpisodeTally:
    """Means over complete episodes, and the share of each action, since the last `take`.

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
        self._began = torch.zeros(num_envs, dtype=torch.int64, device=device)
        # Sums over the episodes that have ended but still wait, by when they began.
        self._wait = min(spec.episode_steps, LONGEST_WAIT)
        shape = (self._wait, len(SUMS))
        self._waiting = torch.zeros(shape, dtype=torch.float64, device=device)
        self._clock = torch.zeros(1, dtype=torch.int64, device=device)  # steps so far
        self._sums = torch.zeros(len(SUMS), dtype=torch.float64, device=device)
        self._actions = torch.zeros(max(1, spec.num_actions), device=device)
        self._tensors = {
            "running": self._running,
            "counts": self._counts,
            "began": self._began,
            "waiting": self._waiting,
            "clock": self._clock,
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
        self._began.copy_(self._clock.expand_as(self._began))
        if self._coverage is not None:
            self._coverage.add(step)

    def add(self, step: Step, action: Tensor, bonus: Tensor) -> None:
        """Takes a step, the action that led to it and the bonus paid for it."""
        covered = self._coverage.add(step) if self._coverage else torch.zeros_like(bonus)
        running = self._running, self._counts, self._began
        row, ended = _end(*running, self._clock, step.reward, bonus, covered, step.first)
        row %= self._wait
        self._waiting.index_add_(0, row, ended)
        self._clock += 1
        due = self._clock % self._wait  # (1,), the row of those that began W steps ago
        self._sums += self._waiting.index_select(0, due)[0]
        self._waiting.index_fill_(0, due, 0.0)
        if self._spec.num_actions:
            self._actions.index_add_(0, action, torch.ones_like(bonus))

    def take(self) -> dict[str, float]:
        """Means over the episodes that counted since the last call, and shares of the actions.

        No means where no episode counted. Synchronises with the GPU.
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


@fused
def _end(
    running: Tensor,
    counts: Tensor,
    began: Tensor,
    clock: Tensor,
    reward: Tensor,
    bonus: Tensor,
    covered: Tensor,
    first: Tensor,
) -> tuple[Tensor, Tensor]:
    """Counts a step; returns when the episodes that it ends began, (N,), and their sums.

    The sums (N, len(SUMS)) of other episodes are zero.
    """
    one = torch.ones_like(bonus)
    running += torch.stack([reward, bonus, one], dim=1)
    ended = torch.column_stack([one, running, covered]) * (first & counts)[:, None]
    before = began.clone()
    began.copy_(torch.where(first, clock + 1, began))
    running.masked_fill_(first[:, None], 0.0)
    counts |= first
    return before, ended
