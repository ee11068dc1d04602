"""Speeds as steps per second of CPU time, of this process and all its descendants.

That depends least on the number of cores and on other programs: eight processes get a larger
share of a busy machine than two.
"""

import dataclasses
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch

from episodic_curiosity.bonus.episodic import EpisodicBonus
from episodic_curiosity.runs.config import Run
from episodic_curiosity.runs.learner import Learner
from episodic_curiosity.runs.presets import resolve
from episodic_curiosity.support.machine import reusing_freed_memory
from episodic_curiosity.worlds.registry import make_world

ROUNDS = 3
LONG = 10**9  # steps of a run; never reached


class Player(NamedTuple):
    """Something that takes steps."""

    play: Callable[[], object]
    num_steps: int  # of one call
    close: Callable[[], object]


def compare(makers: dict[str, Callable[[], Player]], than: str, seconds: float) -> None:
    """Prints speeds, medians of three rounds in which the players alternate, on one thread.

    A player whose package is missing is left out. Freed memory is reused, as in a run, or each
    batch of frames would wait for new pages.
    """
    torch.set_num_threads(1)  # waiting threads would count as CPU time
    players = {}
    for name, make in makers.items():
        try:
            players[name] = make()
        except ImportError as missing:
            print(f"{name} is left out: {missing}")
    rounds: dict[str, list[tuple[float, float]]] = {name: [] for name in players}
    with reusing_freed_memory():
        for player in players.values():
            player.play()
        for _ in range(ROUNDS):
            for name, player in players.items():
                rounds[name].append(_measure(player, seconds))
    for player in players.values():
        player.close()
    middle = {name: np.median(figures, axis=0) for name, figures in rounds.items()}
    print(f"{'':<28} {'steps/s':>10} {'steps/CPU-second':>18} {'ratio':>7}")
    for name, (per_second, per_cpu_second) in middle.items():
        ratio = per_cpu_second / middle[than][1]
        print(f"{name:<28} {per_second:>10,.0f} {per_cpu_second:>18,.0f} {ratio:>6.2f}x")


def training(task: str, method: str, num_envs: int) -> Player:
    """Updates of the preset `cpu`, play included; memories are full, nothing is fitted."""
    run = resolve(task, method, "cpu", LONG, seed=0)
    world_config = dataclasses.replace(run.world, num_envs=num_envs)
    run = dataclasses.replace(run, device="cpu", world=world_config)
    folder = tempfile.TemporaryDirectory()
    learner = full_learner(run, Path(folder.name))

    def update() -> None:
        rollout = learner.collector.collect()
        learner.ppo.update(rollout, 0)
        learner.bonus.learn(rollout)

    def close() -> None:
        learner.collector.world.close()
        folder.cleanup()

    return Player(update, num_envs * run.ppo.num_steps, close)


def full_learner(run: Run, folder: Path) -> Learner:
    """A run's learner after the reset, with full memories of random embeddings."""
    world = make_world(
        run.task, num_envs=run.world.num_envs, seed=0, **run.world.options("train")
    )
    learner = Learner.make(run, world, folder)
    learner.collector.reset()
    if isinstance(learner.curiosity, EpisodicBonus):
        assert learner.r_network is not None
        learner.r_network.fitted.fill_(True)
        learner.curiosity.memory.embeddings.normal_()
        learner.curiosity.memory.added.fill_(learner.curiosity.memory.capacity)
    return learner


def _measure(player: Player, seconds: float) -> tuple[float, float]:
    """Steps/s, and steps per second of CPU time."""
    steps, cpu, start = 0, _used(), time.perf_counter()
    while (passed := time.perf_counter() - start) < seconds:
        player.play()
        steps += player.num_steps
    return steps / passed, steps / (_used() - cpu)


def _used() -> float:
    """CPU seconds used so far by this process and all its descendants."""
    parents, used = {}, {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue  # the process has ended
        parents[int(entry.name)] = int(fields[1])
        used[int(entry.name)] = int(fields[11]) + int(fields[12])

    def is_ours(pid: int) -> bool:
        while pid not in (0, os.getpid()):
            pid = parents.get(pid, 0)
        return pid != 0

    return sum(ticks for pid, ticks in used.items() if is_ours(pid)) / os.sysconf("SC_CLK_TCK")
