"""Errors on the command line: one line and an exit code instead of a traceback."""

import argparse
import os
import sys
from collections.abc import Callable
from typing import NoReturn

from episodic_curiosity.support.checks import printable
from episodic_curiosity.support.machine import is_out_of_memory

FAILED, MISTAKEN, INTERRUPTED = 1, 2, 130  # exit codes
FULL = "not enough memory: lower the number of environments"
NO_WORDS = ("", "std::bad_alloc")  # of a MemoryError from Python, or from a library in C++


def call(command: Callable[[list[str]], None], arguments: list[str]) -> None:
    """Runs a command; an expected error exits with a one-line message."""
    try:
        command(arguments)
        sys.stdout.flush()  # here, so that its errors are handled below
    except (ValueError, ImportError) as error:  # an invalid request
        stop(MISTAKEN, str(error))
    except MemoryError as error:
        stop(MISTAKEN, FULL if str(error) in NO_WORDS else str(error))
    except FloatingPointError as error:  # a failure at run time
        stop(FAILED, str(error))
    except RuntimeError as error:
        if not is_out_of_memory(error):
            raise
        reason = str(error).partition("\n")[0]
        stop(FAILED, f"{FULL} ({reason})")
    except BrokenPipeError:  # the reader closed the pipe, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for the flush at exit
        sys.exit(FAILED)
    except OSError as error:
        stop(FAILED, _sentence(error))
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)


class Reader(argparse.ArgumentParser):
    """An argument parser that raises ValueError, which `call` reports."""

    def error(self, message: str) -> NoReturn:
        raise ValueError(message)


def whole_number(text: str) -> int:
    """Parses an integer for argparse, with a clearer message than `int`."""
    try:
        return int(text)
    except ValueError:
        wanted = "must be an integer, such as 1_000_000"
        raise argparse.ArgumentTypeError(f"{wanted}, got {text!r}") from None


def stop(code: int, message: str) -> NoReturn:
    """Prints a message and exits."""
    print(f"curiosity: {printable(message)}", file=sys.stderr)
    sys.exit(code)


def _sentence(error: OSError) -> str:
    """The message of an OSError, without the error number and with the file name first."""
    if error.errno is None or error.strerror is None:  # raised by this package
        return str(error)
    path = error.filename2 or error.filename  # the second is the target, as in a rename
    named = isinstance(path, str | os.PathLike)
    return f"{path}: {error.strerror.lower()}" if named else error.strerror.lower()
