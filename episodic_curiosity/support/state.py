"""Saved states: copying, and checking before loading."""

from collections.abc import Mapping
from typing import Any

from torch import Tensor

from episodic_curiosity.support.checks import first_difference


def copied(state: Mapping[str, Any]) -> dict[str, Any]:
    """Clones a module's state, whose tensors would otherwise change with the module."""
    return {
        name: part.clone() if isinstance(part, Tensor) else part for name, part in state.items()
    }


def check_parts(state: Mapping[str, Any], names: set[str]) -> None:
    """Raises unless a state has exactly the parts of these names."""
    if not isinstance(state, Mapping):
        raise ValueError(f"a state has {', '.join(sorted(names))}, got {type(state).__name__}")
    if state.keys() != names:
        raise ValueError(f"a state has {', '.join(sorted(names))}, got {sorted(state)}")


def check_part(state: Mapping[str, Any], name: str, wanted: Tensor | Mapping[str, Any]) -> None:
    """Raises unless a part of a state has tensors of the wanted names, shapes and dtypes."""
    found = state[name]
    if isinstance(wanted, Tensor):
        found, wanted = {name: found}, {name: wanted}
    if difference := first_difference(found, wanted):
        raise ValueError(f"the state's {name} {difference}")


def within(state: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    """The parts of a state that belong to the modules and buffers with these names."""
    wholes = tuple(f"{name}." for name in names)
    return {name: part for name, part in state.items() if f"{name}.".startswith(wholes)}
