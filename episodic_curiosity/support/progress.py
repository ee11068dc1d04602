"""Progress of a run: a bar of rich's on a terminal, plain lines elsewhere or without rich.

Everything goes to standard error, so that the output of a command can be piped.
"""

import math
import os
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from importlib.util import find_spec
from typing import TYPE_CHECKING, Self, TextIO

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress

RATE_WINDOW = 30.0  # seconds over which steps/s are averaged
LINE_INTERVAL = 10.0  # seconds between two lines
DRAW_INTERVAL = 0.1  # seconds between two drawings on a terminal


class Progress:
    """Shows the steps done, steps/s, the newest of each metric in `shown` and the time left."""

    def __init__(
        self,
        total_steps: int,
        start_steps: int = 0,
        *,
        shown: Sequence[str] = ("reward", "bonus", "coverage"),
        file: TextIO | None = None,
        is_shown: bool = True,
    ) -> None:
        self.is_shown = is_shown
        self._file = sys.stderr if file is None else file
        self._total, self._steps, self._shown = total_steps, start_steps, shown
        self._values: dict[str, float] = {}
        self._started = time.monotonic()
        # (time, steps) of the updates in the last RATE_WINDOW seconds, and one before them.
        self._window = deque([(self._started, start_steps)])
        self._drawn_at, self._is_drawn = -math.inf, True
        self._bar = None
        if is_shown and _is_terminal(self._file):
            self._bar = _make_bar(self._file, auto_refresh=False)  # no thread: drawn here
            self._task = self._bar.add_task(
                "", total=total_steps, completed=start_steps, text=""
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def update(self, steps: int, metrics: Mapping[str, float]) -> None:
        """Takes the newest metrics; shows them unless something was shown just before."""
        self._advance(steps)
        self._values |= {name: metrics[name] for name in self._shown if name in metrics}
        interval = LINE_INTERVAL if self._bar is None else DRAW_INTERVAL
        if time.monotonic() - self._drawn_at >= interval:
            self._draw()

    def finish(self, steps: int) -> None:
        """Marks the work as done, perhaps after fewer steps than expected."""
        self._total = steps
        self._advance(steps)

    def note(self, text: str) -> None:
        """Prints a line that is not overwritten."""
        if self._bar is not None:
            self._bar.console.print(text, markup=False, highlight=False)
        elif self.is_shown:
            print(text, file=self._file, flush=True)

    def close(self) -> None:
        """Shows the final state and leaves it on the screen."""
        if not self._is_drawn:
            self._draw()
        if self._bar is not None:
            self._bar.stop()

    def _advance(self, steps: int) -> None:
        now = time.monotonic()
        self._steps, self._is_drawn = steps, False
        self._window.append((now, steps))
        while len(self._window) > 2 and now - self._window[1][0] > RATE_WINDOW:
            self._window.popleft()

    def _draw(self) -> None:
        self._drawn_at, self._is_drawn = time.monotonic(), True
        (then, steps_then), (now, steps_now) = self._window[0], self._window[-1]
        rate = (steps_now - steps_then) / max(now - then, 1e-9)
        done = f"{self._steps:,} of {self._total:,} steps"
        parts = [f"{rate:,.0f} steps/s", *map(_short, self._values.items())]
        if self._bar is not None:
            self._bar.start()
            text = "   ".join([done, *parts])
            self._bar.update(self._task, completed=self._steps, total=self._total, text=text)
            self._bar.refresh()
            return
        share = min(self._steps / max(self._total, 1), 1.0)
        if self._steps >= self._total:
            left = f"{_duration(now - self._started)} in all"
        else:
            left = f"{_duration((self._total - self._steps) / rate) if rate > 0 else '?'} left"
        self.note(", ".join([f"{done} ({share:.0%})", *parts, left]))


@contextmanager
def progress_bar(label: str, total: int, wanted: bool) -> Iterator[Callable[[], None]]:
    """Yields a function to call `total` times; draws a transient bar, on terminals only."""
    if not (wanted and _is_terminal(sys.stderr)):
        yield lambda: None
        return
    with _make_bar(sys.stderr, transient=True) as bar:
        task = bar.add_task(label, total=total, text="")
        yield lambda: bar.advance(task)


def _is_terminal(file: TextIO) -> bool:
    is_able = file.isatty() and os.environ.get("TERM") not in ("dumb", "unknown")
    return is_able and find_spec("rich") is not None


def _make_bar(file: TextIO, **options: bool) -> "RichProgress":
    """A label, a bar and the time left; below them a text, where the task has one."""
    from rich import progress
    from rich.console import Console, RenderableType
    from rich.text import Text

    class TextBelow(progress.Progress):
        def get_renderables(self) -> Iterator[RenderableType]:
            yield self.make_tasks_table(self.tasks)
            yield from (Text(task.fields["text"]) for task in self.tasks if task.fields["text"])

    return TextBelow(
        "{task.description}",
        progress.BarColumn(bar_width=None),
        progress.TaskProgressColumn(),
        progress.TimeRemainingColumn(elapsed_when_finished=True),
        console=Console(file=file, force_terminal=True),
        get_time=time.monotonic,
        expand=True,
        **options,
    )


def _short(metric: tuple[str, float]) -> str:
    """A metric's name and about three digits of its value."""
    name, value = metric
    if not math.isfinite(value):
        return f"{name} -"
    return f"{name} {value:,.0f}" if abs(value) >= 1000 else f"{name} {value:.3g}"


def _duration(seconds: float) -> str:
    return str(timedelta(seconds=round(seconds)))
