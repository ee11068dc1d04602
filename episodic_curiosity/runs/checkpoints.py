"""All that a run needs to go on, in folders that are whole or absent, whenever it is killed.

A state is a dict, nested as deep as one likes, of tensors, numbers, strings, booleans, None and
lists of these. One checkpoint is one folder, `<number>/state.safetensors` and `state.json`.
"""

import hashlib
import json
import math
import os
import re
import shutil
import warnings
from pathlib import Path
from typing import Any

from torch import Tensor

from episodic_curiosity.support import saving
from episodic_curiosity.support.checks import check_at_least
from episodic_curiosity.support.files import remove_folder
from episodic_curiosity.support.saving import LoadError

State = dict[str, Any]

KIND = "state"
# In state.json these stand for what JSON has no word for: {"$tensor": name}, {"$float": "nan"}.
TENSOR, FLOAT = "$tensor", "$float"


class Checkpoints:
    """The newest two checkpoints of a run, in a folder of their own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def save(self, state: State, number: int) -> Path:
        """Writes a checkpoint, which appears in one step, and removes all but the one before.

        Those with a higher number go too: whoever saves this one has not gone on from them.
        Returns the folder of this one.
        """
        check_at_least("number", number, 0)
        tensors: dict[str, Tensor] = {}
        tree = _to_json(state, "", tensors)
        config = {"state": tree, "sha256": _fingerprint(tree)}

        final = self.path(number)
        unfinished = _aside(final, "new")
        self._remove_hidden()
        try:
            saving.save(unfinished, KIND, tensors, config)
            _sync(unfinished)
            if final.exists() or final.is_symlink():
                # A folder cannot replace another in one step: killed right here, a run goes
                # on from the checkpoint before.
                os.replace(final, _aside(final, "old"))
            os.replace(unfinished, final)
        except BaseException:
            shutil.rmtree(unfinished, ignore_errors=True)  # a folder that was made here
            raise
        _sync(self.folder)
        self._keep_newest(number)
        return final

    def load_newest(self) -> tuple[int, State] | None:
        """The number and the state of the newest one that is whole, its tensors on the CPU.

        None where there has never been any; an error where there are some and all are damaged.
        """
        damage: list[str] = []
        for number in self._numbers():
            try:
                state = _read(self.path(number))
            except LoadError as error:
                damage.append(str(error))
                continue
            if damage:
                warnings.warn(
                    f"going back to checkpoint {number}: {'; '.join(damage)}",
                    RuntimeWarning,
                    stacklevel=2,
                )
            return number, state
        if damage:
            raise LoadError(f"no checkpoint in {self.folder} is whole: {'; '.join(damage)}")
        return None

    def path(self, number: int) -> Path:
        """The folder of one checkpoint."""
        return self.folder / f"{number:012d}"

    def _numbers(self) -> list[int]:
        """Those of the visible checkpoints, newest first."""
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
    """Words that end a message about a checkpoint of another release."""
    return saving.versions(saving.read_header(path / f"{KIND}.json", KIND))


def _read(path: Path) -> State:
    config, tensors = saving.read(path, KIND)
    tree = config.get("state")
    if not isinstance(tree, dict) or config.get("sha256") != _fingerprint(tree):
        raise LoadError(f"{path / KIND}.json is not as it was written (fingerprints differ)")
    try:
        state: State = _from_json(tree, tensors)
    except (KeyError, ValueError, TypeError, RecursionError):
        raise LoadError(f"{path / KIND}.json describes no state") from None
    return state


def _to_json(value: Any, name: str, tensors: dict[str, Tensor]) -> Any:
    """The value with its tensors taken out into `tensors`, each under its JSON pointer."""
    if isinstance(value, Tensor):
        # A copy, because what shares its memory with another cannot be written.
        tensors[name] = value.detach().to("cpu", copy=True)
        return {TENSOR: name}
    if isinstance(value, float) and not math.isfinite(value):
        return {FLOAT: repr(float(value))}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list):
        return [_to_json(item, f"{name}/{i}", tensors) for i, item in enumerate(value)]
    if isinstance(value, dict):
        for key in value:
            if not isinstance(key, str) or key.startswith("$"):
                raise TypeError(
                    f"the keys of a state must be strings that do not begin with $, "
                    f"got {key!r} in {name or 'the state itself'}"
                )
        return {
            key: _to_json(item, f"{name}/{_escape(key)}", tensors)
            for key, item in value.items()
        }
    raise TypeError(
        f"a state holds tensors, numbers, strings, booleans, None, lists and dicts, "
        f"got {type(value).__name__} at {name}"
    )


def _from_json(value: Any, tensors: dict[str, Tensor]) -> Any:
    if isinstance(value, list):
        return [_from_json(item, tensors) for item in value]
    if not isinstance(value, dict):
        return value
    if TENSOR in value:
        return tensors[value[TENSOR]]
    if FLOAT in value:
        return float(value[FLOAT])
    return {key: _from_json(item, tensors) for key, item in value.items()}


def _escape(key: str) -> str:
    """A part of a JSON pointer, so that {"a/b": ...} and {"a": {"b": ...}} stay apart."""
    return key.replace("~", "~0").replace("/", "~1")


def _fingerprint(tree: Any) -> str:
    return hashlib.sha256(json.dumps(tree).encode()).hexdigest()


def _aside(path: Path, ending: str) -> Path:
    return path.with_name(f".{path.name}.{ending}")


def _sync(folder: Path) -> None:
    """Makes the names in a folder outlast a power cut."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
