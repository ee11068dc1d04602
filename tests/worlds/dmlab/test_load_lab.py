"""Modules whose packages load a library of the same name, as deepmind_lab's does."""

import shutil
import sys
from pathlib import Path

import numba.mviewbuf
import pytest

from episodic_curiosity.worlds.dmlab.engine import load_lab

LIBRARY = "mviewbuf"  # one that needs nothing else


@pytest.fixture
def package(tmp_path, monkeypatch) -> Path:
    folder = tmp_path / LIBRARY
    folder.mkdir()
    shutil.copyfile(numba.mviewbuf.__file__, folder / f"{LIBRARY}.so")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, LIBRARY, raising=False)
    yield folder
    sys.modules.pop(LIBRARY, None)


@pytest.mark.parametrize("gone", ["imp", "pkg_resources"])
def test_what_python_no_longer_has_is_not_needed(package, gone, monkeypatch):
    monkeypatch.setitem(sys.modules, gone, None)
    (package / "__init__.py").write_text(f"import {gone}\n")
    module = load_lab(LIBRARY)
    assert module.memoryview_get_buffer
    assert sys.modules[LIBRARY] is module
    assert load_lab(LIBRARY) is module


def test_a_package_that_loads_is_left_alone(package):
    (package / "__init__.py").write_text("x = 1\n")
    assert load_lab(LIBRARY).x == 1


def test_anything_else_that_is_missing_is_said(package):
    (package / "__init__.py").write_text("import nothing_of_that_name\n")
    with pytest.raises(ModuleNotFoundError, match="nothing_of_that_name"):
        load_lab(LIBRARY)


def test_a_package_without_dm_env_says_what_to_install(package, monkeypatch):
    monkeypatch.setitem(sys.modules, "dm_env", None)
    (package / "__init__.py").write_text("import dm_env\n")
    with pytest.raises(
        ImportError, match=f"^{LIBRARY} imports dm_env, .*: pip install dm-env$"
    ):
        load_lab(LIBRARY)
