"""Runs that are killed at random moments and resumed, beside one that never was.

A kill is SIGKILL to a process of its own, forked from a server that has imported everything
and computed nothing: it begins at once, and is otherwise as fresh as any.
"""

import contextlib
import multiprocessing
import random
import shutil
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from episodic_curiosity.runs.config import Run
from episodic_curiosity.runs.train import train

# What a run would import later is imported once, by the server.
IMPORTS = ("torch._dynamo", "torch.utils.tensorboard", "episodic_curiosity.worlds.maze.world")
CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(["__main__", "tests.runs.killing", *IMPORTS])
BEGINNING, BETWEEN, WRITING = STAGES = ("before the first checkpoint", "after it", "writing")


class Kill(NamedTuple):
    """When to kill a run."""

    after: float  # seconds, at the earliest
    while_writing: bool = False  # wait until it writes weights or a checkpoint


@dataclass
class Kills:
    """When kills struck, and what the runs that survived them left."""

    stages: Counter[str] = field(default_factory=Counter)
    num_runs: int = 0  # that came to their end
    differences: list[str] = field(default_factory=list)  # files not as in a run never killed


def kill_and_resume(run: Run, folder: Path, num_kills: int, seed: int) -> Kills:
    """Kills a run so often, at any moment of its duration, and lets it end.

    Every second kill waits from there until something is being written.
    A run that ends before its next kill is compared, and the next one begins from nothing.
    """
    whole, killed = folder / "whole", folder / "killed"
    start_server()
    began = time.monotonic()
    assert play_on(run, whole)
    duration = time.monotonic() - began
    wanted = what_is_left(whole)
    kills, draw = Kills(), random.Random(f"{run.method} {seed}")
    while True:
        num_killed = kills.stages.total()
        kill = None
        if num_killed < num_kills:
            kill = Kill(after=draw.uniform(0, duration), while_writing=num_killed % 2 == 1)
        began = time.time()
        if not play_on(run, killed, kill):
            kills.stages[_stage(killed, began)] += 1
            continue
        left = what_is_left(killed)
        kills.differences += sorted(
            name for name in wanted | left if wanted.get(name) != left.get(name)
        )
        kills.num_runs += 1
        shutil.rmtree(killed)
        if kill is None:
            return kills


def start_server() -> None:
    """So that its imports do not count as a run's."""
    process = CONTEXT.Process(target=int)
    process.start()
    process.join()


def play_on(run: Run, folder: Path, kill: Kill | None = None) -> bool:
    """Begins a run or goes on with it, in another process; says whether it came to its end."""
    process = CONTEXT.Process(target=_train, args=(run, folder))
    began = time.time()
    process.start()
    process.join(None if kill is None else kill.after)
    if kill is not None and kill.while_writing:
        while process.is_alive() and not _is_writing(folder, began):
            time.sleep(0.001)
    process.kill()
    process.join()
    if process.exitcode not in (0, -9):
        raise RuntimeError(f"the run in {folder} failed, with exit code {process.exitcode}")
    return process.exitcode == 0


def what_is_left(folder: Path) -> dict[str, bytes]:
    """All that a run is held to, byte for byte: weights, metrics and the newest checkpoint."""
    checkpoint = max((folder / "checkpoints").glob("[0-9]*"))
    files = [folder / "metrics.jsonl", *folder.glob("*.safetensors"), *checkpoint.iterdir()]
    return {str(file.relative_to(folder)): file.read_bytes() for file in files}


def _train(run: Run, folder: Path) -> None:
    train(run, folder, resume=True, progress=False)


def _stage(folder: Path, began: float) -> str:
    """What a run was doing when it was killed, by what it left since it began."""
    if _is_writing(folder, began):
        return WRITING
    return BETWEEN if any((folder / "checkpoints").glob("[0-9]*")) else BEGINNING


def _is_writing(folder: Path, began: float) -> bool:
    """Whether there are files that are not whole yet, and were not left by an earlier kill."""
    unfinished = [*folder.glob(".*.new"), *(folder / "checkpoints").glob(".*")]
    for path in unfinished:
        with contextlib.suppress(FileNotFoundError):  # it is whole now
            if path.stat().st_mtime >= began:
                return True
    return False
