"""Memory, descriptors, threads and shared memory of a long run, sampled from outside.

A run trains in a process of its own. It is stopped and continued once a second, so that it
takes only a share of a core. `/proc` is read for it and for the processes it started. Growth is
that of a straight line through the samples after the warm-up.
"""

import contextlib
import json
import multiprocessing
import os
import signal
import tempfile
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np

from episodic_curiosity.runs.config import Run
from episodic_curiosity.runs.train import train
from tests.runs.tiny_runs import tiny_run

TASKS = {
    "maze": "maze/sparse",
    "vizdoom": "vizdoom/dense",
    "gymnasium async": "gym/CartPole-v1",
}
PERIOD = 1.0  # seconds between two stops
WARM_UP = 0.25  # of the duration: memories, replay and caches fill
ENDLESS = 10_000_000  # updates
CLEAN_STOP = 60.0  # seconds that a run gets to write its last checkpoint
MEGABYTE = 1 << 20
# Growth after the warm-up that still counts as flat.
LIMITS = {"anonymous": 20.0, "shared": 1.0, "descriptors": 1.0, "threads": 1.0}


@dataclass(frozen=True)
class Sample:
    """A run and the processes it started at one moment; memory in MB."""

    seconds: float
    updates: int
    rss: float  # of the training process, pages of files included, which come and go
    anonymous: float  # the same without pages of files: what a leak would grow
    pss: float  # of all processes, pages that they share counted once
    shared: float  # of the training process
    descriptors: int  # of all processes
    threads: int  # of all processes
    processes: int
    shm_files: int  # names in /dev/shm, of all programs
    temporary: int  # files and folders in the run's folder for temporary files


def watch(world: str, minutes: float, every: float, share: float, out: Path) -> list[Sample]:
    """Samples a run of `ppo+eco` for a time; writes each sample to a line of `out`."""
    with tempfile.TemporaryDirectory() as temporary, out.open("w") as lines:
        folder, scratch = Path(temporary) / "run", Path(temporary) / "scratch"
        scratch.mkdir()
        context = multiprocessing.get_context("spawn")
        process = context.Process(target=_train, args=(endless_run(world), folder, scratch))
        process.start()
        assert process.pid is not None
        samples: list[Sample] = []
        began = time.monotonic()
        while (seconds := time.monotonic() - began) < 60 * minutes:
            if not process.is_alive():
                raise RuntimeError(f"the run ended with exit code {process.exitcode}")
            is_due = not samples or seconds >= samples[-1].seconds + every
            if is_due and (folder / "metrics.jsonl").exists():
                sample = _sample(seconds, process.pid, folder, scratch)
                samples.append(sample)
                print(json.dumps(asdict(sample)), file=lines, flush=True)
            _breathe(process.pid, share)
        os.kill(process.pid, signal.SIGTERM)
        process.join(CLEAN_STOP)
        if process.is_alive():
            process.kill()
            raise RuntimeError("the run did not end after SIGTERM")
    return samples


def endless_run(world: str) -> Run:
    """A run of `ppo+eco` that refits every 1,000 steps to the last 2,000."""
    run = tiny_run("ppo+eco", TASKS[world], num_updates=ENDLESS)
    assert run.r_network is not None
    assert run.r_network.online is not None
    online = replace(run.r_network.online, refit_every=1000, history=2000)
    run = replace(run, r_network=replace(run.r_network, online=online))
    if world == "gymnasium async":
        run = replace(run, world=replace(run.world, vectorization="async"))
    return replace(run, record=replace(run.record, checkpoint_every=50))


def after_warm_up(samples: list[Sample]) -> list[Sample]:
    return [one for one in samples if one.seconds >= WARM_UP * samples[-1].seconds]


def growth(samples: list[Sample], name: str) -> float:
    """How much a figure grows over the samples, by a straight line through them."""
    times = np.array([one.seconds for one in samples])
    slope = np.polyfit(times, [getattr(one, name) for one in samples], 1)[0]
    return float(slope * (times[-1] - times[0]))


def row(world: str, samples: list[Sample]) -> tuple[str, list[str]]:
    """A line of the table, with figures after the warm-up; and what is not flat."""
    late = after_warm_up(samples)
    first, last = late[0], late[-1]
    cells = [world, f"{last.seconds / 60:.0f}", f"{last.updates:,}"]
    for name in ("rss", "anonymous", "pss", "shared"):
        before, after = getattr(first, name), getattr(last, name)
        cells.append(f"{before:.1f} to {after:.1f} ({growth(late, name):+.1f})")
    counted = ("descriptors", "threads", "processes", "shm_files", "temporary")
    cells += [f"{getattr(first, name)} to {getattr(last, name)}" for name in counted]
    wrong = [
        f"{world}: {name} grew by {growth(late, name):.1f}"
        for name, limit in LIMITS.items()
        if growth(late, name) > limit
    ]
    return f"| {' | '.join(cells)} |", wrong


HEADER = (
    "Figures after the warm-up, first to last; in brackets the growth of a line through all\n\n"
    "| world | minutes | updates | RSS, MB | anonymous, MB | PSS of all processes, MB "
    "| shared, MB | descriptors | threads | processes | names in /dev/shm | temporary files |\n"
    + "|---" * 12
    + "|"
)


def _train(run: Run, folder: Path, scratch: Path) -> None:
    """Ends with exit code 0 after SIGTERM, which leaves a checkpoint."""
    # Python's default for processes of environments; `spawn` would be inherited.
    multiprocessing.set_start_method("fork", force=True)
    os.environ["TMPDIR"] = str(scratch)
    tempfile.tempdir = None
    with contextlib.suppress(KeyboardInterrupt):
        train(run, folder, progress=False)


def _breathe(pid: int, share: float) -> None:
    """Lets the process run for a share of a period; its children end their step and wait."""
    time.sleep(PERIOD * share)
    if share < 1:
        os.kill(pid, signal.SIGSTOP)
        time.sleep(PERIOD * (1 - share))
        os.kill(pid, signal.SIGCONT)


def _sample(seconds: float, pid: int, folder: Path, scratch: Path) -> Sample:
    tree = _tree(pid)
    status = _numbers(Path(f"/proc/{pid}/status"))
    return Sample(
        seconds=round(seconds, 1),
        updates=(folder / "metrics.jsonl").read_bytes().count(b"\n"),
        rss=status["VmRSS"] / 1024,
        anonymous=status["RssAnon"] / 1024,
        pss=sum(_numbers(Path(f"/proc/{one}/smaps_rollup"))["Pss"] for one in tree) / 1024,
        shared=status["RssShmem"] / 1024,
        descriptors=sum(len(os.listdir(f"/proc/{one}/fd")) for one in tree),
        threads=sum(len(os.listdir(f"/proc/{one}/task")) for one in tree),
        processes=len(tree),
        shm_files=len(os.listdir("/dev/shm")),
        temporary=sum(1 for _ in scratch.rglob("*")),
    )


def _numbers(path: Path) -> dict[str, int]:
    """The figures of a file of /proc, by their names; memory in kB."""
    lines = (line.split() for line in path.read_text().splitlines())
    return {
        words[0].rstrip(":"): int(words[1])
        for words in lines
        if len(words) > 1 and words[1].isdigit()
    }


def _tree(pid: int) -> list[int]:
    """The process and all that it started."""
    children = [
        int(child)
        for thread in os.listdir(f"/proc/{pid}/task")
        for child in Path(f"/proc/{pid}/task/{thread}/children").read_text().split()
    ]
    return [pid, *(one for child in children for one in _tree(child))]
