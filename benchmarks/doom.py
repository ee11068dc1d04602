"""Speed of ViZDoom's MyWayHome with our workers, compared with Gymnasium's AsyncVectorEnv.

    python benchmarks/doom.py

Both play 8 games with 4 tics per step and alternate in one run. `frames` is what both return:
a copy of the colour frames of 160 x 120. `world` is our complete step, with the policy's grey
84 x 84 and everything else as tensors. The ratio compares steps per second of CPU time, of all
processes together, which depends least on the number of cores and on other programs.
"""

import os
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

GAMES = 8
ROUNDS = 3
OURS, WORLD, THEIRS = "ours, frames", "ours, world", "AsyncVectorEnv"

Player = tuple[Callable[[], object], Callable[[], object]]


def compare(seconds: float) -> None:
    """Prints the speeds, each the median of three rounds of `seconds`."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # waiting threads would count as CPU time
    players = {OURS: _frames(), WORLD: _world(), THEIRS: _gymnasium()}
    rounds: dict[str, list[tuple[float, float]]] = {name: [] for name in players}
    for _ in range(ROUNDS):
        for name, (step, _) in players.items():
            rounds[name].append(_measure(step, seconds))
    for _, close in players.values():
        close()
    torch.set_num_threads(threads)
    middle = {name: np.median(figures, axis=0) for name, figures in rounds.items()}
    print(
        f"{f'vizdoom, {GAMES} games':<20} {'steps/s':>10} {'steps/CPU-second':>18} {'ratio':>6}"
    )
    for name, (per_second, per_cpu_second) in middle.items():
        ratio = per_cpu_second / middle[THEIRS][1]
        print(f"{name:<20} {per_second:>10,.0f} {per_cpu_second:>18,.0f} {ratio:>5.1f}x")


def _frames() -> Player:
    from episodic_curiosity.worlds.registry import make_world

    world = make_world("vizdoom/dense", num_envs=GAMES, seed=0)
    world.reset()
    workers, random = world.workers, np.random.default_rng(0)

    def step() -> None:
        workers.board.action[:] = random.integers(3, size=GAMES)
        workers.step()
        workers.board.present["frame"].copy()

    return step, world.close


def _world() -> Player:
    from episodic_curiosity.worlds.registry import make_world

    world = make_world("vizdoom/dense", num_envs=GAMES, seed=0)
    world.reset()
    return lambda: world.step(torch.randint(3, (GAMES,))), world.close


def _gymnasium() -> Player:
    import gymnasium

    envs = gymnasium.vector.AsyncVectorEnv([_make] * GAMES, context="spawn")
    envs.reset(seed=0)
    random = np.random.default_rng(0)
    left, _, forward = 1, 2, 3  # 0 does nothing
    return lambda: envs.step(random.integers(left, forward + 1, GAMES)), envs.close


def _make() -> object:
    import gymnasium
    from vizdoom import ScreenResolution, gymnasium_wrapper

    assert gymnasium_wrapper  # its import registers the id
    size = ScreenResolution.RES_160X120
    return gymnasium.make("VizdoomMyWayHome-v1", frame_skip=4, screen_resolution=size)


def _measure(step: Callable[[], object], seconds: float) -> tuple[float, float]:
    """Steps/s, and steps per second of CPU time."""
    for _ in range(20):
        step()
    steps, cpu, start = 0, _cpu_seconds(), time.perf_counter()
    while (passed := time.perf_counter() - start) < seconds:
        step()
        steps += GAMES
    return steps / passed, steps / (_cpu_seconds() - cpu)


def _cpu_seconds() -> float:
    """CPU time used so far by this process and all its descendants."""
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


if __name__ == "__main__":
    compare(seconds=3.0)
