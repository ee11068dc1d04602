"""Objects named as "module:name", imported when they are needed."""

import importlib
import re
from typing import Any

_OBJECT = re.compile(r"[\w.]+:\w+")


def check_object_name(name: str, value: object) -> None:
    """Raises unless the value has the form "module:name"."""
    if not isinstance(value, str) or not _OBJECT.fullmatch(value):
        raise ValueError(f'{name} must be "module:name", got {value!r}')


def import_object(name: str) -> Any:
    """Imports the module of "module:name" and returns the object in it."""
    module, _, attribute = name.partition(":")
    try:
        return getattr(importlib.import_module(module), attribute)
    except AttributeError:
        raise ImportError(f"the module {module} has no {attribute}") from None
