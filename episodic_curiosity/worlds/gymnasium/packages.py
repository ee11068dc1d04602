"""Packages whose environments are made by their ids alone, and the defaults they need.

Gymnasium knows an id once the package that registers it was imported.
"""

import importlib
from typing import Literal, NamedTuple

from episodic_curiosity.worlds.family import FrameSizes

Vectorization = Literal["auto", "sync", "async", "vector_entry_point"]  # how copies are stepped


class Package(NamedTuple):
    """A package of environments; the defaults are those of an unknown one."""

    module: str = ""  # registers the ids when it is imported
    install: str = ""  # its name for pip
    frames: FrameSizes = "fixed"  # sizes that a preset sets, as in the record of a family
    grey: bool = False
    largest_byte: int = 255
    limit: str = ""  # attribute of its environments: the steps after which they truncate
    own_vectors: bool = True  # False: its vector form is another task, so copies are stepped


# A cell of a grid is three indices, of an object, a colour and a state: 10 is the largest.
MINIGRID = Package(module="minigrid", install="minigrid", largest_byte=10, limit="max_steps")
# Its vector form clips rewards and stacks frames.
ATARI = Package(
    module="ale_py", install="ale-py", frames="shared", grey=True, own_vectors=False
)
PACKAGES = {"MiniGrid-": MINIGRID, "BabyAI-": MINIGRID, "ALE/": ATARI}  # by the ids' prefix


def find_package(name: str) -> Package:
    """The package of a task's name after the slash, an id or `module:id`."""
    registered = name.rpartition(":")[2]
    known = (package for prefix, package in PACKAGES.items() if registered.startswith(prefix))
    return next(known, Package())


def import_package(name: str) -> None:
    """Imports what registers the id of a task; raises if it is not installed."""
    package = find_package(name)
    module = name.rpartition(":")[0] or package.module
    if not module:
        return
    try:
        importlib.import_module(module)
    except ModuleNotFoundError as missing:
        if package.module and missing.name == package.module:
            raise ValueError(
                f"gym/{name} needs {package.module}: pip install {package.install}"
            ) from missing
        raise
