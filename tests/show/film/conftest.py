"""Runs to watch."""

from pathlib import Path

import pytest

from episodic_curiosity.runs.train import train
from tests.runs.tiny_runs import tiny_run


@pytest.fixture(scope="package")
def runs(tmp_path_factory):
    """The folder of a tiny run of each method, made when it is first asked for."""
    folders: dict[str, Path] = {}

    def folder(method: str) -> Path:
        if method not in folders:
            folders[method] = tmp_path_factory.mktemp("runs") / method
            train(tiny_run(method, num_updates=4), folders[method], progress=False)
        return folders[method]

    return folder
