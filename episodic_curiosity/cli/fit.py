"""`curiosity fit`."""

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import tyro

from episodic_curiosity.cli.arguments import (
    EXAMPLE,
    PRESET,
    check_out,
    read_some,
    resolve,
    with_hyphens,
)
from episodic_curiosity.runs.config import RNetworkOptions, Run
from episodic_curiosity.worlds.base import WorldConfig
from episodic_curiosity.worlds.registry import split_tasks


@dataclass(frozen=True, kw_only=True)
class FitOptions:
    """Options of `curiosity fit`."""

    task: str | None = None  # the task of the random play
    tasks: str | None = None  # or several tasks with equal shares: a,b,c, or dmlab-30
    out: Path  # the folder for the R-network
    preset: str = PRESET  # paper, gpu, turbo or cpu
    steps: int | None = None  # of random play, over all environments; None: the preset's
    seed: int = 0  # of all random numbers
    device: Literal["auto", "cpu", "cuda"] = "auto"  # auto: a GPU if available
    # R-network: the paper's, its comparator on a small embedder, or fast. None: the preset's.
    architecture: Annotated[
        Literal["paper", "small", "fast"] | None, tyro.conf.arg(name="r-network")
    ] = None
    world: WorldConfig
    r_network: RNetworkOptions


def fit(arguments: list[str]) -> None:
    """Fits an R-network to random play, for train --r-network-from."""
    run, folder = read_fit(arguments)
    check_out(folder)
    from episodic_curiosity.runs.fit import fit as fit_run

    fit_run(run, folder, progress=True)


def read_fit(arguments: list[str]) -> tuple[Run, Path]:
    """Returns a run whose steps are those of random play, and the folder for the R-network."""
    arguments = with_hyphens(arguments)
    some = read_some(arguments)
    if (some.task is None) == (some.tasks is None) and not some.help:
        raise ValueError(
            "name the task of the random play with --task, or several with --tasks"
        )
    task = some.task or split_tasks(some.tasks or EXAMPLE)[0]
    run = resolve(some, task, "ppo+ec")
    assert run.r_network is not None
    options = tyro.cli(
        FitOptions,
        default=FitOptions(out=tyro.MISSING, world=run.world, r_network=run.r_network),
        args=arguments,
        prog="curiosity fit",
        description=fit.__doc__,
        config=(tyro.conf.AvoidSubcommands,),
    )
    r_network = options.r_network
    assert r_network.random_play is not None
    steps = r_network.random_play.steps if options.steps is None else options.steps
    play = dataclasses.replace(r_network.random_play, steps=steps)
    run = dataclasses.replace(
        run,
        steps=steps,
        device=options.device,
        world=options.world,
        r_network=dataclasses.replace(r_network, random_play=play),
    )
    return run, options.out
