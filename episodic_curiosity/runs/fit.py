"""Fits the R-network of a run to random play, before the run or without one (EC)."""

import contextlib
from pathlib import Path

from episodic_curiosity.reachability.network import RNetwork
from episodic_curiosity.reachability.random_play import (
    bytes_kept,
    fit_to_random_play,
    held_out_envs,
    held_out_steps,
)
from episodic_curiosity.reachability.training import FitReport
from episodic_curiosity.runs import build
from episodic_curiosity.runs.config import Run
from episodic_curiosity.runs.record import RunFolderError, folder_for_work
from episodic_curiosity.support.machine import return_freed_memory, reusing_freed_memory
from episodic_curiosity.support.progress import Progress
from episodic_curiosity.worlds.base import Split, World, WorldSpec


def fit(run: Run, folder: Path, *, progress: bool = True) -> FitReport:
    """Fits an R-network to random play, for any run of a world with the same view shape."""
    run = Run.from_dict(run.to_dict())  # NumPy's numbers as Python's
    run.check_random_play()
    if any((folder / name).exists() for name in ("r_network.safetensors", "config.json")):
        raise RunFolderError(f"{folder} already holds an R-network or a run: choose another")
    with folder_for_work(folder), reusing_freed_memory():
        with contextlib.closing(build.open_first_world(run)) as world:
            r_network = build.make_r_network(run, world)
            spec = world.spec
        with Progress(run.steps, is_shown=progress) as display:
            report = fit_beforehand(run, r_network, spec, folder, display)
            r_network.save(folder)
            display.note(
                f"R-network fitted: held-out accuracy {report.held_out_accuracy:.1%}; use it "
                f"with curiosity train --r-network-from {folder}"
            )
    return report


def fit_beforehand(
    run: Run, r_network: RNetwork, spec: WorldSpec, folder: Path, display: Progress
) -> FitReport:
    """Fits an R-network to random play, after a note on how much memory that takes."""
    megabytes = random_play_bytes(run, spec) / 1e6
    display.note(
        f"random play takes {megabytes:,.0f} MB of memory, or of disk if frames would take "
        f"more than half of the free memory"
    )
    play = run.random_play
    display.note(  # without a progress bar, the last line until the fit is done
        f"playing {play.steps:,} steps at random, then fitting the R-network to them: "
        f"{play.fit.num_iterations(play.steps):,} batches of {play.fit.batch_size:,} pairs"
    )
    report = _play_and_fit(run, r_network, folder, progress=display.is_shown)
    return_freed_memory()  # of the random play
    return report


def random_play_bytes(run: Run, spec: WorldSpec) -> int:
    """Bytes of the random play that the R-network is fitted to and tested on."""
    play = run.random_play
    num_envs = held_out_envs(spec) * max(1, len(play.tasks))
    num_steps = play.steps + held_out_steps(play.steps, play.fit, num_envs)
    return bytes_kept(spec, num_steps)


def _play_and_fit(run: Run, r_network: RNetwork, folder: Path, *, progress: bool) -> FitReport:
    """Plays the run's task at random, or several tasks, and fits the R-network."""
    play = run.random_play
    tasks = play.tasks or (run.task,)

    with contextlib.ExitStack() as opened:

        def open_all(split: Split, num_envs: int) -> list[World]:
            worlds = (build.open_world(run, split, task, num_envs) for task in tasks)
            return [opened.enter_context(contextlib.closing(world)) for world in worlds]

        trained_on = open_all("r-network", run.world.num_envs)
        return fit_to_random_play(
            r_network,
            trained_on,
            open_all("validation", held_out_envs(trained_on[0].spec)),
            play.steps,
            play.fit,
            seed=run.seed,
            folder=folder,
            progress=progress,
        )
