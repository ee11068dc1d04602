"""Compares curious agents with plain PPO in mazes without reward, on a CPU.

    python examples/demo.py --steps 250_000 --seed 0 --method ppo+ec --out runs/demo

First plays and films the agents that the package ships, on unseen levels. Then trains a small
pair, plain and curious, evaluates both on unseen levels, and prints their coverage. Writes
OUT/demo.html after each part. A second call resumes an interrupted first one. Each agent is
played or trained in a process of its own with one thread, two at a time.
"""

import argparse
import dataclasses
import shlex
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

import torch

from episodic_curiosity.runs.config import Run
from episodic_curiosity.runs.presets import resolve
from episodic_curiosity.support.progress import Progress
from episodic_curiosity.support.saving import write_atomically
from episodic_curiosity.support.statistics import Summary
from episodic_curiosity.worlds.maze.family import MazeConfig
from examples.beside import beside_page, first_page
from examples.shipped import folders_to_show, shipped_sections, show, shown_table
from examples.trained import Trained, mean_coverage, newest_metrics, train_and_evaluate
from examples.workers import workers

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
    path = options.out / "demo.html"
    torch.set_num_threads(1)
    try:
        with workers() as pool:
            before = show_shipped(pool, path)
            plain, curious = train_pairs(pool, options)
    except ValueError as error:
        sys.exit(f"demo: {error}")
    except (KeyboardInterrupt, BrokenProcessPool):
        sys.exit("demo: stopped; run the same command to resume")
    print(f"\n{coverage_table(plain, curious)}")
    command = " \\\n  ".join(["python examples/demo.py", *in_full(options)])
    content = beside_page(
        plain, curious, command=command, episodes=options.episodes, before=before
    )
    write_atomically({path: content.encode()})
    print(f"\nFilms, learning curves, paths from above and memory: {path}")


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


def show_shipped(pool: ProcessPoolExecutor, path: Path) -> list[str]:
    """Plays the shipped agents and writes the page with them; returns its sections."""
    folders = folders_to_show()
    if not folders:
        return []
    names = ", ".join(folder.name for folder in folders)
    print(f"Playing and filming the shipped agents in unseen mazes: {names}")
    films = path.parent / "films"
    films.mkdir(parents=True, exist_ok=True)
    # Those with an R-network take longest, so they begin.
    order = sorted(folders, key=lambda folder: not (folder / "r_network.safetensors").exists())
    jobs = {folder: pool.submit(show, folder, films) for folder in order}
    shown = [jobs[folder].result() for folder in folders]
    sections = shipped_sections(shown)
    write_atomically({path: first_page(sections).encode()})
    print(f"\n{shown_table(shown)}\n\nTheir films, side by side: {path}\n")
    return sections


def train_pairs(
    pool: ProcessPoolExecutor, options: argparse.Namespace
) -> tuple[list[Trained], list[Trained]]:
    """Trains or resumes the plain and the curious agents, with progress, and evaluates them."""
    seeds = range(options.seed, options.seed + options.seeds)
    jobs: dict[Path, Future[Trained]] = {}
    for seed in seeds:
        for method in ("ppo", options.method):
            run = small_run(method, options.steps, seed)
            folder = options.out / f"{method.replace('+', '_')}__s{seed}"
            print(f"{method}, seed {seed}: {options.steps:,} steps, in {folder}")
            jobs[folder] = pool.submit(train_and_evaluate, run, folder, options.episodes)
    watch_progress(jobs, len(jobs) * options.steps)
    trained = [future.result() for future in jobs.values()]
    return trained[::2], trained[1::2]


def watch_progress(jobs: Mapping[Path, Future[Trained]], total: int) -> None:
    """Shows the steps of all runs, and the newest coverage of each, until they have ended."""
    if any("ppo_ec" in folder.name for folder in jobs):
        print("A curious agent fits its R-network first, which takes a minute or more.")
    names = [folder.name for folder in jobs]
    begun = sum(newest_metrics(folder)["steps"] for folder in jobs)
    with Progress(total, int(begun), shown=names) as display:
        while wait(jobs.values(), timeout=1.0, return_when=FIRST_EXCEPTION).not_done:
            newest = {folder.name: newest_metrics(folder) for folder in jobs}
            steps = sum(line["steps"] for line in newest.values())
            lines = [(name, line) for name, line in newest.items() if line.get("coverage")]
            display.update(int(steps), {name: line["coverage"] for name, line in lines})
            if any(job.done() and job.exception() for job in jobs.values()):
                break


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
