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
from episodic_curiosity.support.shared import is_shipped
from episodic_curiosity.worlds.registry import what_it_loads


class UntrustedError(ValueError):
    """A stored config that would load a module or a file; the message says which."""


def read_run(
    folder: Path, *, trust: bool = False, accept_changes: bool = False, to_train: bool = False
) -> Run:
    """The run in this folder, to play its agent or (`to_train`) to resume it.

    Without `trust`, the parts that this needs must not name a module or a path. A level cache
    has no effect on the run and is left out. `accept_changes` accepts an edited config.
    """
    run = Run.from_dict(read_config(folder, accept_changes=accept_changes))
    if trust:
        return run
    if getattr(run.world, "level_cache", None) is not None:
        world = dataclasses.replace(run.world, level_cache=None)  # type: ignore[call-arg]
        run = dataclasses.replace(run, world=world)
    if found := ", ".join(loads(run, to_train=to_train)):
        raise UntrustedError(f"{folder / CONFIG} {found}; add --trust if you trust its author")
    return run


def loads(run: Run, *, to_train: bool) -> Iterator[str]:
    """The modules and files outside this package that a run would load, as words."""
    play = run.r_network.random_play if run.r_network else None
    for task in (run.task, *(play.tasks if play and to_train else ())):
        if what := what_it_loads(task):
            yield f"{what} (task {task})"
    # To play needs the world, and for a film the bonus.
    parts = [("", run)] if to_train else [("world", run.world), ("bonus", run.bonus)]
    used = (found for name, part in parts for found in _paths(part, name))
    for name, path in used:
        if not is_shipped(path):
            yield f"uses the path {path} ({name})"


def _paths(value: Any, name: str = "") -> Iterator[tuple[str, Path]]:
    """Every path in a config, with the dotted name of its field."""
    if isinstance(value, Path):
        yield name, value
    elif isinstance(value, tuple):
        for item in value:
            yield from _paths(item, name)
    elif dataclasses.is_dataclass(value):
        for field in dataclasses.fields(value):
            inner = f"{name}.{field.name}" if name else field.name
            yield from _paths(getattr(value, field.name), inner)
