"""Time of a run of 20 million steps on one GPU, by pieces.

    python benchmarks/gpu.py [--preset gpu] [--updates 30] [--methods ppo ppo+ec ...]
                             [--task maze/no-reward]

Each piece is timed on a slice, after compilation, and scaled up to a complete run of the
preset: playing (the world, the policy and the bonus), PPO's update, and for the R-network its
random play, its fit (EC) and its refits (ECO). "start" is the time for levels and compilation;
later methods compile only what earlier ones have not. The last lines compare PPO's update with
ceilings measured in the same process.
"""

import argparse
import dataclasses
import gc
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from torch.utils.flop_counter import FlopCounterMode

from episodic_curiosity.agent.network import Agent
from episodic_curiosity.reachability.fit_config import FitConfig
from episodic_curiosity.reachability.random_play import random_play
from episodic_curiosity.reachability.training import fit_r_network
from episodic_curiosity.runs.config import Run
from episodic_curiosity.runs.learner import Learner
from episodic_curiosity.runs.presets import resolve
from episodic_curiosity.support.checks import usable_device
from episodic_curiosity.support.compiling import warming_up
from episodic_curiosity.support.cuda_graphs import WARM_UPS
from episodic_curiosity.worlds.base import World
from episodic_curiosity.worlds.registry import make_world

STEPS = 20_000_000
METHODS = ("ppo", "ppo+oracle", "ppo+ec", "ppo+eco", "ppo+icm", "ppo+ec/paper")
PRESETS = ("gpu", "turbo")
PAPER_PAIRS = 12_800_000  # for the paper's R-network: 200,000 batches of 64
PLAYED, FITTED = 300, 60  # timed steps of random play and iterations of a fit
PIECES = ("play", "learn", "random play", "fit")

Seconds = dict[str, float]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--preset", default="gpu", choices=PRESETS)
    parser.add_argument("--updates", type=int, default=30)
    parser.add_argument("--methods", nargs="+", default=METHODS, choices=METHODS)
    parser.add_argument("--task", default="maze/no-reward")
    options = parser.parse_args()
    if options.updates < 1:
        parser.error(f"--updates must be at least 1, got {options.updates}")
    try:
        usable_device("cuda")
        for name in options.methods:
            resolve(options.task, name.partition("/")[0], options.preset, STEPS, seed=0)
    except ValueError as error:
        parser.error(str(error))
    print(
        f"{torch.cuda.get_device_name()}, torch {torch.__version__}, {options.task}, "
        f"preset {options.preset}"
    )
    print(f"seconds for {STEPS:,} steps, fraction of each piece, GPU memory\n")
    print(
        f"{'':14}{'start':>7}{'run':>8}" + "".join(f"{piece:>13}" for piece in PIECES), end=""
    )
    print(f"{'steps/s':>11}{'GB':>7}")
    learning = {}
    for name in options.methods:
        start, seconds, memory = measure(name, options)
        learning[name] = seconds["learn"]
        total = sum(seconds.values())
        shares = "".join(f"{seconds[piece] / total:>13.0%}" for piece in PIECES)
        print(f"{name:14}{start:7.1f}{total:8.1f}{shares}{STEPS / total:>11,.0f}{memory:7.1f}")
    peak, copied = ceilings()
    print(f"\nceilings: {peak / 1e12:,.0f} TFLOP/s in bfloat16, {copied / 1e12:.1f} TB/s")
    if "ppo" in learning:
        rate = update_flops(options.task, options.preset) / learning["ppo"]
        print(f"PPO's update: {rate / 1e12:,.0f} TFLOP/s, {rate / peak:.0%} of the ceiling")


def measure(name: str, options: argparse.Namespace) -> tuple[float, Seconds, float]:
    """Seconds of the start, seconds of each piece of a complete run, and peak memory in GB."""
    method, _, architecture = name.partition("/")
    run = resolve(options.task, method, options.preset, STEPS, seed=0)
    if architecture:
        run = _with_paper_r_network(run)
    gc.collect()  # frees the previous method
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    begin = time.perf_counter()
    with TemporaryDirectory() as folder, warming_up(torch.device("cuda")):
        world = _world(run, "train")
        learner = Learner.make(run, world, Path(folder))
        if learner.r_network is not None:
            learner.r_network.fitted.fill_(True)
    learner.collector.reset()
    for number in range(1 + WARM_UPS):  # compiles and captures
        learner.ppo.update(learner.collector.collect(), number)
    torch.cuda.synchronize()
    start = time.perf_counter() - begin

    # Random play counts towards the run's steps.
    whole = (STEPS - run.random_play_steps) / run.batch_size
    rollout = learner.collector.collect()
    seconds = dict.fromkeys(PIECES, 0.0)
    seconds["play"] = whole * _timed(learner.collector.collect, options.updates)
    seconds["learn"] = whole * _timed(lambda: learner.ppo.update(rollout, 1), options.updates)
    if learner.r_network is not None:
        seconds |= _r_network_work(run, learner)
    return start, seconds, torch.cuda.max_memory_allocated() / 1e9


def _r_network_work(run: Run, learner: Learner) -> Seconds:
    """Seconds of random play and the fit, or of all refits, scaled up from slices."""
    assert run.r_network is not None
    assert learner.r_network is not None
    r_network = learner.r_network
    world = _world(run, "r-network")
    num_envs = world.spec.num_envs
    random_play(world, num_envs * 10, seed=0, progress=False)  # captures
    begin = time.perf_counter()
    experience = random_play(world, num_envs * PLAYED, seed=0, progress=False)
    torch.cuda.synchronize()
    per_step = (time.perf_counter() - begin) / (num_envs * PLAYED)

    def fitted(config: FitConfig) -> float:
        """Seconds per iteration, without the constant cost of a fit."""
        few, more = (
            dataclasses.replace(config, iterations=count, epochs=None) for count in (5, FITTED)
        )
        fit_r_network(r_network, experience, few, progress=False)  # compiles
        times = []
        for part in (few, more):
            begin = time.perf_counter()
            fit_r_network(r_network, experience, part, progress=False)
            torch.cuda.synchronize()
            times.append(time.perf_counter() - begin)
        return (times[1] - times[0]) / (FITTED - 5)

    online = run.r_network.online
    if online is not None:
        refits = STEPS // online.refit_every
        return {"fit": refits * online.fit.num_iterations(online.history) * fitted(online.fit)}
    play = run.r_network.random_play
    assert play is not None
    assert play.fit.iterations is not None
    return {"random play": play.steps * per_step, "fit": play.fit.iterations * fitted(play.fit)}


def _with_paper_r_network(run: Run) -> Run:
    """ResNet-18 and the mlp comparator, fitted to as many pairs as in the paper."""
    assert run.r_network is not None
    r_network = run.r_network.with_architecture("paper")
    play = r_network.random_play
    assert play is not None
    config = dataclasses.replace(play.fit, iterations=PAPER_PAIRS // play.fit.batch_size)
    play = dataclasses.replace(play, fit=config)
    return dataclasses.replace(run, r_network=dataclasses.replace(r_network, random_play=play))


def _world(run: Run, split: str) -> World:
    return make_world(
        run.task,
        num_envs=run.world.num_envs,
        seed=0,
        device="cuda",
        split=split,
        **run.world.options(split),
    )


def _timed(work: Callable[[], object], count: int) -> float:
    torch.cuda.synchronize()
    begin = time.perf_counter()
    for _ in range(count):
        work()
    torch.cuda.synchronize()
    return (time.perf_counter() - begin) / count


def ceilings() -> tuple[float, float]:
    """Peak rates of the GPU: FLOP/s of a matrix product, bytes/s of a copy."""
    size = 8192
    matrix = torch.randn(size, size, dtype=torch.bfloat16, device="cuda")
    product = _timed(lambda: matrix @ matrix, 20)
    memory = torch.empty(1 << 31, dtype=torch.uint8, device="cuda")
    other = torch.empty_like(memory)
    copy = _timed(lambda: other.copy_(memory), 20)
    return 2 * size**3 / product, 2 * memory.nbytes / copy


def update_flops(task: str, preset: str) -> float:
    """FLOP of all PPO updates of a run, forward and backward through the agent."""
    run = resolve(task, "ppo", preset, STEPS, seed=0)
    assert run.world.observation_size is not None
    agent = Agent((3, *run.world.observation_size), num_actions=9)
    with FlopCounterMode(display=False) as counter:
        agent(torch.rand(2, *agent.config.observation_shape)).value.sum().backward()
    return counter.get_total_flops() / 2 * run.ppo.num_epochs * STEPS


if __name__ == "__main__":
    main()
