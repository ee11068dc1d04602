"""How a run is getting on: a display that stays in place on a terminal, lines elsewhere."""

import math
import os
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from importlib.util import find_spec
from types import TracebackType
from typing import Any, Protocol, Self, TextIO

RATE_WINDOW = 30.0  # seconds over which steps a second are counted
LINE_INTERVAL = 10.0  # seconds between two lines
DRAW_INTERVAL = 0.1  # seconds between two drawings on a terminal
MAX_WIDTH = 100


class Progress:
    """Says how many steps are done, how fast, and the newest of each metric in `shown`.

    All goes to standard error, so that what a command prints can be piped on.
    """

    def __init__(
        self,
        total_steps: int,
        start_steps: int = 0,
        *,
        shown: Sequence[str] = ("reward", "bonus", "coverage"),
        file: TextIO | None = None,
    ) -> None:
        self._shown = shown
        self._status = Status(total_steps, start_steps)
        self._display = _display(sys.stderr if file is None else file)
        self._drawn_at = -math.inf

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def update(self, steps: int, metrics: Mapping[str, float]) -> None:
        """Takes in what was measured; shows it, unless something was shown just now."""
        self._status.advance(steps)
        self._status.values |= {name: metrics[name] for name in self._shown if name in metrics}
        if time.monotonic() - self._drawn_at >= self._display.interval:
            self._draw()

    def finish(self, steps: int) -> None:
        """All is done, perhaps after fewer steps than there might have been."""
        self._status.total_steps = steps
        self._status.advance(steps)

    def note(self, text: str) -> None:
        """A line that stays."""
        self._display.note(text)

    def close(self) -> None:
        """Shows where the run stands and leaves it standing there."""
        if self._status.stale:
            self._draw()
        self._display.close()

    def _draw(self) -> None:
        self._drawn_at = time.monotonic()
        self._display.draw(self._status)
        self._status.stale = False


class Silence:
    """A display that shows nothing."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def update(self, steps: int, metrics: Mapping[str, float]) -> None:
        pass

    def finish(self, steps: int) -> None:
        pass

    def note(self, text: str) -> None:
        pass


def progress_or_silence(
    is_wanted: bool, total_steps: int, start_steps: int = 0
) -> Progress | Silence:
    return Progress(total_steps, start_steps) if is_wanted else Silence()


@dataclass
class Status:
    """Where a run stands."""

    total_steps: int
    steps: int
    values: dict[str, float] = field(default_factory=dict)
    stale: bool = False  # something has changed since it was drawn
    _started: float = field(init=False)
    # (time, steps) of the updates of the last RATE_WINDOW seconds, and one before them.
    _window: deque[tuple[float, int]] = field(init=False, default_factory=deque)

    def __post_init__(self) -> None:
        self._started = time.monotonic()
        self._window.append((self._started, self.steps))

    def advance(self, steps: int) -> None:
        now = time.monotonic()
        self.steps, self.stale = steps, True
        self._window.append((now, steps))
        while len(self._window) > 2 and now - self._window[1][0] > RATE_WINDOW:
            self._window.popleft()

    @property
    def share(self) -> float:
        """How much is done, from 0 to 1."""
        return min(self.steps / max(self.total_steps, 1), 1.0)

    @property
    def rate(self) -> float:
        """Steps a second."""
        (then, steps_then), (now, steps_now) = self._window[0], self._window[-1]
        return (steps_now - steps_then) / max(now - then, 1e-9)

    @property
    def time_left(self) -> str:
        """The time left, or the time it took."""
        if self.steps >= self.total_steps:
            return f"{_duration(time.monotonic() - self._started)} in all"
        if self.rate <= 0:
            return "? left"
        return f"{_duration((self.total_steps - self.steps) / self.rate)} left"


class Display(Protocol):
    interval: float  # seconds to wait between two drawings

    def draw(self, status: Status) -> None: ...

    def note(self, text: str) -> None: ...

    def close(self) -> None: ...


class Lines:
    """One line after another: for files, pipes and terminals that cannot do more."""

    interval = LINE_INTERVAL

    def __init__(self, file: TextIO) -> None:
        self._file = file

    def draw(self, status: Status) -> None:
        parts = [
            f"{status.steps:,} of {status.total_steps:,} steps ({status.share:.0%})",
            f"{status.rate:,.0f} steps/s",
            *(f"{name} {_short(value)}" for name, value in status.values.items()),
            status.time_left,
        ]
        self.note(", ".join(parts))

    def note(self, text: str) -> None:
        print(text, file=self._file, flush=True)

    def close(self) -> None:
        pass


class Bar:
    """A bar that fills, with the numbers below it; notes scroll by above."""

    interval = DRAW_INTERVAL

    def __init__(self, file: TextIO) -> None:
        from rich.console import Console
        from rich.live import Live

        # Drawn when there is something new and only then: no thread of its own.
        console = Console(file=file, force_terminal=True)
        self._live = Live(console=console, auto_refresh=False)
        self._live.start()

    def draw(self, status: Status) -> None:
        self._live.update(_picture(status, self._live.console.width), refresh=True)

    def note(self, text: str) -> None:
        self._live.console.print(text, markup=False, highlight=False)

    def close(self) -> None:
        self._live.stop()


def _display(file: TextIO) -> Display:
    is_terminal = file.isatty() and os.environ.get("TERM") not in ("dumb", "unknown")
    return Bar(file) if is_terminal and find_spec("rich") is not None else Lines(file)


def _picture(status: Status, width: int) -> Any:
    from rich.console import Group
    from rich.progress_bar import ProgressBar
    from rich.table import Table
    from rich.text import Text

    top = Table.grid(padding=(0, 2, 0, 0), expand=True)
    top.width = min(width, MAX_WIDTH)
    top.add_column(ratio=1)
    top.add_column(justify="right")
    top.add_column(justify="right")
    top.add_row(
        ProgressBar(total=1.0, completed=status.share),
        Text(f"{status.share:.0%}", style="bold"),
        Text(status.time_left, style="cyan"),
    )
    dim = "not bold dim"
    bottom = Text(f"{status.steps:,}", style="bold")
    bottom.append(f" of {status.total_steps:,} steps   ", style=dim)
    bottom.append(f"{status.rate:,.0f}").append(" steps/s", style=dim)
    for name, value in status.values.items():
        bottom.append(f"   {name} ", style=dim).append(_short(value))
    return Group(top, bottom)


def _short(value: float) -> str:
    """About three digits, as a person would write them."""
    if not math.isfinite(value):
        return "-"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def _duration(seconds: float) -> str:
    return str(timedelta(seconds=round(seconds)))


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
