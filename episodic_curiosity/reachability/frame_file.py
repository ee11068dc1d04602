"""Stores the newest steps of N environments in a file, for worlds that cannot redraw.

Shapes: T steps are kept, R are added per call, N environments, B observations.
"""

import os
import shutil
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import torch
from torch import Tensor

from episodic_curiosity.reachability.replay import Ring
from episodic_curiosity.support.files import change_file, create_file
from episodic_curiosity.support.machine import free_on_disk
from episodic_curiosity.support.saving import LoadError
from episodic_curiosity.support.state import check_parts

ARRAYS: dict[torch.dtype, type[np.generic]] = {torch.uint8: np.uint8, torch.float32: np.float32}
BLOCK = bytes(1 << 24)

Mapped = np.memmap[Any, np.dtype[Any]]


class FrameFile(Ring):
    """The newest T steps in one memory-mapped file of fixed size.

    A state holds counters, not frames: its frames stay in the file until two later states have
    been taken. For this the file has room for `spare` steps beyond T: the number of steps per
    environment between a state and the second after it. So a run that keeps its newest two
    checkpoints can be killed at any moment and resumed from either of them. It also holds the
    checksum of every step, computed when the step is added: a state costs no reading.
    The file is allocated in full at the first step, so that a full disk is found at the start.
    """

    def __init__(
        self,
        path: Path,
        num_steps: int,
        num_envs: int,
        view_shape: tuple[int, ...],
        dtype: torch.dtype,
        *,
        spare: int = 0,
        nameless: bool = False,
    ) -> None:
        """A `nameless` file is unlinked as soon as it is open: it ends with the process."""
        cpu = torch.device("cpu")
        super().__init__(num_steps, num_envs, view_shape, dtype, cpu, spare=spare)
        if dtype not in ARRAYS:
            raise TypeError(f"views must be of dtype uint8 or float32, got {dtype}")
        self.path, self.spare, self._nameless = path, spare, nameless
        self._checksums = torch.zeros(num_steps + spare, dtype=torch.int64)
        self._frames: Mapped | None = None
        self._states: list[int] = []  # steps added by the time of the newest two states
        self._check_disk()

    @property
    def memory_bytes(self) -> int:
        """Excludes the frames, which the system caches as memory allows."""
        return self._first.nbytes

    @property
    def disk_bytes(self) -> int:
        return self._dtype.itemsize * torch.Size(self._shape).numel()

    def extend(self, rows: Tensor, first: Tensor) -> None:
        """Appends (R, N, ...) views; the oldest steps are dropped once there are T."""
        self._check_rows(rows, first, rows.device)
        self._check_spare(len(rows))
        if self._frames is None:
            self._frames = self._create()
        self._extend(rows.detach().cpu(), first.cpu())

    def views(self, time: Tensor, env: Tensor) -> Tensor:
        """As `Experience.views`, with all tensors on the CPU."""
        if self._frames is None:
            raise RuntimeError(f"{self.path} holds no steps yet")
        frames = self._frames[self._slots(time).numpy(), env.numpy()]
        return torch.from_numpy(np.asarray(frames))

    def _store(self, slots: slice, rows: Tensor) -> None:
        assert self._frames is not None
        self._frames[slots] = rows.numpy()
        checksums = [zlib.crc32(row.tobytes()) for row in rows.numpy()]
        self._checksums[slots] = torch.tensor(checksums, dtype=torch.int64)

    def state_dict(self) -> dict[str, Any]:
        """Returns counters; their steps stay in the file until two more states are taken."""
        self._states = [*self._states[-1:], self._added]
        if self._frames is not None:
            self._frames.flush()
        return {
            "added": self._added,
            "states": list(self._states),
            "first": self.first,
            "checksums": self._checksums[self._held_slots],
        }

    def check_state(self, state: Mapping[str, Any]) -> None:
        """Raises unless this file is the one that the state refers to."""
        check_parts(state, {"added", "states", "first", "checksums"})
        held = min(state["added"], self._num_steps)
        if tuple(state["first"].shape) != (held, self._shape[1]):
            raise ValueError(
                f"the saved replay holds {tuple(state['first'].shape)} steps x environments, "
                f"wanted {(held, self._shape[1])}"
            )
        if held == 0:
            return
        frames = self._open()
        for time, checksum in enumerate(state["checksums"].tolist(), state["added"] - held):
            if zlib.crc32(frames[time % len(frames)].tobytes()) != checksum:
                raise LoadError(f"{self.path} does not hold the frames of the checkpoint")

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Resumes from a state that `check_state` accepts: it has read the whole file."""
        self._frames = self._open() if state["added"] else None
        self._added = state["added"]
        self._states = list(state["states"])
        self._first[self._held_slots] = state["first"].cpu()
        self._checksums[self._held_slots] = state["checksums"].cpu()

    def _check_spare(self, count: int) -> None:
        if not self._states:
            return
        beyond = self._added + count - self._states[0]
        if beyond > self.spare:
            raise RuntimeError(
                f"{self.path} has {self.spare} spare steps for the steps between a "
                f"checkpoint and the second after it, got {beyond}: increase `spare`, or write "
                f"checkpoints more often"
            )

    def _check_disk(self) -> None:
        """Raises if the file would not fit."""
        free = free_on_disk(self.path)
        if self.disk_bytes > free:
            raise MemoryError(self._too_large(free))

    def _too_large(self, free: int) -> str:
        return (
            f"{self.path} needs {self.disk_bytes / 1e9:.1f} GB for {self._shape[0]} steps x "
            f"{self._shape[1]} environments, its disk has {free / 1e9:.1f} GB free: "
            f"lower `history`, or the steps of random play"
        )

    def _create(self) -> Mapped:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with create_file(self.path) as file:
            if self._nameless:
                self.path.unlink()
            try:
                _fill(file, self.disk_bytes)
            except OSError:
                self.path.unlink(missing_ok=True)
                free = shutil.disk_usage(self.path.parent).free
                raise MemoryError(self._too_large(free)) from None
            return self._map(file)

    def _open(self) -> Mapped:
        found = self.path.stat().st_size if self.path.exists() else None
        if found != self.disk_bytes:
            what = "is missing" if found is None else f"has {found} bytes"
            raise LoadError(
                f"{self.path} {what}; it must hold the frames of the R-network, "
                f"{self.disk_bytes} bytes"
            )
        with change_file(self.path) as file:
            return self._map(file)

    def _map(self, file: BinaryIO) -> Mapped:
        return np.memmap(file, ARRAYS[self._dtype], mode="r+", shape=self._shape)


def _fill(file: BinaryIO, size: int) -> None:
    """Allocates all blocks of a file, so that later writes cannot fail."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(file.fileno(), 0, size)
        return
    for start in range(0, size, len(BLOCK)):
        file.write(BLOCK[: size - start])
    file.flush()
