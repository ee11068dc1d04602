"""What other installed packages add by entry points."""

import warnings
from collections.abc import Callable
from importlib.metadata import entry_points
from typing import Any


def register_plugins(group: str, register: Callable[[Any], None]) -> None:
    """Loads the entry points of a group and registers each.

    One that fails is left out, with a warning that names its package.
    """
    for point in entry_points(group=group):
        try:
            register(point.load())
        except Exception as error:  # whatever a stranger's module raises
            package = point.dist.name if point.dist else "a package"
            warnings.warn(
                f"{point.name} of {package} ({group}) is left out: {error}",
                RuntimeWarning,
                stacklevel=2,
            )
