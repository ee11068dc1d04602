"""Kills runs of every method at random times, and damages the files of a run.

    python -m benchmarks.soak [--kills 100] [--damages 5000] [--seed 0] [--methods ppo ...]

Every run that ends must leave the same bytes as an uninterrupted one: weights, metrics and
newest checkpoint. A damaged file is refused with a LoadError of one line, unless the damage
changes nothing that is read or cuts the last line of metrics. Exits with 1 otherwise.
"""

import argparse
import sys
import tempfile
from pathlib import Path

from episodic_curiosity.runs.train import train
from tests.runs.damaging import READERS, damage_and_read
from tests.runs.killing import STAGES, kill_and_resume
from tests.runs.tiny_runs import METHODS, tiny_run


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--kills", type=int, default=100, help="kills of each method")
    parser.add_argument("--damages", type=int, default=5000, help="to each kind of file")
    parser.add_argument("--seed", type=int, default=0, help="seed of kills and damages")
    parser.add_argument("--methods", nargs="+", default=METHODS, choices=METHODS)
    options = parser.parse_args()

    wrong = kill_runs(options) + damage_files(options)
    if wrong:
        sys.exit("\n".join(sorted(set(wrong))))


def kill_runs(options: argparse.Namespace) -> list[str]:
    """Prints a table of kills; returns the files that differ."""
    print(f"{options.kills} kills of each method, seed {options.seed}")
    print(
        "\n| method | runs ended | files that differ | killed " + " | killed ".join(STAGES), "|"
    )
    print("|---" * (3 + len(STAGES)) + "|")
    differences = []
    for method in options.methods:
        with tempfile.TemporaryDirectory() as folder:
            kills = kill_and_resume(tiny_run(method), Path(folder), options.kills, options.seed)
        counts = " | ".join(str(kills.stages[stage]) for stage in STAGES)
        print(
            f"| {method} | {kills.num_runs} | {len(kills.differences)} | {counts} |", flush=True
        )
        differences += [f"differs: {name}" for name in kills.differences]
    return differences


def damage_files(options: argparse.Namespace) -> list[str]:
    """Prints a table of damages; returns the errors that are no sentence."""
    print(f"\n{options.damages} damages to each kind of file, seed {options.seed}")
    print("\n| file | refused | read all the same | other errors |\n|---|---|---|---|")
    tracebacks = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "run"
        train(tiny_run("ppo+eco", num_updates=4), folder, progress=False)
        for pattern in READERS:
            damages = damage_and_read(folder, pattern, options.damages, options.seed)
            counts = f"{damages.refused} | {damages.accepted} | {len(damages.tracebacks)}"
            print(f"| {pattern} | {counts} |", flush=True)
            tracebacks += damages.tracebacks
    return tracebacks


if __name__ == "__main__":
    main()
