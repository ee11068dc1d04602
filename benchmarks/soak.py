"""Kills runs of every method at random times and compares the files they leave.

    python -m benchmarks.soak [--kills 100] [--seed 0] [--methods ppo ppo+ec ...]

Every run that ends must leave the same bytes as an uninterrupted one: weights, metrics and
newest checkpoint. Exits with 1 otherwise.
"""

import argparse
import sys
import tempfile
from pathlib import Path

from tests.runs.killing import STAGES, kill_and_resume
from tests.runs.tiny_runs import METHODS, tiny_run


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--kills", type=int, default=100, help="kills of each method")
    parser.add_argument("--seed", type=int, default=0, help="seed of the times of the kills")
    parser.add_argument("--methods", nargs="+", default=METHODS, choices=METHODS)
    options = parser.parse_args()

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
        differences += kills.differences
    if differences:
        sys.exit(f"files that differ: {', '.join(sorted(set(differences)))}")


if __name__ == "__main__":
    main()
