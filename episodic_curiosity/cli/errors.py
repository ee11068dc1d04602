"""What becomes of errors on the command line: a sentence and an exit code, no traceback."""

import argparse
import os
import sys
from collections.abc import Callable
from typing import NoReturn

from episodic_curiosity.support.checks import printable

FAILED, MISTAKEN, INTERRUPTED = 1, 2, 130  # exit codes


def call(command: Callable[[list[str]], None], arguments: list[str]) -> None:
    """Runs a command; an error that it was made for ends the program with one sentence."""
    try:
        command(arguments)
        sys.stdout.flush()  # while what it says can still be told from a failure
    except (ValueError, ImportError, MemoryError) as error:  # it cannot be done as asked
        stop(MISTAKEN, str(error) or "not enough memory")
    except FloatingPointError as error:  # it was begun, and failed
        stop(FAILED, str(error))
    except BrokenPipeError:  # who was told has heard enough, as `head` has
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for Python's own flush
        sys.exit(FAILED)
    except OSError as error:
        stop(FAILED, _sentence(error))
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)


class Reader(argparse.ArgumentParser):
    """Leaves it to `call` to say what is wrong."""

    def error(self, message: str) -> NoReturn:
        raise ValueError(message)


def whole_number(text: str) -> int:
    """For argparse, whose own words are about types."""
    try:
        return int(text)
    except ValueError:
        wanted = "must be a whole number, such as 1_000_000"
        raise argparse.ArgumentTypeError(f"{wanted}, got {text!r}") from None


def stop(code: int, message: str) -> NoReturn:
    """Ends the program."""
    print(f"curiosity: {printable(message)}", file=sys.stderr)
    sys.exit(code)


def _sentence(error: OSError) -> str:
    """What the system said, without its number and with the file's name first."""
    if error.errno is None or error.strerror is None:  # our own words
        return str(error)
    path = error.filename2 or error.filename  # the second is what the first is to become
    named = isinstance(path, str | os.PathLike)
    return f"{path}: {error.strerror.lower()}" if named else error.strerror.lower()
