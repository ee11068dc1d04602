"""Defers Ctrl-C until the run can stop cleanly."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class StopRequest:
    """`is_set` is True once the run has been asked to stop."""

    is_set = False


@contextmanager
def stop_request(say: Callable[[str], None]) -> Iterator[StopRequest]:
    """Records the first Ctrl-C or SIGTERM, for a clean stop; a second one interrupts.

    Outside of the main thread signals do not arrive, and no handler is changed.
    """
    request = StopRequest()
    if threading.current_thread() is not threading.main_thread():
        yield request
        return

    def note(number: int, frame: FrameType | None) -> None:  # noqa: ARG001
        request.is_set = True
        # Printing fails in the middle of another print; the request is recorded anyway.
        with suppress(RuntimeError):
            say("stopping after the current update or fit; once more stops immediately")
        signal.signal(number, before[number])

    before = {int(number): signal.signal(number, note) for number in SIGNALS}
    try:
        yield request
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
