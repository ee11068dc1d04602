"""Command lines that reproduce a run and its evaluation."""

import shlex
from pathlib import Path
from typing import Any

from episodic_curiosity.runs.config import Run
from episodic_curiosity.runs.presets import resolve
from episodic_curiosity.runs.record import differences
from episodic_curiosity.runs.stored_run import loads


def train_command(run: Run, folder: Path) -> str:
    """The command that trains this run: task, method, preset and every changed option."""
    usual = resolve(run.task, run.method, run.preset, run.steps, run.seed)
    names = ("task", "method", "preset", "steps", "seed")
    options = [f"--{name} {_word(getattr(run, name))}" for name in names]
    options += [_option(*change) for change in differences(usual.to_dict(), run.to_dict())]
    return " \\\n  ".join(["curiosity train", *options, f"--out {_word(folder)}"])


def evaluate_command(run: Run, folder: Path, episodes: int) -> str:
    """The command that evaluates the agent in a run's folder."""
    trust = " --trust" if any(loads(run, to_train=False)) else ""
    return f"curiosity evaluate {_word(folder)} --episodes {episodes}{trust}"


def _option(path: str, was: Any, value: Any) -> str:
    """The option that changes the field at a dotted path."""
    path = path.replace("_", "-")
    if isinstance(was, bool):  # a pair of flags; a field that may be None takes a value
        above, _, name = path.rpartition(".")
        name = name if value else f"no-{name}"
        return f"--{above}.{name}" if above else f"--{name}"
    values = value if isinstance(value, list | tuple) else [value]
    return " ".join([f"--{path}", *map(_word, values)])


def _word(value: Any) -> str:
    return shlex.quote(str(value))
