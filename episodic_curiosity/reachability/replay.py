"""The newest steps of N environments, for an R-network that is fitted during training.

Shapes: T steps are kept, R are added per call, N environments, B observations.
"""

import math
from collections.abc import Callable, Iterator, Mapping
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


class _Ring:
    """A ring buffer of the newest T steps of N environments, one row of `kind` each."""

    kind: ClassVar[str]

    def __init__(
        self,
        num_steps: int,
        num_envs: int,
        row_shape: tuple[int, ...],
        dtype: torch.dtype,
        device: torch.device,
    ) -> None:
        check_at_least("num_steps", num_steps, 1)
        shape = (num_steps, num_envs, *row_shape)
        check_fits(shape, dtype, device)
        self._rows = torch.empty(shape, dtype=dtype, device=device)
        self._first = torch.zeros((num_steps, num_envs), dtype=torch.bool, device=device)
        self._added = 0

    @property
    def memory_bytes(self) -> int:
        return self._rows.nbytes + self._first.nbytes

    @property
    def disk_bytes(self) -> int:
        return 0

    def extend(self, rows: Tensor, first: Tensor) -> None:
        """Appends R steps of all environments; the oldest are dropped once there are T."""
        shape, dtype, device = self._rows.shape[1:], self._rows.dtype, self._rows.device
        check_rows(self.kind, rows, first, tuple(shape), dtype, device)
        for slots, given in stretches(self._added, len(rows), self._rows.shape[0]):
            self._rows[slots] = rows[given].detach()
            self._first[slots] = first[given]
        self._added += len(rows)

    @property
    def first(self) -> Tensor:
        return self._first.roll(-self._oldest, dims=0)[: self._held]

    def rows(self, time: Tensor, env: Tensor) -> Tensor:
        """Returns the (B, ...) rows at (B,) times and environments."""
        return self._rows[(time + self._oldest) % self._rows.shape[0], env]

    @property
    def _held(self) -> int:
        return min(self._added, self._rows.shape[0])

    @property
    def _oldest(self) -> int:
        """The slot of the oldest step."""
        return self._added % self._rows.shape[0] if self._added > self._held else 0

    def state_dict(self) -> dict[str, Any]:
        """Returns a copy of all rows in the order of time."""
        order = torch.arange(self._held, device=self._rows.device)
        rows = self._rows[(order + self._oldest) % self._rows.shape[0]]
        return {f"{self.kind}s": rows, "first": self.first.clone()}

    def check_state(self, state: Mapping[str, Any]) -> None:
        """Raises unless the state is of a replay of this size or a smaller one."""
        name = f"{self.kind}s"
        check_parts(state, {name, "first"})
        rows = state[name]
        held = rows.shape[0]
        if rows.shape[1:] != self._rows.shape[1:] or held > self._rows.shape[0]:
            raise ValueError(
                f"the saved replay holds {name} {tuple(rows.shape)}, "
                f"this one has room for {tuple(self._rows.shape)}"
            )

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Resumes from a state that `check_state` accepts; it is not checked again."""
        rows = state[f"{self.kind}s"]
        self._rows[: len(rows)] = rows
        self._first[: len(rows)] = state["first"]
        self._added = len(rows)


class FrameReplay(_Ring):
    """Stores observations: T * N * bytes-per-observation of memory."""

    kind = "view"

    def views(self, time: Tensor, env: Tensor) -> Tensor:
        return self.rows(time, env)


class SnapshotReplay(_Ring):
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
        spec = world.spec
        redraw = cast(RedrawableWorld, world).redraw
        return cls(
            num_steps,
            spec.num_envs,
            spec.snapshot_bytes,
            redraw,
            spec.device,
            can_capture=spec.can_capture_redraw,
        )

    def views(self, time: Tensor, env: Tensor) -> Tensor:
        return self._redraw(self.rows(time, env))


def stretches(added: int, count: int, size: int) -> Iterator[tuple[slice, slice]]:
    """Yields (slots, rows) slices that write `count` rows into a ring after `added` ones."""
    given = 0
    while given < count:
        slot = (added + given) % size
        length = min(size - slot, count - given)
        yield slice(slot, slot + length), slice(given, given + length)
        given += length


def check_rows(
    kind: str,
    rows: Tensor,
    first: Tensor,
    step_shape: tuple[int, ...],
    dtype: torch.dtype,
    device: torch.device,
) -> None:
    """Raises unless these are R steps of shape (N, ...) with (R, N) marks."""
    check_tensor(f"{kind}s", rows, (rows.shape[0], *step_shape), device)
    if rows.dtype != dtype:
        raise TypeError(f"{kind}s must keep their dtype {dtype}, got {rows.dtype}")
    check_tensor("first", first, (rows.shape[0], step_shape[0]), device)
    if first.dtype != torch.bool:
        raise TypeError(f"first must be of dtype bool, got {first.dtype}")


def check_fits(shape: tuple[int, ...], dtype: torch.dtype, device: torch.device) -> None:
    """Raises if a tensor would not fit into the device's free memory."""
    check_memory(
        f"a replay of {shape[0]} steps x {shape[1]} environments",
        dtype.itemsize * math.prod(shape),
        device,
        "lower `history`, or the steps of random play",
    )
