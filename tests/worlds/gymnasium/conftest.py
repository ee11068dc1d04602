"""Processes of environments are forked: some libraries make spawning the default."""

import multiprocessing

import pytest


@pytest.fixture(autouse=True)
def _forked(monkeypatch):
    find = multiprocessing.get_context
    monkeypatch.setattr(multiprocessing, "get_context", lambda method="fork": find(method))
