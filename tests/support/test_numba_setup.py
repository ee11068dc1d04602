"""Numba's cache, and what happens without a folder for it."""

import warnings

import pytest
from numba.core import caching

from episodic_curiosity.support.numba_setup import cached
from episodic_curiosity.worlds.vizdoom import resize


def double(number):
    return 2 * number


@pytest.fixture
def nowhere(monkeypatch):
    """An installation that cannot be written, of a user without a home."""

    def refuse(_):
        raise OSError("Read-only file system")

    monkeypatch.setattr(caching._CacheLocator, "ensure_cache_path", refuse)


def test_a_kernel_is_cached(tmp_path, monkeypatch):
    monkeypatch.setattr("numba.core.config.CACHE_DIR", str(tmp_path))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert cached()(double)(3) == 6
    assert list(tmp_path.rglob("*.nbi"))


@pytest.mark.usefixtures("nowhere")
def test_without_a_folder_for_a_cache_a_kernel_is_compiled_at_every_start():
    with pytest.warns(RuntimeWarning, match=r"set NUMBA_CACHE_DIR: cannot cache function"):
        kernel = cached()(double)
    assert kernel(3) == 6


@pytest.mark.usefixtures("nowhere")
def test_a_worker_needs_no_folder_for_a_cache(monkeypatch):
    monkeypatch.setattr(resize, "IS_IN_WORKER", True)
    assert resize.kernel(double)(3) == 6
