"""Entry points: additions of other installed packages."""

import logging
from collections.abc import Callable
from importlib.metadata import EntryPoint, entry_points
from typing import Any

logger = logging.getLogger(__name__)


def register_plugins(group: str, kind: str, register: Callable[[Any], None]) -> tuple[str, ...]:
    """Loads the entry points of a group and registers each.

    One that cannot be used is left out with a warning; returns a sentence about each of them.
    """
    refused = []
    for point in entry_points(group=group):
        try:
            register(point.load())
        except Exception as error:  # another package's code may raise anything
            refused.append(_refusal(kind, point, error))
            logger.warning(refused[-1])
    return tuple(refused)


def _refusal(kind: str, point: EntryPoint, error: Exception) -> str:
    source = f"{point.dist.name} {point.dist.version}" if point.dist else point.value
    reason = str(error).partition("\n")[0]
    return (
        f"the {kind} {point.name!r} of the package {source} cannot be used: "
        f"{type(error).__name__}: {reason}"
    )
