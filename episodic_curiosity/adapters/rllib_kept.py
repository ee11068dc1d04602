"""The calls of a runner's connector, kept until the bonus learns from them.

Shapes: N environments of the runner.
"""

import warnings
from collections import deque

import numpy as np

from episodic_curiosity.adapters.rllib_central import Calls, stacked_calls
from episodic_curiosity.adapters.views import Array

MOST_BYTES = 1 << 30  # of what is kept for a bonus that does not say how much it learns from


class KeptCalls:
    """The newest calls: for each environment at least the steps that a bonus learns from."""

    def __init__(self, room: int | None) -> None:
        """`room` is a number of steps; None: as many as fit into MOST_BYTES."""
        self._room, self._is_guessed = room, room is None
        self._calls: deque[Calls] = deque()
        self._held = np.zeros(0, np.int64)  # (N,) steps in all but the first call
        self._is_whole = True  # none was dropped since the last `take`

    def add(self, call: Calls) -> None:
        """Keeps a call, and drops the oldest ones that nothing would be learnt from."""
        if self._room is None:
            self._room = max(1, MOST_BYTES // call.seen.nbytes)
        if self._calls:
            self._held = self._held + call.stepped
        else:
            self._held = np.zeros(len(call.stepped), np.int64)
        self._calls.append(call)
        while len(self._calls) > 1:
            left = self._held - self._calls[1].stepped
            if (left < self._room).any():
                return
            self._drop(left)

    def take(self) -> Calls | None:
        """Returns what was kept since the last time; None: there were no calls."""
        calls = list(self._calls)
        if not self._is_whole:  # nothing connects the first one with those before
            seen, action, opens, stepped = calls[0]
            calls[0] = Calls(seen, action, opens | stepped, np.zeros_like(stepped))
        self._calls.clear()
        self._is_whole = True
        return stacked_calls(calls)

    def _drop(self, left: Array) -> None:
        self._calls.popleft()
        self._held = left
        self._is_whole = False
        if self._is_guessed:
            self._is_guessed = False  # warns once
            warnings.warn(
                f"the bonus learns from the newest {self._room} steps of each environment, "
                f"which take {MOST_BYTES >> 30} GB, not from all of a training iteration",
                RuntimeWarning,
                stacklevel=2,
            )
