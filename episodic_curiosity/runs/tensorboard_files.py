"""Files for TensorBoard: a convenience, without which a run continues."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any


class TensorBoardFiles:
    """Writes scalars; where that fails, says so and writes no more."""

    def __init__(self, folder: Path, purge_step: int | None) -> None:
        """TensorBoard hides what an interrupted run wrote from `purge_step` on."""
        self._folder = folder
        self._writer: Any = None
        try:
            from torch.utils.tensorboard import SummaryWriter

            self._writer = SummaryWriter(str(folder), purge_step=purge_step)
        except (ImportError, OSError) as error:
            self._give_up(error)

    def write(self, steps: int, metrics: Mapping[str, float]) -> None:
        """Adds a point to the curve of each metric."""
        for name, value in metrics.items():
            self._call("add_scalar", name, value, steps)

    def flush(self) -> None:
        self._call("flush")

    def close(self) -> None:
        self._call("close")

    def _call(self, method: str, *arguments: Any) -> None:
        if self._writer is None:
            return
        try:
            # The writer's thread, which reopens its file for each event, would die without it.
            self._folder.mkdir(parents=True, exist_ok=True)
            getattr(self._writer, method)(*arguments)
        except OSError as error:
            self._give_up(error)

    def _give_up(self, error: Exception) -> None:
        self._writer = None
        print(f"no files for TensorBoard ({error})", file=sys.stderr)
