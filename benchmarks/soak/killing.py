"""Work that is killed or signalled at random moments and resumed, beside one that never was.

It runs in a process of its own, forked from a server that has imported everything and computed
nothing: it begins at once, and is otherwise as fresh as any.
"""

import contextlib
import multiprocessing
import os
import random
import shutil
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple

from benchmarks.soak.works import Work, fits, marker, play_here

CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(["__main__", "benchmarks.soak.killing", "benchmarks.soak.warm"])
STAGES = ("before the first checkpoint", "after it", "writing", "fitting")
BEGINNING, BETWEEN, WRITING, FITTING = STAGES
PATIENCE = 120.0  # seconds without an end after which a process counts as hanging
STOPPED = 130  # exit code after Ctrl-C or SIGTERM
ENDED_BY_SIGNAL = (-signal.SIGKILL, -signal.SIGTERM, STOPPED)
KILL, INTERRUPT, TERMINATE, FREEZE = SIGNALS = ("KILL", "INT", "TERM", "STOP")

Aim = Literal["anywhere", "writing", "fitting"]


class Blow(NamedTuple):
    """When to strike, and with which signal."""

    after: float  # seconds, at the earliest
    aim: Aim = "anywhere"
    signal: str = KILL
    twice: bool = False  # INT and TERM: the second one acts at once


class Played(NamedTuple):
    """How work ended."""

    code: int | None  # exit code, None where it did not end
    stage: str | None  # what it was doing when it was struck, None if it was not


@dataclass
class Blows:
    """When blows struck, and what the work that survived them left."""

    stages: Counter[str] = field(default_factory=Counter)
    num_ended: int = 0  # that came to their end and were compared
    differences: list[str] = field(default_factory=list)  # not as in work never struck
    failures: list[str] = field(default_factory=list)  # errors and hangs


def strike_and_resume(
    work: Work, folder: Path, num_blows: int, seed: int, sent: tuple[str, ...] = (KILL,)
) -> Blows:
    """Strikes work so often, at any moment of its duration, and lets it end.

    Two of three blows wait from there until something is being written, or an R-network is
    being fitted. Work that ends before its next blow is compared, and begins from nothing.
    """
    whole, struck = folder / "whole", folder / "struck"
    start_server()
    began = time.monotonic()
    assert play_on(work, whole).code == 0
    duration = time.monotonic() - began
    wanted = work.left(whole)
    blows, draw = Blows(), random.Random(f"{work.name} {seed} {sent}")
    while True:
        blow = None
        if (num_struck := blows.stages.total()) < num_blows:
            blow = _blow(work, num_struck, duration, sent, draw)
        played = play_on(work, struck, blow)
        if played.stage is not None:
            blows.stages[played.stage] += 1
        marker(struck).unlink(missing_ok=True)
        if played.code == 0:
            left = work.left(struck)
            blows.differences += sorted(
                f"{work.name}: {name}"
                for name in wanted | left
                if wanted.get(name) != left.get(name)
            )
            blows.num_ended += 1
            shutil.rmtree(struck)
            if blow is None:
                return blows
        elif played.stage is None or played.code not in ENDED_BY_SIGNAL:
            blows.failures.append(f"{work.name}: exit code {played.code} after {blow}")
            return blows


def start_server() -> None:
    """So that its imports do not count as a run's."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # NumPy would start threads
    process = CONTEXT.Process(target=int)
    process.start()
    process.join()


def play_on(work: Work, folder: Path, blow: Blow | None = None) -> Played:
    """Begins or resumes work in another process."""
    process = CONTEXT.Process(target=_play, args=(work, folder))
    began, stage = time.time(), None
    process.start()
    process.join(PATIENCE if blow is None else blow.after)
    if blow is not None:
        deadline = time.monotonic() + PATIENCE
        while (
            process.is_alive()
            and time.monotonic() < deadline
            and not _is_aimed_at(blow.aim, folder, began)
        ):
            time.sleep(0.001)
        if process.is_alive():
            stage = _strike(process, blow, folder, began)
        process.join(PATIENCE)
    if process.is_alive():
        process.kill()
        process.join()
        return Played(None, stage)
    return Played(process.exitcode, stage)


def _play(work: Work, folder: Path) -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's jobs ignore it
    try:
        try:
            play_here(work, folder)
        finally:  # a second one may come while this process ends
            signal.signal(signal.SIGINT, signal.SIG_IGN)
    except KeyboardInterrupt:
        sys.exit(STOPPED)


def _blow(
    work: Work, number: int, duration: float, sent: tuple[str, ...], draw: random.Random
) -> Blow:
    aims: tuple[Aim, ...] = ("anywhere", "writing", "fitting" if fits(work) else "anywhere")
    return Blow(
        after=draw.uniform(0, duration),
        aim=aims[number % len(aims)],
        signal=draw.choice(sent),
        twice=draw.random() < 0.5,
    )


def _strike(
    process: multiprocessing.process.BaseProcess, blow: Blow, folder: Path, began: float
) -> str | None:
    """Returns what it was doing, None if it ended before the blow."""
    number = signal.Signals[f"SIG{blow.signal}"]
    assert process.pid is not None
    stage = _stage(folder, began)
    with contextlib.suppress(ProcessLookupError):  # it has just ended
        os.kill(process.pid, number)
        if blow.signal == KILL:
            process.join()
            return None if process.exitcode == 0 else _stage(folder, began)
        if blow.signal == FREEZE:
            time.sleep(0.1)
            os.kill(process.pid, signal.SIGCONT)
        elif blow.twice:
            time.sleep(0.02)
            os.kill(process.pid, number)
    return stage


def _stage(folder: Path, began: float) -> str:
    """What work was doing when it was struck, by what it left since it began."""
    for stage in (WRITING, FITTING):
        if _is_aimed_at(stage, folder, began):
            return stage
    return BETWEEN if any(folder.glob("**/checkpoints/[0-9]*")) else BEGINNING


def _being_written(folder: Path) -> Iterator[Path]:
    """Unfinished files and checkpoints. Any may vanish meanwhile, which ends a `Path.glob`."""
    for parent, folders, files in os.walk(folder):
        for name in folders + files:
            in_checkpoints = os.path.basename(parent) == "checkpoints"
            if name.startswith(".") and (in_checkpoints or name.endswith(".new")):
                yield Path(parent, name)


def _is_aimed_at(aim: str, folder: Path, began: float) -> bool:
    """Whether it is there; files that an earlier blow has left do not count."""
    if aim == "anywhere":
        return True
    for path in [marker(folder)] if aim == FITTING else _being_written(folder):
        with contextlib.suppress(FileNotFoundError):  # it is whole now
            if path.stat().st_mtime >= began:
                return True
    return False
