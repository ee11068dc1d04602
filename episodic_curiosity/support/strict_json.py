"""Parses JSON of files that may be damaged or forged."""

import json
import math
from typing import Any, NoReturn

MOST_LEVELS = 50  # of nesting: more would exceed Python's recursion limit somewhere
MOST_BITS = 64  # of an integer: larger ones are no floats


def parse_json(content: bytes | str) -> Any:
    """Raises ValueError for NaN, infinity, huge integers and deep nesting, too."""
    try:
        parsed = json.loads(
            content, parse_constant=_refuse, parse_int=_integer, parse_float=_finite
        )
    except RecursionError:
        raise ValueError("nested too deeply") from None
    level = [parsed]
    for _ in range(MOST_LEVELS):
        level = [inner for outer in level for inner in _items(outer)]
        if not level:
            return parsed
    raise ValueError("nested too deeply")


def _items(value: Any) -> Any:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def _integer(digits: str) -> int:
    value = int(digits)
    if value.bit_length() > MOST_BITS:
        raise ValueError("an integer is too large")
    return value


def _finite(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise ValueError("a number is too large")
    return value


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON")
