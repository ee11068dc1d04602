"""Ctrl-C and SIGTERM: noted once, and acted upon the second time."""

import contextlib
import os
import signal
import threading

import pytest

from episodic_curiosity.support.interruption import stop_request


def send(number: signal.Signals) -> None:
    os.kill(os.getpid(), number)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_one_is_noted(number):
    said = []
    with stop_request(said.append) as stop:
        assert not stop.is_set
        send(number)
        assert stop.is_set
    assert said == ["stopping after the current update or fit; once more stops immediately"]


def test_the_second_control_c_acts():
    with stop_request(print) as stop:
        send(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            send(signal.SIGINT)
        assert stop.is_set


def test_afterwards_all_is_as_before():
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    with contextlib.suppress(ZeroDivisionError), stop_request(print):
        assert signal.getsignal(signal.SIGINT) is not before[0]
        raise ZeroDivisionError
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before


def test_in_another_thread_it_leaves_signals_alone():
    found = []

    def look() -> None:
        with stop_request(print) as stop:
            found.append((stop.is_set, signal.getsignal(signal.SIGINT)))

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    assert found == [(False, signal.getsignal(signal.SIGINT))]
