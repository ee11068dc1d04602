"""Engines and processes of environments that are killed or frozen between steps."""

import argparse
import logging
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import torch

from benchmarks.soak.orphans import adopt_orphans, children, orphans_left
from episodic_curiosity.worlds.registry import make_world

TIMEOUT = 2.0  # seconds until a process counts as frozen
NUM_ENVS = 4
STEPS_BETWEEN = 110  # so that faults of one environment are made up for
# More than these per step is a hang: the timeout, and new processes one after the other.
PATIENCE = 10 * TIMEOUT
SHARED = Path("/dev/shm")


def break_engines(options: argparse.Namespace) -> list[str]:
    """Prints a table of faults; returns what was not replaced, hung or was left behind."""
    print(f"\n{options.faults} faults in each world, seed {options.seed}")
    print(
        "\n| world | killed | frozen | steps | episodes truncated | slowest step, s "
        "| left running | left in /dev/shm |"
    )
    print("|---" * 8 + "|", flush=True)
    adopt_orphans()
    logging.disable(logging.WARNING)  # one for each fault
    wrong: list[str] = []
    worlds: dict[str, tuple[str, Callable[[Any], list[int]], dict[str, Any]]] = {
        "gymnasium async": ("gym/CartPole-v1", _processes, {"vectorization": "async"}),
        "vizdoom": ("vizdoom/dense", _engines, {"num_workers": 2}),
    }
    for name, (task, pids, more) in worlds.items():
        row, problems = _break(name, task, pids, more, options.faults, options.seed)
        print(row, flush=True)
        wrong += problems
    logging.disable(logging.NOTSET)
    return wrong


def _break(
    name: str,
    task: str,
    pids: Callable[[Any], list[int]],
    more: dict[str, Any],
    num_faults: int,
    seed: int,
) -> tuple[str, list[str]]:
    draw, sent, wrong = random.Random(f"{name} {seed}"), Counter[str](), []
    known, names = children(), set(os.listdir(SHARED))
    num_steps = truncated = 0
    slowest = 0.0
    options = {"num_envs": NUM_ENVS, "seed": 0, "timeout": TIMEOUT, **more}
    with closing(make_world(task, **options)) as world:
        world.reset()
        for _ in range(num_faults):
            signal_name = draw.choice(["KILL", "STOP"])
            sent[signal_name] += 1
            os.kill(draw.choice(pids(world)), signal.Signals[f"SIG{signal_name}"])
            for number in range(STEPS_BETWEEN):
                actions = torch.randint(world.spec.num_actions, (NUM_ENVS,))
                began = time.monotonic()
                step = world.step(actions)
                slowest = max(slowest, time.monotonic() - began)
                num_steps += 1
                if number == 0:
                    ended = int((step.truncated & step.first).sum())
                    truncated += ended
                    if not ended:
                        wrong.append(f"{name}: no episode was truncated by {signal_name}")
    if slowest > PATIENCE:
        wrong.append(f"{name}: a step took {slowest:.0f} s")
    left = orphans_left(known)
    in_memory = [one for one in set(os.listdir(SHARED)) - names if _is_ours(one, name)]
    wrong += [f"{name}: left {words}" for words in (*left, *in_memory)]
    figures = f"{sent['KILL']} | {sent['STOP']} | {num_steps:,} | {truncated} | {slowest:.1f}"
    return f"| {name} | {figures} | {len(left)} | {len(in_memory)} |", wrong


def _processes(world: Any) -> list[int]:
    pids: list[int] = world._env.pids
    return pids


def _engines(world: Any) -> list[int]:
    """Workers, and the games that they started."""
    workers: list[int] = world.workers.pids
    games = [
        int(pid)
        for worker in workers
        for task in Path(f"/proc/{worker}/task").iterdir()
        for pid in (task / "children").read_text().split()
    ]
    return workers + games


def _is_ours(entry: str, world: str) -> bool:
    """Whether a name in shared memory can be of this world; other programs have others."""
    return entry.startswith("ViZDoom") == (world == "vizdoom")
