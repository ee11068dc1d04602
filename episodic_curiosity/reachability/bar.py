"""A bar on the terminal for what takes minutes."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec


@contextmanager
def progress_bar(label: str, total: int, wanted: bool) -> Iterator[Callable[[], None]]:
    """Gives what is to be called `total` times; draws nothing elsewhere or without rich."""
    if not (wanted and sys.stderr.isatty() and find_spec("rich")):
        yield lambda: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

    columns = (label, BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=total)
        yield lambda: bar.advance(task)
