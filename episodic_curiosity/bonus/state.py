"""What the states of all bonuses have in common: they are copies, and are looked at first."""

from collections.abc import Mapping
from typing import Any

from torch import Tensor

from episodic_curiosity.support.checks import first_difference


def copied(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """A copy of a module's state, which by itself would go on changing."""
    return {name: tensor.clone() for name, tensor in tensors.items()}


def check_parts(state: Mapping[str, Any], names: set[str]) -> None:
    """Raises unless a state has the parts of these names and no others."""
    if state.keys() != names:
        raise ValueError(f"a state has {', '.join(sorted(names))}, got {sorted(state)}")


def check_part(state: Mapping[str, Any], name: str, wanted: Tensor | Mapping[str, Any]) -> None:
    """Raises unless one part of a state has the wanted tensors, by name, shape and type."""
    found = state[name]
    if isinstance(wanted, Tensor):
        found, wanted = {name: found}, {name: wanted}
    if difference := first_difference(found, wanted):
        raise ValueError(f"the state's {name} {difference}")
