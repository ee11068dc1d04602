"""Puts the stand-in for DeepMind Lab where this process and its workers find it."""

import json
from pathlib import Path

import pytest

from episodic_curiosity.worlds.dmlab.build import examine_build

STANDIN = Path(__file__).with_name("standin")


class Builds:
    """The build that is installed, as a test wants it."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._told: dict[str, object] = {}

    def tell(self, **wanted: object) -> None:
        """What the stand-in is told; it says itself what that may be."""
        examine_build.cache_clear()
        self._told |= wanted
        self._file.write_text(json.dumps(self._told))


def install(patch: pytest.MonkeyPatch, folder: Path) -> Builds:
    examine_build.cache_clear()
    file = folder / "standin.json"
    patch.syspath_prepend(str(STANDIN))
    patch.setenv("STANDIN_LAB", str(file))
    return Builds(file)
