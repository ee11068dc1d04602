"""What becomes of errors on the command line: a sentence and an exit code, no traceback."""

import sys
from collections.abc import Callable
from typing import NoReturn

FAILED, MISTAKEN, INTERRUPTED = 1, 2, 130  # exit codes


def call(command: Callable[[list[str]], None], arguments: list[str]) -> None:
    """Runs a command; an error that it was made for ends the program with one sentence."""
    try:
        command(arguments)
    except (ValueError, ImportError, MemoryError) as error:  # it cannot be done as asked
        stop(MISTAKEN, str(error))
    except (FloatingPointError, OSError) as error:  # it was begun, and failed
        stop(FAILED, str(error))
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)


def stop(code: int, message: str) -> NoReturn:
    """Ends the program."""
    print(f"curiosity: {message}", file=sys.stderr)
    sys.exit(code)
