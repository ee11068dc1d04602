"""Ctrl-C that waits for a good moment."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class StopRequest:
    """Whether somebody has asked the run to stop."""

    is_set = False


@contextmanager
def stop_request(say: Callable[[str], None]) -> Iterator[StopRequest]:
    """The first Ctrl-C or SIGTERM is noted, for the run to stop when it can; a second one acts.

    Outside of the main thread signals do not arrive, and nothing is changed.
    """
    request = StopRequest()
    if threading.current_thread() is not threading.main_thread():
        yield request
        return

    def note(number: int, frame: FrameType | None) -> None:  # noqa: ARG001
        request.is_set = True
        # In the middle of another line nothing can be said; the request stands all the same.
        with suppress(RuntimeError):
            say("stopping after the update or fit under way; once more stops at once")
        signal.signal(number, before[number])

    before = {int(number): signal.signal(number, note) for number in SIGNALS}
    try:
        yield request
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
