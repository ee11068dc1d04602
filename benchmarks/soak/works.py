"""What is killed: runs of every method in every world, fits and tables, all tiny.

Each is started in a folder, may be killed, is started again in the same folder, and says what
it has to leave there.
"""

import multiprocessing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from episodic_curiosity.bonus.registry import methods
from episodic_curiosity.experiments.runner import run_cells
from episodic_curiosity.reachability.descent import Descent
from episodic_curiosity.runs.config import Run
from episodic_curiosity.runs.fit import fit
from episodic_curiosity.runs.metrics_files import read_metrics
from episodic_curiosity.runs.train import train
from tests.experiments.small_table import final_files, settings, small_cell
from tests.runs.tiny_runs import PLAY_STEPS, tiny_run

WORLDS = {
    "maze": "maze/sparse",
    "ant": "ant/no-reward",
    "gymnasium": "gym/CartPole-v1",
    "gymnasium async": "gym/CartPole-v1",
    "vizdoom": "vizdoom/dense",
}
RESTORED = ("maze", "ant")  # in mid-episode; the others begin new episodes
WITHOUT_POSITIONS = ("gymnasium", "gymnasium async")
TIMEOUT = 20.0  # seconds until a simulator counts as frozen
FITTING = ".fitting"  # a file beside the folder while an R-network is being fitted
TABLE_METHODS = ("ppo", "ppo+ec", "ppo+eco")


class Work(Protocol):
    """Something that can be started again in the same folder after a kill."""

    name: str

    def play(self, folder: Path) -> None:
        """Begins, or resumes what an earlier call has left."""

    def left(self, folder: Path) -> dict[str, object]:
        """What must be the same however often it was killed."""


@dataclass(frozen=True)
class Training:
    """One run; `exact` where its world can be restored in mid-episode."""

    name: str
    run: Run
    exact: bool = True

    def play(self, folder: Path) -> None:
        train(self.run, folder, resume=True, progress=False)

    def left(self, folder: Path) -> dict[str, object]:
        if self.exact:
            return dict(what_is_left(folder))
        steps = [line["steps"] for line in read_metrics(folder)]
        names = sorted(path.name for path in folder.glob("*.safetensors"))
        newest = max(path.name for path in (folder / "checkpoints").iterdir())
        return {"steps": steps, "weights": names, "newest checkpoint": newest}


@dataclass(frozen=True)
class Fit:
    """`curiosity fit`: an R-network fitted to random play."""

    name: str
    run: Run

    def play(self, folder: Path) -> None:
        if not (folder / "r_network.safetensors").exists():
            fit(self.run, folder, progress=False)

    def left(self, folder: Path) -> dict[str, object]:
        return {path.name: path.read_bytes() for path in folder.iterdir()}


@dataclass(frozen=True)
class Table:
    """`curiosity table`: three cells with their tests."""

    name: str = "table"

    def play(self, folder: Path) -> None:
        cells = [small_cell("maze/sparse", method, num_updates=4) for method in TABLE_METHODS]
        outcomes = run_cells(cells, replace(settings(folder), episodes=4))
        assert all(outcome.is_good for outcome in outcomes), outcomes

    def left(self, folder: Path) -> dict[str, object]:
        return dict(final_files(folder))


def training(world: str, method: str, num_updates: int = 10) -> Training:
    """A tiny run; processes of environments are forked, as Python does by default."""
    run = tiny_run(method, WORLDS[world], num_updates=num_updates)
    if world == "gymnasium async":
        run = replace(run, world=replace(run.world, vectorization="async", timeout=TIMEOUT))
    elif world == "gymnasium":
        run = replace(run, world=replace(run.world, vectorization="sync"))
    elif world == "vizdoom":
        run = replace(run, world=replace(run.world, timeout=TIMEOUT))
    return Training(f"{world}, {method}", run, exact=world in RESTORED)


def methods_of(world: str) -> list[str]:
    """The methods that can be trained there."""
    return [
        method
        for method in methods()
        if not (method == "ppo+oracle" and world in WITHOUT_POSITIONS)
    ]


def a_fit() -> Fit:
    run = tiny_run("ppo+ec")
    return Fit("fit", replace(run, steps=PLAY_STEPS))


def fits(work: Work) -> bool:
    """Whether an R-network is fitted in it, at which a kill can be aimed."""
    return not isinstance(work, Training) or work.run.r_network is not None


def what_is_left(folder: Path) -> dict[str, bytes]:
    """All that a run is held to, byte for byte: weights, metrics and the newest checkpoint."""
    checkpoint = max((folder / "checkpoints").glob("[0-9]*"))
    files = [folder / "metrics.jsonl", *folder.glob("*.safetensors"), *checkpoint.iterdir()]
    return {str(file.relative_to(folder)): file.read_bytes() for file in files}


def play_here(work: Work, folder: Path) -> None:
    """Plays in this process, which is one of its own."""
    multiprocessing.set_start_method("fork", force=True)
    _announce_fits(marker(folder))
    work.play(folder)


def marker(folder: Path) -> Path:
    """Exists while an R-network is being fitted."""
    return folder.with_name(folder.name + FITTING)


def _announce_fits(path: Path) -> None:
    """Lets fits touch a file at every batch and remove it at their end."""
    learn, close = Descent.learn, Descent.close

    def announced(self: Descent, *batch: object) -> None:
        path.touch()
        learn(self, *batch)

    def ended(self: Descent) -> None:
        path.unlink(missing_ok=True)
        close(self)

    Descent.learn, Descent.close = announced, ended  # type: ignore[method-assign]
