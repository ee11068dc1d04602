"""Training data of the R-network: observations with the borders of their episodes.

Shapes: T steps, N environments, B observations.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import torch
from numpy.typing import NDArray
from torch import Tensor

from episodic_curiosity.support.checks import to_tensor


class Experience(Protocol):
    """Trajectories of N environments with random access to their observations.

    If it has a true `can_capture`, `views` does not synchronise with the GPU, and fitting runs
    as a CUDA graph. If it has a true `redraws`, `views` renders: a fit on a CPU keeps them.
    """

    @property
    def first(self) -> Tensor:
        """(T, N) bool, where episodes begin."""

    def views(self, time: Tensor, env: Tensor) -> Tensor:
        """Returns the (B, ...) observations at (B,) times and environments."""


class Frames:
    """Trajectories held as one (T, N, ...) tensor or array of bytes or floats.

    Args:
        views: (T, N, ...) what N environments showed at T steps, uint8 or float32.
        first: (T, N) bool, where an episode begins.
    """

    def __init__(self, views: Tensor | NDArray[Any], first: Tensor | NDArray[Any]) -> None:
        cpu = torch.device("cpu")
        views, first = to_tensor("views", views, cpu), to_tensor("first", first, cpu)
        for name, given in (("views", views), ("first", first)):
            if given.layout != torch.strided:
                raise TypeError(f"{name} must be a dense tensor, got {given.layout}")
            if given.is_meta:
                raise ValueError(f"{name} must have content, got a tensor on meta")
        if views.dtype not in (torch.uint8, torch.float32):
            raise TypeError(f"views must be of dtype uint8 or float32, got {views.dtype}")
        if first.dtype != torch.bool:
            raise TypeError(f"first must be of dtype bool, got {first.dtype}")
        if views.shape[:2] != first.shape:
            raise ValueError(
                f"views and first must agree in (steps, environments), "
                f"got {tuple(views.shape[:2])} and {tuple(first.shape)}"
            )
        self.all_views = views
        self.first = first

    def views(self, time: Tensor, env: Tensor) -> Tensor:
        return self.all_views[time, env]


class Window(NamedTuple):
    """The steps of another experience from `start` to `stop`, exclusive."""

    whole: Experience
    start: int
    stop: int

    @property
    def can_capture(self) -> bool:
        return getattr(self.whole, "can_capture", False)

    @property
    def redraws(self) -> bool:
        return getattr(self.whole, "redraws", False)

    @property
    def first(self) -> Tensor:
        return self.whole.first[self.start : self.stop]

    def views(self, time: Tensor, env: Tensor) -> Tensor:
        return self.whole.views(time + self.start, env)


class Mixture:
    """Experiences of several worlds, with their environments concatenated.

    `first` is on the CPU, and so is the drawing of pairs: finding a pair's world does not
    synchronise with a GPU.
    """

    def __init__(self, parts: Sequence[Experience]) -> None:
        num_steps = sorted({part.first.shape[0] for part in parts})
        if len(num_steps) != 1:
            raise ValueError(f"parts of a mixture must have one length, got {num_steps} steps")
        self.parts = tuple(parts)
        self.redraws = any(getattr(part, "redraws", False) for part in parts)
        self.first = torch.cat([part.first.cpu() for part in parts], dim=1)
        sizes = torch.tensor([part.first.shape[1] for part in parts])
        self._part = torch.arange(len(parts)).repeat_interleave(sizes)  # of each environment
        self._env = torch.cat([torch.arange(int(size)) for size in sizes])  # inside its part

    def views(self, time: Tensor, env: Tensor) -> Tensor:
        part, env = self._part[env], self._env[env]
        by_part = part.argsort(stable=True)
        drawn = []
        for number, experience in enumerate(self.parts):
            rows = (part == number).nonzero(as_tuple=True)[0]
            if len(rows):
                device = experience.first.device
                drawn.append(experience.views(time[rows].to(device), env[rows].to(device)))
        views = torch.cat(drawn)
        return views[by_part.argsort().to(views.device)]
