"""Every method in every world, a fit and a table, killed or signalled and resumed."""

import argparse
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from benchmarks.soak.killing import (
    FREEZE,
    INTERRUPT,
    KILL,
    STAGES,
    TERMINATE,
    Blows,
    start_server,
    strike_and_resume,
)
from benchmarks.soak.orphans import adopt_orphans, children, orphans_left
from benchmarks.soak.works import WORLDS, Table, Work, a_fit, methods_of, training

NUM_UPDATES = 6
OTHERS = ("fit", "table")


def kill_runs(options: argparse.Namespace) -> list[str]:
    """Prints a table of kills; returns what differs, fails or is left."""
    print(
        f"\n{options.kills} kills (SIGKILL) of each method in each world, seed {options.seed}"
    )
    return _strike_all(options, options.kills, (KILL,))


def signal_runs(options: argparse.Namespace) -> list[str]:
    """The same for Ctrl-C, SIGTERM and SIGSTOP."""
    print(
        f"\n{options.signals} signals (SIGINT, SIGTERM, once or twice, or SIGSTOP and SIGCONT) "
        f"to each method in each world, seed {options.seed}"
    )
    return _strike_all(options, options.signals, (INTERRUPT, TERMINATE, FREEZE))


def _strike_all(options: argparse.Namespace, count: int, sent: tuple[str, ...]) -> list[str]:
    """Prints a row per world, summed over methods."""
    stages = " | ".join(STAGES)
    print(f"\n| | methods | struck | {stages} | ended | different | failed | left running |")
    print("|---" * (8 + len(STAGES)) + "|", flush=True)
    adopt_orphans()
    start_server()
    known, wrong, total = children(), [], 0
    for name in options.worlds:
        works, struck, orphans = list(_works(name, options.methods)), [], []
        for work in works:
            with tempfile.TemporaryDirectory() as folder:
                struck.append(strike_and_resume(work, Path(folder), count, options.seed, sent))
            orphans += orphans_left(known)
        print(_row(name, len(works), struck, len(orphans)), flush=True)
        wrong += [words for blows in struck for words in blows.differences + blows.failures]
        wrong += [f"{name}: left {words}" for words in orphans]
        total += sum(blows.stages.total() for blows in struck)
    print(f"\n{total} in all", flush=True)
    return wrong


def _row(name: str, num_works: int, struck: list[Blows], num_orphans: int) -> str:
    stages: Counter[str] = sum((blows.stages for blows in struck), Counter())
    figures = [
        num_works,
        stages.total(),
        *(stages[stage] for stage in STAGES),
        sum(blows.num_ended for blows in struck),
        sum(len(blows.differences) for blows in struck),
        sum(len(blows.failures) for blows in struck),
        num_orphans,
    ]
    return f"| {name} | {' | '.join(map(str, figures))} |"


def _works(name: str, methods: list[str] | None) -> Iterator[Work]:
    if name in WORLDS:
        for method in methods_of(name):
            if methods is None or method in methods:
                yield training(name, method, NUM_UPDATES)
    else:
        yield a_fit() if name == "fit" else Table()
