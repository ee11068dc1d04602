"""Files for TensorBoard; if they cannot be written, the run continues without them."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

# TensorBoard sorts groups by name and shows a dozen charts of each: what came of the run first.
RESULTS = ("reward", "coverage", "bonus", "r_network_accuracy")
TRAINING = (
    "approximate_kl",
    "clip_fraction",
    "entropy",
    "episodes",
    "explained_variance",
    "gradient_norm",
    "learning_rate",
    "length",
    "policy_loss",
    "steps_per_second",
    "value_loss",
)


class TensorBoardFiles:
    """Writes scalars; after a failure it warns and writes no more."""

    def __init__(self, folder: Path, purge_step: int | None) -> None:
        """TensorBoard hides what an interrupted run wrote from `purge_step` on."""
        self._folder = folder
        self._writer: Any = None
        try:
            from torch.utils.tensorboard import SummaryWriter

            self._writer = SummaryWriter(str(folder), purge_step=purge_step)
        except (ImportError, OSError, RuntimeError) as error:  # the last of its thread
            self._give_up(error)

    def write(self, steps: int, metrics: Mapping[str, float]) -> None:
        """Adds a point to the curve of each metric."""
        for name, value in metrics.items():
            self._call("add_scalar", tag(name), value, steps)

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


def tag(metric: str) -> str:
    """The name of a metric's chart, with its group: `1 results/reward`."""
    if metric.startswith("action/"):
        return f"4 actions/{metric.removeprefix('action/')}"
    if metric in RESULTS:
        return f"1 results/{metric}"
    return f"3 training/{metric}" if metric in TRAINING else f"2 curiosity/{metric}"
