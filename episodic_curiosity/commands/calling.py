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
    except FloatingPointError as error:  # it was begun, and failed
        stop(FAILED, str(error))
    except OSError as error:
        stop(FAILED, _sentence(error))
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)


def stop(code: int, message: str) -> NoReturn:
    """Ends the program."""
    print(f"curiosity: {message}", file=sys.stderr)
    sys.exit(code)


def _sentence(error: OSError) -> str:
    """What the system said, without its number and with the file's name first."""
    if error.errno is None or error.filename is None:  # our own words
        return str(error)
    if isinstance(error, FileExistsError | NotADirectoryError):
        return f"there is a file where a folder is needed: {error.filename}"
    return f"{error.filename}: {(error.strerror or str(error)).lower()}"
