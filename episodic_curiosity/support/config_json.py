"""Converts configs to plain JSON values and back, exactly and with type checks.

All fields must be present, and no others: a file that was edited or written by another release
raises an error that names the field. Defaults are filled in for fields marked ADDED alone.
"""

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType, NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np

Config = TypeVar("Config")

# Metadata of a field that was added to stored configs: its default is what was done before.
ADDED = {"added": True}

NAMES = {
    int: "an integer",
    float: "a number",
    bool: "true or false",
    str: "a string",
    NoneType: "null",
}


def to_plain(value: Any) -> Any:
    """Converts a config to dictionaries, lists, strings and numbers."""
    if dataclasses.is_dataclass(value):
        fields = dataclasses.fields(value)
        return {field.name: to_plain(getattr(value, field.name)) for field in fields}
    if isinstance(value, tuple):
        return [to_plain(item) for item in value]
    if isinstance(value, np.integer | np.floating):
        return value.item()
    return str(value) if isinstance(value, Path) else value


def from_plain(
    wanted: type[Config],
    plain: object,
    at: str = "",
    types: Mapping[str, Any] = MappingProxyType({}),
) -> Config:
    """Inverse of `to_plain`.

    `at` is the dotted path that prefixes field names in messages; `types` overrides the types
    of fields whose annotation is too general.
    """
    if not isinstance(plain, Mapping):
        raise ValueError(f"{at.rstrip('.') or 'a config'} must be a JSON object, got {plain!r}")
    check_fields(wanted, plain, at)
    types = {**get_type_hints(wanted), **types}
    return wanted(**{name: _value(types[name], plain[name], at + name) for name in plain})


def check_fields(wanted: type, plain: Mapping[str, Any], at: str = "") -> None:
    """Raises unless the fields of the dataclass are present, and no others.

    Fields that are marked ADDED may be missing: their default is what was done before.
    """
    fields = dataclasses.fields(wanted)
    names = [field.name for field in fields]
    for name in plain:
        if name not in names:
            raise ValueError(f"there is no field {at}{name}; there are {', '.join(names)}")
    for each in fields:
        if each.name not in plain and not each.metadata.get("added"):
            raise ValueError(f"the field {at}{each.name} is missing")


def _value(wanted: Any, plain: Any, at: str) -> Any:
    origin, arguments = get_origin(wanted), get_args(wanted)
    if origin in (Union, UnionType):
        if plain is None:
            return None
        # An optional field: there are no other unions.
        (wanted,) = (argument for argument in arguments if argument is not NoneType)
        return _value(wanted, plain, at)
    if origin is Literal:
        if plain not in arguments:
            choices = ", ".join(map(str, arguments))
            raise ValueError(f"{at} must be one of {choices}, got {plain!r}")
        return plain
    if origin is tuple:
        return _items(arguments, plain, at)
    if dataclasses.is_dataclass(wanted):
        return from_plain(wanted, plain, f"{at}.")  # type: ignore[arg-type]
    if wanted is Path:
        return Path(_value(str, plain, at))
    is_number = wanted is float and type(plain) is int
    if type(plain) is not wanted and not is_number:
        raise ValueError(f"{at} must be {NAMES[wanted]}, got {plain!r}")
    return plain


def _items(wanted: tuple[Any, ...], plain: Any, at: str) -> tuple[Any, ...]:
    """A tuple of a fixed number of items, or of any number if `...` follows the type."""
    if isinstance(plain, list) and wanted[-1] is ...:
        wanted = wanted[:1] * len(plain)
    if not isinstance(plain, list) or len(plain) != len(wanted):
        number = "" if wanted[-1] is ... else f"{len(wanted)} "
        raise ValueError(f"{at} must be a list of {number}items, got {plain!r}")
    return tuple(_value(kind, item, at) for kind, item in zip(wanted, plain, strict=True))
