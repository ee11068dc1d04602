"""The command line behind a number."""

import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from episodic_curiosity.runs.config import Run
from episodic_curiosity.runs.presets import resolve
from episodic_curiosity.runs.stored_run import loads


def train_command(run: Run, folder: Path) -> str:
    """What trains this run again: its task, method and preset, and what else differs."""
    usual = resolve(run.task, run.method, run.preset, run.steps, run.seed).to_dict()
    plain = run.to_dict()
    names = ("task", "method", "preset", "steps", "seed")
    options = [f"--{name} {_word(plain[name])}" for name in names]
    options += [_option(*change) for change in _changes(usual, plain)]
    return _on_lines(["curiosity train", *options, f"--out {_word(str(folder))}"])


def evaluate_command(run: Run, folder: Path, episodes: int) -> str:
    """What measures the agent of a run's folder again."""
    trust = " --trust" if any(loads(run, to_train=False)) else ""
    return f"curiosity evaluate {_word(str(folder))} --episodes {episodes}{trust}"


def _changes(
    usual: Mapping[str, Any], plain: Mapping[str, Any], above: str = ""
) -> Iterator[tuple[str, Any, Any]]:
    """The dotted path, the usual and the present value of each field that differs."""
    for name, value in plain.items():
        path, was = above + name.replace("_", "-"), usual[name]
        if isinstance(value, dict) and isinstance(was, dict):
            yield from _changes(was, value, f"{path}.")
        elif value != was:
            yield path, was, value


def _option(path: str, was: Any, value: Any) -> str:
    if isinstance(was, bool):  # two flags; what may also be None takes a value
        above, _, name = path.rpartition(".")
        name = name if value else f"no-{name}"
        return f"--{above}.{name}" if above else f"--{name}"
    values = value if isinstance(value, list | tuple) else [value]
    return " ".join([f"--{path}", *map(_word, values)])


def _word(value: Any) -> str:
    return shlex.quote(str(value))


def _on_lines(parts: list[str]) -> str:
    return " \\\n  ".join(parts)
