"""Shared folders of tiny runs, made as `ship` makes them."""

from pathlib import Path

import pytest

from episodic_curiosity.experiments import ship as module
from episodic_curiosity.experiments.ship import ship
from episodic_curiosity.runs.train import train
from episodic_curiosity.support import shared
from tests.runs.tiny_runs import tiny_run

TASK = "maze/no-reward"


def shipped(folder: Path, methods: tuple[str, ...]) -> None:
    """Trains a tiny run of each method and ships it from that folder, as the package would."""
    for method in methods:
        run = folder / "runs" / method
        train(tiny_run(method, TASK, num_updates=6), run, progress=False)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(shared, "SHIPPED", folder / "pretrained")
            patch.setattr(module, "history", lambda _: iter(()))  # seconds in a clone
            name = f"tiny-{method.replace('+', '-')}"
            ship(run, folder / "pretrained", name, episodes=5, device="cpu")
