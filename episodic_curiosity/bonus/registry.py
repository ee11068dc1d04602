"""Finds methods by name: the built-in ones, and what others register."""

from functools import cache

from episodic_curiosity.bonus import constant, episodic, icm, nothing, oracle
from episodic_curiosity.bonus.method import Method
from episodic_curiosity.support.checks import check_choice, check_type
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
    )
}


def register_method(method: Method) -> None:
    """Adds a method to those that can be trained, in this process."""
    check_type("method", method, Method)
    if method.name in _methods and _methods[method.name] is not method:
        raise ValueError(f"there already is a method {method.name}: choose another name")
    _methods[method.name] = method


def methods() -> dict[str, Method]:
    """All methods by name, those of installed packages included."""
    _find_plugins()
    return dict(_methods)


def find_method(name: str) -> Method:
    """Returns the method of that name; raises with a list of the choices."""
    found = methods()
    check_choice("method", name, found)
    return found[name]


@cache
def _find_plugins() -> None:
    register_plugins(GROUP, register_method)
