"""The run of a stored folder, which may come from an untrusted source.

A config can name Python modules to import and files to read or write. Those of a received
folder are refused unless the user trusts it.
"""

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from episodic_curiosity.runs.config import Run
from episodic_curiosity.runs.record import CONFIG, read_config
from episodic_curiosity.worlds.registry import what_it_loads


class UntrustedError(ValueError):
    """A stored config that would load a module or a file; the message says which."""


def read_run(folder: Path, *, trust: bool = False, accept_changes: bool = False) -> Run:
    """The run in this folder.

    Without `trust` it may name no module and no path. `accept_changes` accepts an edited
    config.
    """
    run = Run.from_dict(read_config(folder, accept_changes=accept_changes))
    if not trust:
        for what in loads(run):
            raise UntrustedError(
                f"{folder / CONFIG} {what}; add --trust if you trust its author"
            )
    return run


def loads(run: Run) -> Iterator[str]:
    """The modules and files outside this package that a run would load, as words."""
    play = run.r_network.random_play if run.r_network else None
    for task in (run.task, *(play.tasks if play else ())):
        if what := what_it_loads(task):
            yield f"{what} (task {task})"
    for name, path in _paths(run):
        yield f"uses the path {path} ({name})"


def _paths(value: Any, name: str = "") -> Iterator[tuple[str, Path]]:
    """Every path in a config, with the dotted name of its field."""
    if isinstance(value, Path):
        yield name, value
    elif dataclasses.is_dataclass(value):
        for field in dataclasses.fields(value):
            inner = f"{name}.{field.name}" if name else field.name
            yield from _paths(getattr(value, field.name), inner)
