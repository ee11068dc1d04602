"""Damaged files are refused in a sentence; `make soak` tries many more."""

import pytest

from benchmarks.soak.damaging import KINDS, damage_and_read, make_files


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return make_files(tmp_path_factory.mktemp("damaged"))


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_random_damage(files, kind):
    damages = damage_and_read(kind, files[kind], 100, seed=0)
    assert damages.tracebacks == []
    assert damages.refused > 30
