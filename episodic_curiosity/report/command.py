"""The command line behind a number."""

import json
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from episodic_curiosity.config import Run
from episodic_curiosity.presets import resolve


def train_command(run: Run, folder: Path) -> str:
    """What trains this run again: its task, method and preset, and whatever else it changes."""
    named = {
        "task": run.task,
        "method": run.method,
        "preset": run.preset,
        "steps": run.steps,
        "seed": run.seed,
    }
    usual = resolve(**named).to_dict()
    options = [("out", folder), *named.items(), *_changes(usual, run.to_dict())]
    return _on_lines(["curiosity train", *(f"--{name} {_word(value)}" for name, value in options)])


def evaluate_command(folder: Path, episodes: int) -> str:
    """What measures the agent of a run's folder again."""
    return _on_lines([f"curiosity evaluate {_word(folder)}", f"--episodes {episodes}"])


def _changes(usual: Mapping[str, Any], plain: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """The dotted path and the value of each field that is not as usual."""
    for name, value in plain.items():
        was = usual[name]
        if isinstance(value, dict) and isinstance(was, dict):
            for path, changed in _changes(was, value):
                yield f"{name}.{path}".replace("_", "-"), changed
        elif value != was:
            yield name.replace("_", "-"), value


def _word(value: Any) -> str:
    if isinstance(value, list | tuple):
        return " ".join(_word(part) for part in value)
    if isinstance(value, bool | None):
        return str(value)
    return shlex.quote(value if isinstance(value, str | Path) else json.dumps(value))


def _on_lines(parts: list[str]) -> str:
    return " \\\n  ".join(parts)
