"""Faults on purpose, with counts and a seed: what may happen to a run, many times.

    python -m benchmarks.soak [--parts kills damages flat ...] [--seed 0]

Every part prints a table. Exits with 1 if anything was not as docs/reliability.md promises.
"""

import argparse
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from benchmarks.soak import flat
from benchmarks.soak.disks import fill_disks
from benchmarks.soak.engines import break_engines
from benchmarks.soak.fuzz import damage_files, fuzz
from benchmarks.soak.kills import OTHERS, kill_runs, signal_runs
from benchmarks.soak.works import WORLDS
from episodic_curiosity.bonus.registry import methods


def main() -> None:
    options = _parser().parse_args()
    wrong = [problem for part in options.parts for problem in PARTS[part](options)]
    if wrong:
        sys.exit("\n".join(sorted(set(wrong))))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.soak", description=__doc__.partition("\n")[0]
    )
    add = parser.add_argument
    add("--parts", nargs="+", default=list(PARTS), choices=PARTS)
    add("--seed", type=int, default=0, help="seed of everything random")
    add("--kills", type=int, default=18, help="of each method in each world")
    add("--signals", type=int, default=3, help="to each method in each world")
    names = [*WORLDS, *OTHERS]
    add("--worlds", nargs="+", default=names, choices=names, help="what is killed")
    add("--methods", nargs="+", default=list(methods()), choices=methods(), help="in worlds")
    add("--disks", type=int, default=10, help="disk faults of each kind for each work")
    add("--faults", type=int, default=100, help="of processes in each world")
    add("--damages", type=int, default=5000, help="to each kind of file")
    add("--inputs", type=int, default=70_000, help="fuzz: odd arguments, files and commands")
    add("--minutes", type=float, default=2, help="flat: duration for each world")
    add("--every", type=float, default=15, help="flat: seconds between samples")
    add("--share", type=float, default=1, help="flat: share of a core that a run may take")
    add("--flat-worlds", nargs="+", default=list(flat.TASKS), choices=flat.TASKS)
    add("--samples", type=Path, help="flat: file for the samples, JSON lines")
    return parser


def watch_long_runs(options: argparse.Namespace) -> list[str]:
    """Prints a table of memory and descriptors over time; returns what grows."""
    print(f"{options.minutes:g} minutes of ppo+eco in each world, at {options.share:.0%}")
    print(flat.HEADER, flush=True)
    wrong = []
    for world in options.flat_worlds:
        with tempfile.TemporaryDirectory() as folder:
            out = options.samples or Path(folder) / "samples.jsonl"
            samples = flat.watch(world, options.minutes, options.every, options.share, out)
        line, grown = flat.row(world, samples)
        print(line, flush=True)
        wrong += grown
    return wrong


PARTS: dict[str, Callable[[argparse.Namespace], list[str]]] = {
    "kills": kill_runs,
    "signals": signal_runs,
    "disks": fill_disks,
    "engines": break_engines,
    "damages": damage_files,
    "fuzz": fuzz,
    "flat": watch_long_runs,
}

if __name__ == "__main__":
    main()
