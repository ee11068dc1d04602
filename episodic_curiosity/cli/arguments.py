"""Parses the command line of a run in two passes.

The first pass reads the task, the method and the preset, from which a run is resolved. The
second has that run's values as its defaults, so that each can be changed by its dotted path and
`--help` shows the values in use.
"""

import argparse
import dataclasses
from pathlib import Path
from typing import Annotated

import tyro

from episodic_curiosity.cli.errors import Reader, whole_number
from episodic_curiosity.runs import presets
from episodic_curiosity.runs.config import Run
from episodic_curiosity.support.checks import check_choice
from episodic_curiosity.support.shared import is_name
from episodic_curiosity.worlds.registry import split_tasks

EXAMPLE = "maze/no-reward"  # `--help` shows its values if no task is named
METHOD, PRESET = "ppo+eco", "cpu"  # defaults
Once = tyro.conf.FlagCreatePairsOff[bool]  # a flag without a --no-... form
# For commands that read a run's folder.
Trust = Annotated[
    Once,
    tyro.conf.arg(
        help="allow the folder's config to name paths and modules to import; only for a "
        "folder whose author you trust"
    ),
]


def read_some(arguments: list[str]) -> argparse.Namespace:
    """The first pass: reads the options that the defaults of others depend on."""
    reader = Reader(add_help=False, allow_abbrev=False)
    for name in ("task", "tasks", "method", "preset", "out"):
        reader.add_argument(f"--{name}")
    for name in ("r-network", "r-network-from", "r-network-tasks"):
        reader.add_argument(f"--{name}")
    reader.add_argument("--steps", type=whole_number)
    reader.add_argument("--seed", type=whole_number, default=0)
    for name in ("resume", "trust", "accept-changes"):
        reader.add_argument(f"--{name}", action="store_true")
    reader.add_argument("-h", "--help", action="store_true")
    return reader.parse_known_args(arguments)[0]


def check_out(folder: Path) -> None:
    """Raises if the folder is the name of a shared one, or the current one and not empty."""
    if is_name(folder):
        raise ValueError(f"--out must be a folder to write to, got {folder}")
    if folder.resolve() == Path.cwd() and any(folder.iterdir()):
        raise ValueError("--out must not be the current folder unless that is empty")


def resolve(some: argparse.Namespace, task: str, method: str) -> Run:
    preset = some.preset or PRESET
    check_choice("preset", preset, presets.PRESETS)
    steps = presets.PRESETS[preset].steps if some.steps is None else some.steps
    return with_r_network(some, presets.resolve(task, method, preset, steps, some.seed))


def with_r_network(some: argparse.Namespace, run: Run) -> Run:
    """A copy of the run with --r-network, --r-network-from and --r-network-tasks applied."""
    r_network, tasks = run.r_network, some.r_network_tasks or some.tasks
    if r_network is None:
        if some.r_network or some.r_network_from or tasks:
            raise ValueError(f"{run.method} has no R-network")
        return run
    if some.r_network_from and (some.r_network or tasks):
        given = "--r-network" if some.r_network else "--r-network-tasks"
        raise ValueError(
            f"{given} is for a new R-network, --r-network-from is for a fitted one"
        )
    if some.r_network:
        r_network = r_network.with_architecture(some.r_network)
    if some.r_network_from:
        r_network = dataclasses.replace(r_network, source=Path(some.r_network_from))
    if tasks:
        names = split_tasks(tasks)
        if r_network.random_play is None:
            raise ValueError(f"{run.method} fits its R-network online, not to {tasks}")
        play = dataclasses.replace(r_network.random_play, tasks=names)
        r_network = dataclasses.replace(r_network, random_play=play)
    return dataclasses.replace(run, r_network=r_network)


def with_hyphens(arguments: list[str]) -> list[str]:
    """Spells options with hyphens: --r_network becomes --r-network."""
    spelt = []
    for argument in arguments:
        name, equals, value = argument.partition("=")
        if name.startswith("--"):
            name = name.replace("_", "-")
        spelt.append(name + equals + value)
    return spelt
