"""Damaged files, forged files, odd arguments and odd command lines, in tables."""

import argparse
import contextlib
import os
import random
import tempfile
import time
from pathlib import Path

import torch

from benchmarks.soak import fuzz_cli
from benchmarks.soak.damaging import damage_and_read, make_files
from benchmarks.soak.fuzz_api import TARGETS
from benchmarks.soak.fuzz_files import Fuzz, forgers
from benchmarks.soak.judging import Verdicts, limited_memory, peak_megabytes
from episodic_curiosity.worlds.registry import make_world

# Of 10,000 inputs; the slower ones are fewer.
SHARES = {
    "networks": 1900, "configs": 2300, "bonuses": 1500, "fits": 500, "worlds": 150,
    "runs": 1300, "config.json": 250, "agent.safetensors": 350, "r_network.safetensors": 250,
    "bonus.safetensors": 100, "checkpoint": 450, "metrics.jsonl": 350, "results": 20,
    "scenario.cfg": 400, "command lines": 180,
}  # fmt: skip


def damage_files(options: argparse.Namespace) -> list[str]:
    """Prints a table of damages; returns the errors that are no sentence."""
    print(f"\n{options.damages} damages to each kind of file, seed {options.seed}")
    print("\n| file | refused | read all the same | wrong |\n|---|---|---|---|")
    tracebacks = []
    with tempfile.TemporaryDirectory() as folder:
        for kind, reader in make_files(Path(folder)).items():
            damages = damage_and_read(kind, reader, options.damages, options.seed)
            counts = f"{damages.refused} | {damages.accepted} | {len(damages.tracebacks)}"
            print(f"| {kind} | {counts} |", flush=True)
            tracebacks += damages.tracebacks
    return tracebacks


def fuzz(options: argparse.Namespace) -> list[str]:
    """Prints a table of odd inputs; returns what was not refused in a sentence."""
    print(f"\nabout {options.inputs:,} odd inputs, seed {options.seed}")
    print("\n| | inputs | accepted | refused | wrong | seconds |\n|---|---|---|---|---|---|")
    torch.set_num_threads(1)
    with contextlib.closing(make_world("maze/sparse", num_envs=2, seed=0)) as world:
        world.reset()  # compiles
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        words = folder / "words"
        words.mkdir()
        fuzz_cli.prepare(words)
        targets: dict[str, Fuzz] = {**TARGETS}
        targets |= stack.enter_context(forgers(folder))
        targets["command lines"] = fuzz_cli.fuzz_commands
        stack.enter_context(contextlib.chdir(words))
        before, total, wrong = peak_megabytes(), 0, []
        for name, target in targets.items():
            number = options.inputs * SHARES[name] // sum(SHARES.values())
            verdicts = _fuzz_one(name, target, number, options.seed)
            total += verdicts.total
            wrong += [f"{name}: {place}: {words}" for place, words in verdicts.wrong.items()]
    more = peak_megabytes() - before
    print(f"\n{total:,} in all; memory grew by {more:.0f} MB to {peak_megabytes():.0f} MB")
    return wrong


def _fuzz_one(name: str, target: Fuzz, number: int, seed: int) -> Verdicts:
    verdicts, draw = Verdicts(), random.Random(f"{seed} {name}")
    began = time.monotonic()
    harmless = fuzz_cli.harmless() if name == "command lines" else contextlib.nullcontext()
    with (
        open(os.devnull, "w") as nothing,
        contextlib.redirect_stderr(nothing),
        limited_memory(),
        harmless,
    ):
        while verdicts.total < number:
            target(draw, verdicts)
    seconds = time.monotonic() - began
    counts = (
        f"{verdicts.total} | {verdicts.accepted} | {verdicts.refused} | {verdicts.num_wrong}"
    )
    print(f"| {name} | {counts} | {seconds:.0f} |", flush=True)
    return verdicts
