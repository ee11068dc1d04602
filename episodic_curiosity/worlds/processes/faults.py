"""The limit of faults, so that no environment fails and is restarted forever."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

MAX_RESTARTS = 3  # faults of one environment that are not made up for
STEPS_PER_FAULT = 100  # good steps that make up for a fault


class FaultLimit:
    """Counts the faults of N environments."""

    def __init__(self, num_envs: int) -> None:
        self._debt = np.zeros(num_envs, np.int64)  # in good steps
        self._is_owed = False

    def first_beyond(self, is_fault: NDArray[Any]) -> int | None:
        """Counts a step, given (N,) bools; returns an environment that failed too often."""
        self._debt = np.where(
            is_fault, self._debt + STEPS_PER_FAULT, np.maximum(self._debt - 1, 0)
        )
        self._is_owed = True
        beyond = is_fault & (self._debt > MAX_RESTARTS * STEPS_PER_FAULT)
        return int(beyond.argmax()) if beyond.any() else None

    def make_up(self) -> None:
        """Counts a step without faults."""
        if self._is_owed:
            self._debt = np.maximum(self._debt - 1, 0)
            self._is_owed = bool(self._debt.any())
