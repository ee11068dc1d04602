"""What every test can rely on."""

import signal


def pytest_sessionstart() -> None:
    """Lets SIGINT through, which many tests send to processes that they start.

    A shell's background jobs ignore it, and so would all that they start.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)
