"""Finds methods by name: the built-in ones, and what others register."""

import functools

from episodic_curiosity.bonus import (
    constant,
    e3b,
    ec_rnd,
    episodic,
    etd,
    icm,
    ngu,
    nothing,
    noveld,
    oracle,
    rnd,
)
from episodic_curiosity.bonus.method import Method
from episodic_curiosity.support.checks import check_type, suggestion
from episodic_curiosity.support.plugins import register_plugins

GROUP = "episodic_curiosity.methods"  # of entry points, each of which is a Method

_methods = {
    method.name: method
    for method in (
        nothing.METHOD,
        constant.METHOD,
        icm.METHOD,
        oracle.METHOD,
        episodic.EC,
        episodic.ECO,
        rnd.METHOD,
        ngu.METHOD,
        e3b.METHOD,
        noveld.METHOD,
        etd.METHOD,
        ec_rnd.METHOD,
    )
}


def register_method(method: Method) -> None:
    """Adds a method to those that can be trained, in this process.

    Args:
        method: its record.
    """
    check_type("method", method, Method)
    if method.name in _methods and _methods[method.name] is not method:
        raise ValueError(f"there is already a method {method.name!r}: choose another name")
    _methods[method.name] = method


def methods() -> dict[str, Method]:
    """All methods by name, those of installed packages included."""
    _load_entry_points()
    return dict(_methods)


def find_method(name: str) -> Method:
    """Returns the method of that name; raises with a list of the choices."""
    check_type("method", name, str)
    if name not in _methods:
        refused = "".join(f"; {sentence}" for sentence in _load_entry_points())
        if name not in _methods:
            wanted = f"method must be one of {', '.join(_methods)}"
            meant = suggestion(name, _methods)
            raise ValueError(f"{wanted}, got {name!r}{meant}{refused}")
    return _methods[name]


@functools.cache
def _load_entry_points() -> tuple[str, ...]:
    """Registers the methods of other packages; returns a sentence about each refused one."""
    return register_plugins(GROUP, "method", register_method)
