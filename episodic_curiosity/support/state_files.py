"""Saves nested states as safetensors.

A state is a nested dict of tensors, numbers, strings, booleans, None and lists of these.
"""

import math
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from episodic_curiosity.support import saving
from episodic_curiosity.support.saving import LoadError
from episodic_curiosity.support.strict_json import MOST_BITS

State = dict[str, Any]

# In the header these replace values that JSON lacks: {"$tensor": name}, {"$float": "nan"}.
TENSOR, FLOAT = "$tensor", "$float"


def save_state(folder: Path, kind: str, state: State) -> None:
    """Writes `<kind>.safetensors` atomically."""
    tensors: dict[str, Tensor] = {}
    tree = _to_json(state, "", tensors)
    saving.save(folder, kind, tensors, tree)


def read_state(folder: Path, kind: str) -> State:
    """Returns the state that was saved, its tensors on the CPU."""
    tree, tensors = saving.read(folder, kind)
    try:
        state: State = _from_json(tree, tensors)
        if not isinstance(state, dict):
            raise TypeError
    except (KeyError, ValueError, TypeError, RecursionError):
        raise LoadError(f"{folder} does not describe a state") from None
    return state


def _to_json(value: Any, name: str, tensors: dict[str, Tensor]) -> Any:
    """The value with its tensors moved into `tensors`, each under its JSON pointer."""
    if isinstance(value, Tensor):
        tensors[name] = value
        return {TENSOR: name}
    if isinstance(value, np.integer | np.floating):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return {FLOAT: repr(float(value))}
    if isinstance(value, int) and value.bit_length() > MOST_BITS:
        raise TypeError(f"an integer of a state has at most {MOST_BITS} bits, got {name}")
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list):
        return [_to_json(item, f"{name}/{i}", tensors) for i, item in enumerate(value)]
    if isinstance(value, dict):
        for key in value:
            if not isinstance(key, str) or key.startswith("$"):
                raise TypeError(
                    f"the keys of a state must be strings that do not begin with $, "
                    f"got {key!r} in {name or 'it'}"
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
