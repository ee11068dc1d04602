"""Compares a curious agent with plain PPO in mazes without reward, on a CPU.

    python examples/demo.py --steps 200_000 --seed 0 --method ppo+ec --out runs/demo

Trains a pair on small frames, plain and curious, plays both on unseen levels, and prints their
coverage. Films both on the same level, and the agents that the package ships. Writes
OUT/demo.html. A second call resumes an interrupted first one. Each agent is played or trained
in a process with one thread, two at a time.
"""

import argparse
import dataclasses
import shlex
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Literal

import torch

from episodic_curiosity.bonus.episodic import EpisodicConfig
from episodic_curiosity.runs.config import Run
from episodic_curiosity.runs.presets import resolve
from episodic_curiosity.support.progress import Progress
from episodic_curiosity.support.saving import write_atomically
from episodic_curiosity.support.statistics import Summary
from episodic_curiosity.worlds.maze.family import MazeConfig
from examples.beside import beside_page
from examples.shipped import Shown, folders_to_show, shipped_sections, show, shown_table
from examples.trained import Trained, mean_coverage, newest_metrics, train_and_evaluate
from examples.workers import workers

STEPS = 200_000
EPISODES = 64  # one of each environment
# For both agents, unlike preset `cpu`: rollouts of 64 x 32 steps instead of 16 x 64 are faster
# and differ less from seed to seed, and with the paper's entropy coefficients of 0.001 to 0.002
# agents settle early. docs/demo.md has the search.
NUM_ENVS, NUM_STEPS, MINIBATCHES, ENTROPY = 64, 32, 8, 0.03
# The oldest view makes room in a full memory, as in the authors' runs without reward.
REPLACEMENT: Literal["fifo"] = "fifo"
# Of ppo+ec, fitted to random play in such mazes, which would take ten minutes here.
R_NETWORK = Path("pretrained:maze-r-network-fast")


def demo_run(method: str, steps: int, seed: int) -> Run:
    """The demo's runs: the same mazes, steps and device, a CPU, for every method."""
    run = resolve("maze/no-reward", method, "cpu", steps, seed)
    assert isinstance(run.world, MazeConfig)
    world = dataclasses.replace(run.world, num_envs=NUM_ENVS)
    ppo = dataclasses.replace(
        run.ppo, num_steps=NUM_STEPS, num_minibatches=MINIBATCHES, entropy_coefficient=ENTROPY
    )
    bonus, r_network = run.bonus, run.r_network
    if isinstance(bonus, EpisodicConfig):
        bonus = dataclasses.replace(bonus, replacement=REPLACEMENT)
    if r_network is not None and r_network.random_play is not None:
        r_network = dataclasses.replace(r_network, source=R_NETWORK)
    return dataclasses.replace(
        run, world=world, ppo=ppo, bonus=bonus, r_network=r_network, device="cpu"
    )


def main(arguments: Sequence[str] | None = None) -> None:
    options = read_options(arguments)
    path = options.out / "demo.html"
    torch.set_num_threads(1)
    try:
        with workers() as pool:
            plain, curious, shown = play_all(pool, options)
    except ValueError as error:
        sys.exit(f"demo: {error}")
    except (KeyboardInterrupt, BrokenProcessPool):
        sys.exit("demo: stopped; run the same command to resume")
    print(f"\n{coverage_table(plain, curious)}")
    if shown:
        print(f"\n{shown_table(shown)}")
    command = " \\\n  ".join(["python examples/demo.py", *in_full(options)])
    content = beside_page(
        plain,
        curious,
        command=command,
        episodes=options.episodes,
        after=shipped_sections(shown),
    )
    write_atomically({path: content.encode()})
    print(f"\nA film of both, learning curves, paths from above and memory: {path}")


def read_options(arguments: Sequence[str] | None) -> argparse.Namespace:
    reader = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    reader.add_argument("--steps", type=int, default=STEPS, help="steps of each agent")
    reader.add_argument("--seed", type=int, default=0, help="seed of the first pair of agents")
    reader.add_argument("--seeds", type=int, default=1, help="number of pairs to train")
    reader.add_argument("--method", choices=("ppo+ec", "ppo+eco"), default="ppo+ec")
    reader.add_argument("--episodes", type=int, default=EPISODES, help="played by each agent")
    reader.add_argument("--out", type=Path, default=Path("runs/demo"), help="output folder")
    options = reader.parse_args(arguments)
    for name in ("seeds", "episodes"):
        if getattr(options, name) < 1:
            reader.error(f"--{name} must be at least 1, got {getattr(options, name)}")
    return options


def in_full(options: argparse.Namespace) -> list[str]:
    """All options as words, including defaults."""
    return [f"--{name} {shlex.quote(str(value))}" for name, value in vars(options).items()]


def play_all(
    pool: ProcessPoolExecutor, options: argparse.Namespace
) -> tuple[list[Trained], list[Trained], list[Shown]]:
    """Trains or resumes the plain and the curious agents, with progress, and plays them.

    The shipped agents are played last, on the core that plain PPO has left.
    """
    jobs: dict[Path, Future[Trained]] = {}
    for seed in range(options.seed, options.seed + options.seeds):
        for method in (options.method, "ppo"):  # the slower first
            run = demo_run(method, options.steps, seed)
            folder = options.out / f"{method.replace('+', '_')}__s{seed}"
            print(f"{method}, seed {seed}: {options.steps:,} steps, in {folder}")
            jobs[folder] = pool.submit(train_and_evaluate, run, folder, options.episodes)
    films = options.out / "films"
    shipped = [pool.submit(show, folder, films) for folder in folders_to_show()]
    watch_progress(jobs, len(jobs) * options.steps)
    trained = [future.result() for future in jobs.values()]
    return trained[1::2], trained[::2], [future.result() for future in shipped]


def watch_progress(jobs: Mapping[Path, Future[Trained]], total: int) -> None:
    """Shows the steps of all runs, and the newest coverage of each, until they have ended."""
    names = [folder.name for folder in jobs]
    begun = sum(newest_metrics(folder)["steps"] for folder in jobs)
    with Progress(total, int(begun), shown=names) as display:
        while wait(jobs.values(), timeout=1.0, return_when=FIRST_EXCEPTION).not_done:
            newest = {folder.name: newest_metrics(folder) for folder in jobs}
            steps = sum(line["steps"] for line in newest.values())
            lines = [(name, line) for name, line in newest.items() if line.get("coverage")]
            display.update(int(steps), {name: line["coverage"] for name, line in lines})
            for job in jobs.values():
                if job.done():
                    job.result()  # raises if it failed; the other jobs need not end


def coverage_table(plain: Sequence[Trained], curious: Sequence[Trained]) -> str:
    """Table of both coverages, one line per seed."""
    num_episodes = plain[0].coverage.num_values
    lines = [
        f"Coverage on unseen levels: mean of {num_episodes} episodes [95 % interval]",
        f"{'seed':6}{'ppo':>26}{curious[0].run.method:>26}{'ratio':>8}",
    ]
    for one, other in zip(plain, curious, strict=True):
        ratio = other.coverage.mean / one.coverage.mean
        both = f"{in_short(one.coverage):>26}{in_short(other.coverage):>26}"
        lines.append(f"{one.run.seed:<6}{both}{ratio:8.2f}")
    if len(plain) > 1:
        means = mean_coverage(plain), mean_coverage(curious)
        lines.append(f"{'mean':6}{means[0]:26.1f}{means[1]:26.1f}{means[1] / means[0]:8.2f}")
    return "\n".join(lines)


def in_short(summary: Summary) -> str:
    return f"{summary.mean:.1f} [{summary.low:.1f} .. {summary.high:.1f}]"


if __name__ == "__main__":
    main()
