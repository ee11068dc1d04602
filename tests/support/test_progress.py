"""What a person sees of a run: on a terminal, in a file, and without rich."""

import contextlib
import io
import os
import re

import pytest

from episodic_curiosity.support import progress as module
from episodic_curiosity.support.progress import Progress


@pytest.fixture
def clock(monkeypatch):
    """A clock that is moved by hand: `clock(2)` lets two seconds pass."""
    now = [100.0]

    class Time:
        monotonic = staticmethod(lambda: now[0])

    monkeypatch.setattr(module, "time", Time)

    def wait(seconds):
        now[0] += seconds

    return wait


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def terminal(monkeypatch):
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "80")
    return Terminal()


def text_of(terminal):
    return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", terminal.getvalue())


def test_lines_every_ten_seconds_and_at_the_end(clock):
    file = io.StringIO()
    with Progress(4_000, file=file) as progress:
        for update in range(1, 9):
            clock(4)
            progress.update(update * 500, {"reward": update / 4, "loss": 3.0})
    assert file.getvalue().splitlines() == [
        "500 of 4,000 steps (12%), 125 steps/s, reward 0.25, 0:00:28 left",
        "2,000 of 4,000 steps (50%), 125 steps/s, reward 1, 0:00:16 left",
        "3,500 of 4,000 steps (88%), 125 steps/s, reward 1.75, 0:00:04 left",
        "4,000 of 4,000 steps (100%), 125 steps/s, reward 2, 0:00:32 in all",
    ]


def test_it_may_be_done_sooner_than_foreseen(clock):
    file = io.StringIO()
    with Progress(1000, file=file) as progress:
        clock(4)
        progress.finish(200)
    assert file.getvalue() == "200 of 200 steps (100%), 50 steps/s, 0:00:04 in all\n"


def test_the_last_line_is_not_said_twice(clock):
    file = io.StringIO()
    with Progress(10, file=file) as progress:
        clock(1)
        progress.update(10, {})
    assert file.getvalue() == "10 of 10 steps (100%), 10 steps/s, 0:00:01 in all\n"


def test_a_run_that_never_got_anywhere_says_nothing():
    file = io.StringIO()
    Progress(10, file=file).close()
    assert file.getvalue() == ""


def test_the_rate_is_of_the_last_half_minute_and_of_this_sitting(clock):
    file = io.StringIO()
    progress = Progress(1_000_000, 600_000, file=file)
    for update in range(1, 101):  # 100 steps/s in the first half, then 400
        clock(10)
        progress.update(600_000 + update * 1_000 + max(update - 50, 0) * 3_000, {})
    lines = file.getvalue().splitlines()
    assert "601,000 of 1,000,000 steps (60%), 100 steps/s" in lines[0]
    assert lines[-1] == "850,000 of 1,000,000 steps (85%), 400 steps/s, 0:06:15 left"


def test_the_newest_of_each_metric_stays(clock):
    file = io.StringIO()
    progress = Progress(100, shown=("reward", "coverage"), file=file)
    for steps, metrics in ((10, {"coverage": 12_345.6}), (20, {"reward": float("nan")})):
        clock(20)
        progress.update(steps, metrics)
    progress.update(30, {"reward": 1e-5})
    progress.close()
    assert [line.split("steps/s, ")[1] for line in file.getvalue().splitlines()] == [
        "coverage 12,346, 0:03:00 left",
        "coverage 12,346, reward -, 0:02:40 left",
        "coverage 12,346, reward 1e-05, 0:01:33 left",
    ]


def test_no_time_has_passed_and_no_step_was_made(clock):
    file = io.StringIO()
    progress = Progress(0, file=file)
    progress.update(0, {})
    progress = Progress(10, file=file)
    clock(1)
    progress.update(0, {})
    assert file.getvalue().splitlines() == [
        "0 of 0 steps (0%), 0 steps/s, 0:00:00 in all",
        "0 of 10 steps (0%), 0 steps/s, ? left",
    ]


def test_notes_are_said_at_once():
    file = io.StringIO()
    Progress(10, file=file).note("the R-network was refitted: 91% [on held-out pairs]")
    assert file.getvalue() == "the R-network was refitted: 91% [on held-out pairs]\n"


def test_a_terminal_gets_a_bar(terminal, clock):
    with Progress(4_000, file=terminal) as progress:
        clock(10)
        progress.update(1_000, {"reward": 0.5, "bonus": 0.03125, "coverage": 40})
        progress.note("refitted: 91% [bold]of pairs[/bold]")
        clock(0.05)
        progress.update(1_001, {"reward": 0.7})  # too soon after the last to be drawn
        clock(9.95)
        progress.update(2_000, {"reward": 0.75})
        clock(20)
        progress.update(4_000, {})
    text = text_of(terminal)
    assert re.search(r"━+ +25%", text)
    assert (
        "1,000 of 4,000 steps   100 steps/s   reward 0.5   bonus 0.0312   coverage 40" in text
    )
    assert "refitted: 91% [bold]of pairs[/bold]" in text
    assert "1,001 of" not in text
    assert re.search(r"━+ +50% +0:00:20", text)
    assert re.search(r"━+ +100% +0:00:40", text)  # in all
    assert terminal.getvalue().endswith("\x1b[?25h")  # the cursor is back


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="no pseudo-terminals here")
def test_a_real_terminal(monkeypatch):
    monkeypatch.setenv("TERM", "xterm-256color")
    outer, inner = os.openpty()
    with open(inner, "w") as file, Progress(10, file=file) as progress:
        progress.update(5, {})
        progress.note("a note")
    said = b""
    with contextlib.suppress(OSError):  # how Linux says that the other end was closed
        while chunk := os.read(outer, 1024):
            said += chunk
    os.close(outer)
    assert b"50%" in said
    assert b"a note" in said


def test_a_terminal_that_can_do_little_gets_lines(terminal, monkeypatch):
    monkeypatch.setenv("TERM", "dumb")
    Progress(10, file=terminal).update(5, {})
    assert terminal.getvalue().startswith("5 of 10 steps (50%), ")


def test_without_rich_a_terminal_gets_lines(terminal, monkeypatch):
    monkeypatch.setattr(module, "find_spec", lambda _: None)
    Progress(10, file=terminal).update(5, {})
    assert terminal.getvalue().startswith("5 of 10 steps (50%), ")


def test_nothing_is_shown_where_nothing_is_wanted(terminal):
    with Progress(10, file=terminal, is_shown=False) as progress:
        progress.update(5, {})
        progress.note("a note")
    assert terminal.getvalue() == ""


def test_it_goes_to_standard_error(capsys):
    Progress(10).note("a note")
    said = capsys.readouterr()
    assert (said.out, said.err) == ("", "a note\n")
