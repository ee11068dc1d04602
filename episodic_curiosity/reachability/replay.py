"""The newest steps of N environments, for an R-network that is fitted during training.

Shapes: T steps are kept, R are added per call, N environments, B observations.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Protocol, Self, cast

import torch
from torch import Tensor

from episodic_curiosity.reachability.experience import Experience
from episodic_curiosity.support.checks import check_at_least, check_tensor
from episodic_curiosity.support.machine import check_memory
from episodic_curiosity.support.state import check_parts
from episodic_curiosity.worlds.base import RedrawableWorld, World


class Replay(Experience, Protocol):
    """An experience that can be extended: the oldest steps are dropped once there are T."""

    @property
    def memory_bytes(self) -> int:
        """The device memory it uses, independent of how many steps it holds."""

    @property
    def disk_bytes(self) -> int:
        """The disk space it uses."""

    def extend(self, rows: Tensor, first: Tensor) -> None:
        """Appends (R, N, ...) rows, with (R, N) marks where episodes begin."""

    def state_dict(self) -> dict[str, Any]:
        """Returns all that is needed to resume exactly."""

    def check_state(self, state: Mapping[str, Any]) -> None:
        """Raises unless `load_state_dict` accepts this state."""

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Resumes from a state that `check_state` accepts; it is not checked again."""


class Ring:
    """The newest T steps of N environments, in a ring of T slots and some spare ones.

    A subclass stores one row of `kind` per environment and step: `_store`.
    """

    kind: ClassVar[str] = "view"

    def __init__(
        self,
        num_steps: int,
        num_envs: int,
        row_shape: tuple[int, ...],
        dtype: torch.dtype,
        device: torch.device,
        *,
        spare: int = 0,
    ) -> None:
        check_at_least("num_steps", num_steps, 1)
        check_at_least("num_envs", num_envs, 1)
        check_at_least("spare", spare, 0)
        self._num_steps = num_steps
        self._shape, self._dtype = (num_steps + spare, num_envs, *row_shape), dtype
        self._first = torch.zeros(self._shape[:2], dtype=torch.bool, device=device)
        self._added = 0

    @property
    def first(self) -> Tensor:
        return self._first[self._held_slots]

    def _extend(self, rows: Tensor, first: Tensor) -> None:
        """Appends R steps; the oldest are overwritten once all slots are taken."""
        given = 0
        while given < len(rows):
            slot = (self._added + given) % len(self._first)
            length = min(len(self._first) - slot, len(rows) - given)
            slots, part = slice(slot, slot + length), slice(given, given + length)
            self._store(slots, rows[part])
            self._first[slots] = first[part]
            given += length
        self._added += len(rows)

    def _store(self, slots: slice, rows: Tensor) -> None:
        raise NotImplementedError

    @property
    def _held(self) -> int:
        return min(self._added, self._num_steps)

    @property
    def _held_slots(self) -> Tensor:
        """The slots of the steps held, in the order of time."""
        return self._slots(torch.arange(self._held, device=self._first.device))

    def _slots(self, time: Tensor) -> Tensor:
        return (time + self._added - self._held) % len(self._first)

    def _check_rows(self, rows: Tensor, first: Tensor, device: torch.device) -> None:
        """Raises unless these are R steps of shape (N, ...) with (R, N) marks."""
        check_tensor(f"{self.kind}s", rows, (rows.shape[0], *self._shape[1:]), device)
        if rows.dtype != self._dtype:
            raise TypeError(
                f"{self.kind}s must keep their dtype {self._dtype}, got {rows.dtype}"
            )
        check_tensor("first", first, (rows.shape[0], self._shape[1]), device)
        if first.dtype != torch.bool:
            raise TypeError(f"first must be of dtype bool, got {first.dtype}")


class FrameReplay(Ring):
    """Stores observations in memory: T * N * bytes-per-observation."""

    disk_bytes = 0

    def __init__(
        self,
        num_steps: int,
        num_envs: int,
        row_shape: tuple[int, ...],
        dtype: torch.dtype,
        device: torch.device,
    ) -> None:
        check_at_least("num_steps", num_steps, 1)
        check_at_least("num_envs", num_envs, 1)
        check_fits((num_steps, num_envs, *row_shape), dtype, device)
        super().__init__(num_steps, num_envs, row_shape, dtype, device)
        self._rows = torch.empty(self._shape, dtype=dtype, device=device)

    @property
    def memory_bytes(self) -> int:
        return self._rows.nbytes + self._first.nbytes

    def extend(self, rows: Tensor, first: Tensor) -> None:
        """Appends R steps of all environments; the oldest are dropped once there are T."""
        self._check_rows(rows, first, self._rows.device)
        self._extend(rows.detach(), first)

    def views(self, time: Tensor, env: Tensor) -> Tensor:
        return self._rows[self._slots(time), env]

    def _store(self, slots: slice, rows: Tensor) -> None:
        self._rows[slots] = rows

    def state_dict(self) -> dict[str, Any]:
        """Returns a copy of all rows in the order of time."""
        return {f"{self.kind}s": self._rows[self._held_slots], "first": self.first}

    def check_state(self, state: Mapping[str, Any]) -> None:
        """Raises unless the state is of a replay of this size or a smaller one."""
        name = f"{self.kind}s"
        check_parts(state, {name, "first"})
        shape = tuple(state[name].shape)
        if shape[1:] != self._shape[1:] or shape[0] > self._num_steps:
            raise ValueError(
                f"the saved replay holds {name} {shape}, this one has room for {self._shape}"
            )

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Resumes from a state that `check_state` accepts; it is not checked again."""
        self._added = len(state["first"])
        self._rows[: self._added] = state[f"{self.kind}s"]
        self._first[: self._added] = state["first"]


class SnapshotReplay(FrameReplay):
    """Stores snapshots, from which the world redraws observations on demand.

    T * N * bytes-per-snapshot of memory, a hundredth of that of frames.
    """

    kind = "snapshot"
    redraws = True

    def __init__(
        self,
        num_steps: int,
        num_envs: int,
        snapshot_bytes: int,
        redraw: Callable[[Tensor], Tensor],
        device: torch.device,
        *,
        can_capture: bool = False,
    ) -> None:
        """`redraw` renders (B, ...) observations of (B, bytes) snapshots: `World.redraw`."""
        super().__init__(num_steps, num_envs, (snapshot_bytes,), torch.uint8, device)
        self.can_capture = can_capture
        self._redraw = redraw

    @classmethod
    def for_world(cls, world: World, num_steps: int) -> Self:
        """Makes a replay for a world that can redraw; the world must stay open."""
        spec, redraw = world.spec, cast(RedrawableWorld, world).redraw
        size, can_capture = spec.snapshot_bytes, spec.can_capture_redraw
        return cls(num_steps, spec.num_envs, size, redraw, spec.device, can_capture=can_capture)

    def views(self, time: Tensor, env: Tensor) -> Tensor:
        return self._redraw(super().views(time, env))


def check_fits(shape: tuple[int, ...], dtype: torch.dtype, device: torch.device) -> None:
    """Raises if a tensor would not fit into the device's free memory."""
    check_memory(
        f"a replay of {shape[0]} steps x {shape[1]} environments",
        dtype.itemsize * math.prod(shape),
        device,
        "lower `history`, or the steps of random play",
    )
