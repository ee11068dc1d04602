"""Compares a curious agent with plain PPO in a small maze without reward, on a CPU.

    python examples/demo.py --steps 250_000 --seed 0 --method ppo+ec --out runs/demo

Trains both, evaluates both on unseen levels, prints their coverage and writes OUT/demo.html.
A second call resumes an interrupted first one.
"""

import argparse
import dataclasses
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from episodic_curiosity.runs.config import Run
from episodic_curiosity.runs.evaluate_folder import evaluate_run
from episodic_curiosity.runs.presets import resolve
from episodic_curiosity.runs.train import train
from episodic_curiosity.support.saving import write_atomically
from episodic_curiosity.support.statistics import Summary
from episodic_curiosity.worlds.maze.family import MazeConfig
from examples.beside import beside_page
from examples.trained import Trained, mean_coverage

STEPS = 250_000
ENTROPY = 0.01  # coefficient for both agents; with the paper's, such short runs settle early


def small_run(method: str, steps: int, seed: int) -> Run:
    """The demo's runs: the same mazes and the same number of steps for every method."""
    run = resolve("maze/no-reward", method, "cpu", steps, seed)
    assert isinstance(run.world, MazeConfig)
    world = dataclasses.replace(
        run.world, maze_size=11, rooms=2, episode_steps=400, actions="three"
    )
    ppo = dataclasses.replace(run.ppo, entropy_coefficient=ENTROPY)
    return dataclasses.replace(run, world=world, ppo=ppo)


def main(arguments: Sequence[str] | None = None) -> None:
    options = read_options(arguments)
    seeds = range(options.seed, options.seed + options.seeds)
    try:
        plain = [learn("ppo", seed, options) for seed in seeds]
        curious = [learn(options.method, seed, options) for seed in seeds]
    except ValueError as error:
        sys.exit(f"demo: {error}")
    except KeyboardInterrupt:
        sys.exit("demo: stopped; run the same command to resume")
    print(f"\n{coverage_table(plain, curious)}")
    command = " \\\n  ".join(["python examples/demo.py", *in_full(options)])
    content = beside_page(plain, curious, command=command, episodes=options.episodes)
    path = options.out / "demo.html"
    write_atomically({path: content.encode()})
    print(f"\nLearning curves, paths from above and memory: {path}")


def read_options(arguments: Sequence[str] | None) -> argparse.Namespace:
    reader = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    reader.add_argument("--steps", type=int, default=STEPS, help="steps of each agent")
    reader.add_argument("--seed", type=int, default=0, help="seed of the first pair of agents")
    reader.add_argument("--seeds", type=int, default=1, help="number of pairs to train")
    reader.add_argument("--method", choices=("ppo+ec", "ppo+eco"), default="ppo+ec")
    reader.add_argument("--episodes", type=int, default=100, help="test episodes of each agent")
    reader.add_argument("--out", type=Path, default=Path("runs/demo"), help="output folder")
    options = reader.parse_args(arguments)
    for name in ("seeds", "episodes"):
        if getattr(options, name) < 1:
            reader.error(f"--{name} must be at least 1, got {getattr(options, name)}")
    return options


def in_full(options: argparse.Namespace) -> list[str]:
    """All options as words, including defaults."""
    return [f"--{name} {shlex.quote(str(value))}" for name, value in vars(options).items()]


def learn(method: str, seed: int, options: argparse.Namespace) -> Trained:
    """Trains or resumes an agent and evaluates it on unseen levels."""
    run = small_run(method, options.steps, seed)
    folder = options.out / f"{method.replace('+', '_')}__s{seed}"
    print(f"{method}, seed {seed}: {options.steps:,} steps, in {folder}")
    train(run, folder, resume=True)
    return Trained(run, folder, evaluate_run(folder, episodes=options.episodes))


def coverage_table(plain: Sequence[Trained], curious: Sequence[Trained]) -> str:
    """Table of both coverages, one line per seed."""
    num_episodes = plain[0].coverage.num_values
    lines = [
        f"Coverage on unseen levels: mean of {num_episodes} episodes [95 % interval]",
        f"{'seed':6}{'ppo':>22}{curious[0].run.method:>22}{'ratio':>8}",
    ]
    for one, other in zip(plain, curious, strict=True):
        ratio = other.coverage.mean / one.coverage.mean
        both = f"{in_short(one.coverage):>22}{in_short(other.coverage):>22}"
        lines.append(f"{one.run.seed:<6}{both}{ratio:8.2f}")
    if len(plain) > 1:
        means = mean_coverage(plain), mean_coverage(curious)
        lines.append(f"{'mean':6}{means[0]:22.1f}{means[1]:22.1f}{means[1] / means[0]:8.2f}")
    return "\n".join(lines)


def in_short(summary: Summary) -> str:
    return f"{summary.mean:.1f} [{summary.low:.1f} .. {summary.high:.1f}]"


if __name__ == "__main__":
    main()
