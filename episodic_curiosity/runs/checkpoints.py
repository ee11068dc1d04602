"""Checkpoints: everything a run needs to resume, in folders that are complete or absent.

A run has them in `checkpoints/<number>/`, as `state.safetensors`.
"""

import os
import re
import shutil
import warnings
from pathlib import Path
from typing import Any, NamedTuple

from episodic_curiosity.support import saving
from episodic_curiosity.support.checks import check_at_least
from episodic_curiosity.support.files import remove_folder
from episodic_curiosity.support.saving import LoadError
from episodic_curiosity.support.state_files import State, read_state, save_state

CHECKPOINTS = "checkpoints"  # in a run's folder
KIND = "state"


class Checkpoint(NamedTuple):
    """A run after `number` updates."""

    number: int
    state: State
    lines: int  # of metrics
    steps: int  # of the last of these lines, -1 before there is any


class Checkpoints:
    """The newest two checkpoints of the run in a folder."""

    def __init__(self, run_folder: Path) -> None:
        self.folder = run_folder / CHECKPOINTS

    def save(self, state: State, number: int, lines: int = 0, steps: int = -1) -> Path:
        """Writes a checkpoint atomically and removes all others but the one before it.

        Those with a higher number are removed too: the run did not resume from them. Returns
        the checkpoint's folder.
        """
        check_at_least("number", number, 0)
        final = self.path(number)
        unfinished = _aside(final, "new")
        self._remove_hidden()
        try:
            save_state(unfinished, KIND, {"lines": lines, "steps": steps, "state": state})
            _sync(unfinished)
            if final.exists() or final.is_symlink():
                # A folder cannot replace another atomically: killed right here, a run resumes
                # from the checkpoint before.
                os.replace(final, _aside(final, "old"))
            os.replace(unfinished, final)
        except BaseException:
            shutil.rmtree(unfinished, ignore_errors=True)  # a folder that was made here
            raise
        _sync(self.folder)
        self._keep_newest(number)
        return final

    def load_newest(self) -> Checkpoint | None:
        """The newest checkpoint that is not damaged, its tensors on the CPU.

        None where there are none; a LoadError where all are damaged.
        """
        damage: list[str] = []
        for number in self._numbers():
            try:
                checkpoint = Checkpoint(number, **_read(self.path(number)))
            except LoadError as error:
                damage.append(str(error))
                continue
            if damage:
                warnings.warn(
                    f"going back to checkpoint {number}: {'; '.join(damage)}",
                    RuntimeWarning,
                    stacklevel=2,
                )
            return checkpoint
        if damage:
            raise LoadError(f"no checkpoint in {self.folder} is intact: {'; '.join(damage)}")
        return None

    @property
    def is_empty(self) -> bool:
        """True if there is nothing to resume from."""
        return not self._numbers()

    @property
    def newest_number(self) -> int | None:
        """The updates before the newest checkpoint; None where there is none."""
        return max(self._numbers(), default=None)

    def remove(self) -> None:
        """Removes all checkpoints with their folder, as far as possible."""
        remove_folder(self.folder, ignore_errors=True)

    def path(self, number: int) -> Path:
        """The folder of one checkpoint."""
        return self.folder / f"{number:012d}"

    def _numbers(self) -> list[int]:
        """The numbers of the visible checkpoints, newest first."""
        if not self.folder.is_dir():
            return []
        names = (path.name for path in self.folder.iterdir())
        return sorted(int(name) for name in names if re.fullmatch(r"[0-9]{12}", name))[::-1]

    def _keep_newest(self, number: int) -> None:
        before = [other for other in self._numbers() if other < number]
        for other in set(self._numbers()) - {number, *before[:1]}:
            path = self.path(other)
            os.replace(path, _aside(path, "old"))  # hidden first: never visible in part
        self._remove_hidden()

    def _remove_hidden(self) -> None:
        for path in self.folder.glob(".*"):
            if re.fullmatch(r"\.[0-9]{12}\.(new|old)", path.name):
                remove_folder(path)


def written_by(path: Path) -> str:
    """The end of a message about a checkpoint of another release."""
    return saving.versions(saving.read_weights_header(path, KIND))


def _read(path: Path) -> State:
    content = read_state(path, KIND)
    is_complete = content.keys() == {"lines", "steps", "state"}
    if not (is_complete and _is_count(content["lines"], 0) and _is_count(content["steps"], -1)):
        raise LoadError(f"{path} is not a checkpoint of a run")
    return content


def _is_count(value: Any, least: int) -> bool:
    return type(value) is int and value >= least


def _aside(path: Path, ending: str) -> Path:
    return path.with_name(f".{path.name}.{ending}")


def _sync(folder: Path) -> None:
    """Makes the names in a folder outlast a power cut."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
