"""Keeps views that are redrawn from snapshots, so that a fit draws each of them once.

Shapes: T steps, N environments, B observations.
"""

import math
import mmap
from collections.abc import Callable

import torch
from torch import Tensor

from episodic_curiosity.reachability.experience import Experience
from episodic_curiosity.support.machine import free_bytes

SHARE = 4  # at most 1 / 4 of the free memory is used


def keep_drawn(
    experience: Experience, prepare: Callable[[Tensor], Tensor], num_views: int
) -> Experience:
    """The same experience; where views are redrawn on a CPU and fit into memory, kept ones.

    Nothing is kept if `num_views`, of all batches together, are less than two of each view.
    """
    is_redrawn = getattr(experience, "redraws", False) and experience.first.is_cpu
    if not is_redrawn or num_views < 2 * experience.first.numel():
        return experience
    kept = DrawnOnce(experience, prepare)
    return kept if kept.fits else experience


class DrawnOnce:
    """Another experience, whose views are kept in memory once they were drawn.

    Views may be kept in another form: `prepare` maps (B, ...) views to (B, ...) rows.
    """

    def __init__(self, drawn: Experience, prepare: Callable[[Tensor], Tensor]) -> None:
        self.first = drawn.first
        self._drawn, self._prepare = drawn, prepare
        example = self._draw(torch.zeros(1, dtype=torch.int64))
        self._shape, self._dtype = example.shape[1:], example.dtype
        self._is_there = torch.zeros(self.first.numel(), dtype=torch.bool)
        self._kept: Tensor | None = None  # (T * N, bytes), once asked for

    @property
    def num_bytes(self) -> int:
        """The memory for all views."""
        return self.first.numel() * self._dtype.itemsize * math.prod(self._shape)

    @property
    def fits(self) -> bool:
        """True if all views take at most a quarter of the free memory."""
        free = free_bytes(self.first.device)
        return free is not None and self.num_bytes <= free // SHARE

    def views(self, time: Tensor, env: Tensor) -> Tensor:
        """Returns the (B, ...) prepared observations at (B,) times and environments."""
        if self._kept is None:
            # A mapping of its own, which is returned to the system afterwards.
            room = torch.frombuffer(mmap.mmap(-1, self.num_bytes), dtype=self._dtype)
            self._kept = room.view(self.first.numel(), *self._shape)
        index = time * self.first.shape[1] + env
        missing = index[~self._is_there[index]]
        if len(missing):
            self._kept[missing] = self._draw(missing)
            self._is_there[missing] = True
        return self._kept.index_select(0, index)

    def _draw(self, index: Tensor) -> Tensor:
        num_envs = self.first.shape[1]
        return self._prepare(self._drawn.views(index // num_envs, index % num_envs))
