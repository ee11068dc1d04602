"""Imports `deepmind_lab`, also where its package's own loader no longer works."""

import importlib
import importlib.util
import sys
from importlib.machinery import ExtensionFileLoader
from pathlib import Path
from types import ModuleType

# The package imports these only to find and load its shared library.
GONE = ("imp", "pkg_resources")  # missing from Python 3.12 on, or without setuptools


def load_lab(name: str = "deepmind_lab") -> ModuleType:
    """Imports the module; loads its shared library directly if `__init__` needs GONE."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as missing:
        if missing.name == "dm_env":
            raise ImportError(
                f"{name} imports dm_env, which its wheel does not install: pip install dm-env"
            ) from missing
        if missing.name not in GONE:
            raise
    package = importlib.util.find_spec(name)
    assert package is not None
    assert package.origin is not None
    file = Path(package.origin).with_name(f"{name}.so")
    spec = importlib.util.spec_from_file_location(
        name, file, loader=ExtensionFileLoader(name, str(file))
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # the library looks itself up here
    spec.loader.exec_module(module)
    return module
