"""What the R-network learns from: observations with the borders of their episodes.

Shapes: T steps, N environments, B observations.
"""

from pathlib import Path
from typing import Any, NamedTuple, Protocol

import torch
from numpy.typing import NDArray
from torch import Tensor

from episodic_curiosity.checks import check_at_least, check_mask, check_views, to_tensor


class Experience(Protocol):
    """Trajectories of N environments, from which any observation can be had again."""

    @property
    def first(self) -> Tensor:
        """(T, N) bool, where episodes begin."""

    def views(self, time: Tensor, env: Tensor) -> Tensor:
        """The (B, ...) observations at (B,) times and environments."""


class Frames:
    """Trajectories held as one (T, N, ...) tensor, or array, of bytes or floats."""

    def __init__(self, views: Tensor | NDArray[Any], first: Tensor | NDArray[Any]) -> None:
        cpu = torch.device("cpu")
        views, first = to_tensor("views", views, cpu), to_tensor("first", first, cpu)
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
    """The steps of another experience from `start` up to `stop`."""

    whole: Experience
    start: int
    stop: int

    @property
    def first(self) -> Tensor:
        return self.whole.first[self.start : self.stop]

    def views(self, time: Tensor, env: Tensor) -> Tensor:
        return self.whole.views(time + self.start, env)


class FrameReplay:
    """The newest T steps of N environments, in T * N * bytes-per-observation of memory."""

    def __init__(
        self,
        num_steps: int,
        num_envs: int,
        view_shape: tuple[int, ...],
        dtype: torch.dtype,
        device: torch.device,
    ) -> None:
        check_at_least("num_steps", num_steps, 1)
        check_fits((num_steps, num_envs, *view_shape), dtype, device)
        self._views = torch.empty(
            (num_steps, num_envs, *view_shape), dtype=dtype, device=device
        )
        self._first = torch.zeros((num_steps, num_envs), dtype=torch.bool, device=device)
        self._added = 0

    def add(self, view: Tensor, first: Tensor) -> None:
        """Appends one step of all environments; the oldest gives way once there are T."""
        num_steps, num_envs, *view_shape = self._views.shape
        check_views("view", view, tuple(view_shape), self._views.device, num_envs)
        check_mask("first", first, num_envs, self._views.device)
        if view.dtype != self._views.dtype:
            raise TypeError(
                f"view must stay of dtype {self._views.dtype}, as it began, got {view.dtype}"
            )
        slot = self._added % num_steps
        self._views[slot] = view.detach()
        self._first[slot] = first
        self._added += 1

    @property
    def first(self) -> Tensor:
        return self._first.roll(-self._oldest, dims=0)[: self._held]

    def views(self, time: Tensor, env: Tensor) -> Tensor:
        return self._views[(time + self._oldest) % self._views.shape[0], env]

    @property
    def _held(self) -> int:
        return min(self._added, self._views.shape[0])

    @property
    def _oldest(self) -> int:
        """The slot of the oldest step."""
        return self._added % self._views.shape[0] if self._added > self._held else 0

    def state_dict(self) -> dict[str, Any]:
        """A copy of what is held, in the order of time."""
        num_steps = self._views.shape[0]
        order = torch.arange(self._held, device=self._views.device)
        return {"views": self._views[(order + self._oldest) % num_steps], "first": self.first}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Holds what was saved, by a replay of this size or a smaller one."""
        held = state["views"].shape[0]
        if state["views"].shape[1:] != self._views.shape[1:] or held > self._views.shape[0]:
            raise ValueError(
                f"the saved replay holds views {tuple(state['views'].shape)}, "
                f"this one has room for {tuple(self._views.shape)}"
            )
        self._views[:held] = state["views"]
        self._first[:held] = state["first"]
        self._added = held


def check_fits(shape: tuple[int, ...], dtype: torch.dtype, device: torch.device) -> None:
    """Raises where a tensor would not fit into the device's free memory."""
    wanted = dtype.itemsize * torch.Size(shape).numel()
    free = _free_bytes(device)
    if free is not None and wanted > free:
        raise MemoryError(
            f"a replay of {shape[0]} steps x {shape[1]} environments wants "
            f"{wanted / 1e9:.1f} GB, {device} has {free / 1e9:.1f} GB free: "
            f"lower `history`"
        )


def _free_bytes(device: torch.device) -> int | None:
    """What could be allocated now; None where nobody says."""
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0])
    meminfo = Path("/proc/meminfo")
    if not meminfo.exists():
        return None
    sizes = dict(line.split(":", 1) for line in meminfo.read_text().splitlines())
    return int(sizes["MemAvailable"].split()[0]) * 1024
