"""Command lines that reproduce a run and its evaluation."""

import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from episodic_curiosity.runs.config import Run
from episodic_curiosity.runs.presets import resolve
from episodic_curiosity.runs.stored_run import loads


def train_command(run: Run, folder: Path) -> str:
    """The command that trains this run: task, method, preset and every changed option."""
    usual = resolve(run.task, run.method, run.preset, run.steps, run.seed).to_dict()
    plain = run.to_dict()
    names = ("task", "method", "preset", "steps", "seed")
    options = [f"--{name} {_word(plain[name])}" for name in names]
    options += [_option(*change) for change in _changes(usual, plain)]
    return _on_lines(["curiosity train", *options, f"--out {_word(str(folder))}"])


def evaluate_command(run: Run, folder: Path, episodes: int) -> str:
    """The command that evaluates the agent in a run's folder."""
    trust = " --trust" if any(loads(run, to_train=False)) else ""
    return f"curiosity evaluate {_word(str(folder))} --episodes {episodes}{trust}"


def _changes(
    usual: Mapping[str, Any], plain: Mapping[str, Any], above: str = ""
) -> Iterator[tuple[str, Any, Any]]:
    """The dotted path, the default and the actual value of each field that differs."""
    for name, value in plain.items():
        path, was = above + name.replace("_", "-"), usual[name]
        if isinstance(value, dict) and isinstance(was, dict):
            yield from _changes(was, value, f"{path}.")
        elif value != was:
            yield path, was, value


def _option(path: str, was: Any, value: Any) -> str:
    if isinstance(was, bool):  # a pair of flags; a field that may be None takes a value
        above, _, name = path.rpartition(".")
        name = name if value else f"no-{name}"
        return f"--{above}.{name}" if above else f"--{name}"
    values = value if isinstance(value, list | tuple) else [value]
    return " ".join([f"--{path}", *map(_word, values)])


def _word(value: Any) -> str:
    return shlex.quote(str(value))


def _on_lines(parts: list[str]) -> str:
    return " \\\n  ".join(parts)
