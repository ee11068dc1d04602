"""Judges what odd input does: accepted, refused in a sentence, or wrong.

A refusal is an exception that the package itself raises, of a kind for mistakes, with one line
of text. Everything else is wrong: an error from within torch or Python, a hang, much memory.
"""

import contextlib
import resource
import signal
import traceback
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import episodic_curiosity

PACKAGE = str(Path(episodic_curiosity.__file__).parent)
REFUSALS = (ValueError, TypeError, ImportError, MemoryError, FloatingPointError, OSError)
HANG = 60  # seconds
MOST_BYTES = 1 << 30
MOST_NAMED = 20  # of the wrong ones


class Hang(BaseException):
    """The call took longer than HANG."""


@dataclass
class Verdicts:
    """Counts of what became of odd inputs."""

    accepted: int = 0
    refused: int = 0
    wrong: dict[str, str] = field(default_factory=dict)  # where, and an example
    num_wrong: int = 0

    @property
    def total(self) -> int:
        return self.accepted + self.refused + self.num_wrong

    def judge(self, what: str, call: Callable[[], object]) -> bool:
        """Calls and counts; returns whether it was accepted. `what` is for a report."""
        try:
            with _limited_time(), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                call()
        except (Exception, SystemExit, Hang) as error:
            if is_refusal(error):
                self.refused += 1
            else:
                self.num_wrong += 1
                if len(self.wrong) < MOST_NAMED:
                    line = str(error).partition("\n")[0][:150]
                    self.wrong.setdefault(
                        _place(error), f"{what}: {type(error).__name__}: {line}"
                    )
            return False
        self.accepted += 1
        return True


def is_refusal(error: BaseException) -> bool:
    """Whether an error is a sentence of the package's."""
    message = str(error)
    if not isinstance(error, REFUSALS) or not message or "\n" in message:
        return False
    frames = traceback.extract_tb(error.__traceback__)
    # A statement of the package, not an operation of it that went wrong.
    return frames[-1].filename.startswith(PACKAGE) and "raise" in (frames[-1].line or "")


@contextlib.contextmanager
def limited_memory() -> Iterator[None]:
    """Lets allocations fail that take this process more than MOST_BYTES beyond what it has."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    before = resource.getrlimit(resource.RLIMIT_AS)
    most = pages * resource.getpagesize() + MOST_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (most, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


def peak_megabytes() -> float:
    """The most memory that this process ever had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


@contextlib.contextmanager
def _limited_time() -> Iterator[None]:
    def stop(*_: object) -> None:
        raise Hang(f"no end after {HANG} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(HANG)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def _place(error: BaseException) -> str:
    """The last line of the package that led to it, and the kind of error."""
    ours = [
        f"{Path(frame.filename).relative_to(PACKAGE)}:{frame.lineno}"
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.filename.startswith(PACKAGE)
    ]
    return f"{ours[-1] if ours else 'outside'} {type(error).__name__}"
