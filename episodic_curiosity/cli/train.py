"""`curiosity train`."""

import shlex
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import tyro

from episodic_curiosity.bonus.registry import methods
from episodic_curiosity.cli.arguments import (
    EXAMPLE,
    METHOD,
    Once,
    Trust,
    check_out,
    read_some,
    resolve,
    with_hyphens,
    with_r_network,
)
from episodic_curiosity.runs import presets, settings
from episodic_curiosity.runs.config import Run
from episodic_curiosity.runs.record import CONFIG
from episodic_curiosity.runs.remarks import outcome
from episodic_curiosity.runs.stored_run import loads, read_run
from episodic_curiosity.worlds.registry import families


@dataclass(frozen=True, kw_only=True)
class Shortcuts:
    """Options that the first pass has already applied; listed here for `--help`."""

    # R-network: the paper's, its comparator on a small embedder, or fast. None: the preset's.
    architecture: Annotated[
        Literal["paper", "small", "fast"] | None, tyro.conf.arg(name="r-network")
    ] = None
    # Folder with an R-network fitted by `curiosity fit`, or pretrained:NAME.
    r_network_from: Path | None = None
    r_network_tasks: str | None = None  # fit it to random play of several tasks: a,b,c


@dataclass(frozen=True, kw_only=True)
class Folder:
    """The folder of a run."""

    out: Path | None = None  # the run's folder; None: runs/TASK__METHOD__sSEED
    resume: Once = False  # resume the run in --out; its task need not be named
    # Resume even if config.json or metrics.jsonl were edited.
    accept_changes: Once = False
    trust: Trust = False


@dataclass(frozen=True, kw_only=True)
class TrainOptions:
    """Options of `curiosity train`, in the order of `--help`."""

    run: Annotated[Run, tyro.conf.arg(name="")]
    folder: Annotated[Folder, tyro.conf.arg(name="")] = Folder()
    shortcuts: Annotated[Shortcuts, tyro.conf.arg(name="")] = Shortcuts()


def train(arguments: list[str]) -> None:
    """Trains an agent; with --task TASK --help, shows all settings and their defaults."""
    options = read_train(arguments)
    folder = options.folder.out or Path("runs") / options.run.name
    if not (folder / CONFIG).exists():
        check_out(folder)
    from episodic_curiosity.runs.train import train as train_run

    try:
        train_run(
            options.run,
            folder,
            resume=options.folder.resume,
            accept_changes=options.folder.accept_changes,
            progress=True,
        )
    except KeyboardInterrupt:
        if (folder / CONFIG).exists():
            trust = " --trust" if any(loads(options.run, to_train=True)) else ""
            again = f"curiosity train --resume --out {shlex.quote(str(folder))}{trust}"
            print(f"stopped; resume with: {again}", file=sys.stderr)
        raise
    for line in outcome(options.run, folder):
        print(line)


def read_train(arguments: list[str]) -> TrainOptions:
    """Parses the command line into a complete run."""
    arguments = with_hyphens(arguments)
    some = read_some(arguments)
    is_new = some.task or some.method or some.preset
    if some.resume and some.out and not is_new:
        stored = read_run(
            Path(some.out), trust=some.trust, accept_changes=some.accept_changes, to_train=True
        )
        run = with_r_network(some, stored)
    elif (some.trust or some.accept_changes) and not some.resume:
        raise ValueError("--trust and --accept-changes need --resume")
    elif some.task or some.help:
        run = resolve(some, some.task or EXAMPLE, some.method or METHOD)
    elif some.resume and not some.out:
        raise ValueError("name the run to resume: --resume --out FOLDER")
    else:
        first = arguments[0] if arguments and arguments[0][:1] != "-" else None
        got = f", got {first} without --task" if first else ""
        raise ValueError(f"name a task with --task; `curiosity tasks` lists the tasks{got}")
    options = tyro.cli(
        TrainOptions,
        default=TrainOptions(run=run),
        args=arguments,
        prog="curiosity train",
        description=_description(run, is_example=some.task is None and not some.resume),
        config=(tyro.conf.AvoidSubcommands,),
    )
    _check_fitted(run, options.run)
    _ = options.run.num_updates  # raises if the steps are too few for one update
    return options


def _check_fitted(before: Run, run: Run) -> None:
    """Raises if options for a new R-network, which would be ignored, came with a fitted one."""
    usual, given = before.r_network, run.r_network
    if usual is None or given is None or given.source is None:
        return
    for name in (*given.architecture, "random_play"):
        if getattr(given, name) != getattr(usual, name):
            option = f"--r-network.{name.replace('_', '-')}"
            raise ValueError(
                f"{option} is for a new R-network, {given.source} has a fitted one"
            )


def _description(run: Run, *, is_example: bool) -> str:
    source = settings.find_settings(run.task, run.method).source
    what = f"Trains {run.method} on {run.task}."
    if is_example:
        what = f"Trains an agent on --task, which is required. Shown here: {run.method} on "
        what += f"{run.task}."
    lines = [f"{what} Hyper-parameters: {source}. Presets:"]
    lines += [f"  {name}: {preset.line}" for name, preset in presets.PRESETS.items()]
    names = ", ".join(f"{name}/..." for name in families())
    lines.append(f"\nTasks, listed by `curiosity tasks`: {names}")
    lines.append(f"\nMethods, listed by `curiosity methods`: {', '.join(methods())}")
    return "\n".join(lines)
