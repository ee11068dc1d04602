"""What `curiosity` can be told to do; each command takes the words that follow its name.

`train` and `fit` read them twice: the first reading finds the task, the method and the preset,
from which a whole run is resolved; the second has that run's values as its defaults, so that
each can be changed by its dotted path and `--help` shows what would be used.
"""

import argparse
import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal, NoReturn

import tyro

from episodic_curiosity import paper, presets
from episodic_curiosity.checks import check_choice
from episodic_curiosity.config import RNetworkOptions, Run, WorldConfig
from episodic_curiosity.record import read_config
from episodic_curiosity.worlds import FAMILIES, Split
from episodic_curiosity.worlds.television import PROGRAMMES

EXAMPLE = "maze/no-reward"  # whose values `--help` shows where no task is named
METHOD, PRESET = "ppo+eco", "cpu"  # unless others are named
Once = tyro.conf.FlagCreatePairsOff[bool]  # a flag without its opposite


@dataclass(frozen=True, kw_only=True)
class Shortcuts:
    """What the first reading has already put into the run; here for `--help`."""

    # Which R-network: that of the paper's tables or the fast one. None: the preset's.
    architecture: Annotated[
        Literal["paper", "fast"] | None, tyro.conf.arg(name="r-network")
    ] = None
    r_network_from: Path | None = None  # a folder with a fitted R-network, of `curiosity fit`
    r_network_tasks: str | None = None  # fit it to random play of these tasks alike: a,b,c


@dataclass(frozen=True, kw_only=True)
class Folder:
    """Where a run is written."""

    out: Path | None = None  # the run's folder; None: runs/TASK__METHOD__sSEED
    resume: Once = False  # go on with the run in that folder; its task need not be named


@dataclass(frozen=True, kw_only=True)
class TrainOptions:
    """What `curiosity train` takes; the order is that of `--help`."""

    run: Annotated[Run, tyro.conf.arg(name="")]
    folder: Annotated[Folder, tyro.conf.arg(name="")] = Folder()
    shortcuts: Annotated[Shortcuts, tyro.conf.arg(name="")] = Shortcuts()


@dataclass(frozen=True, kw_only=True)
class FitOptions:
    """What `curiosity fit` takes."""

    task: str | None = None  # whose random play it is fitted to
    tasks: str | None = None  # or that of several alike: a,b,c
    out: Path  # the folder for the R-network
    preset: str = PRESET  # paper, gpu or cpu
    steps: int | None = None  # of random play, all environments together; None: the preset's
    seed: int = 0  # of everything random
    device: Literal["auto", "cpu", "cuda"] = "auto"  # auto: a GPU where there is one
    # Which R-network: that of the paper's tables or the fast one. None: the preset's.
    architecture: Annotated[
        Literal["paper", "fast"] | None, tyro.conf.arg(name="r-network")
    ] = None
    world: WorldConfig
    r_network: RNetworkOptions


@dataclass(frozen=True, kw_only=True)
class EvaluateOptions:
    """What `curiosity evaluate` takes."""

    run: tyro.conf.Positional[Path]  # the run's folder
    episodes: int = 100  # at least
    deterministic: Once = False  # the likeliest action instead of a drawn one
    split: Split = "test"  # the levels; those of "test" were never trained on
    device: Literal["auto", "cpu", "cuda"] = "auto"  # auto: a GPU where there is one


def train(arguments: list[str]) -> None:
    """Trains an agent; with --task TASK --help, shows every value it would use."""
    options = read_train(arguments)
    folder = options.folder.out or Path("runs") / options.run.name
    from episodic_curiosity.train import train as train_run

    train_run(options.run, folder, resume=options.folder.resume, progress=True)


def fit(arguments: list[str]) -> None:
    """Fits an R-network to random play, for train --r-network-from."""
    run, folder = read_fit(arguments)
    from episodic_curiosity.train import fit as fit_run

    fit_run(run, folder, progress=True)


def evaluate(arguments: list[str]) -> None:
    """Plays a trained agent on levels it has never seen."""
    options = tyro.cli(
        EvaluateOptions, args=arguments, prog="curiosity evaluate", description=evaluate.__doc__
    )
    from episodic_curiosity.evaluate import evaluate_run

    evaluation = evaluate_run(
        options.run,
        episodes=options.episodes,
        split=options.split,
        deterministic=options.deterministic,
        device=options.device,
    )
    print(evaluation.report())


def tasks(arguments: list[str]) -> None:
    """Lists the tasks."""
    _read_nothing(tasks, arguments)
    for task, line in paper.known_tasks().items():
        print(f"{task:24} {line}")
    for family, line in paper.OPEN.items():
        if family in FAMILIES:
            print(line)
    print(f"A maze with a television in it: maze/...+{', maze/...+'.join(PROGRAMMES)}")


def methods(arguments: list[str]) -> None:
    """Lists the methods: what each adds to PPO."""
    _read_nothing(methods, arguments)
    for method, line in paper.METHODS.items():
        print(f"{method:12} {line}")


def doctor(arguments: list[str]) -> None:
    """Says what is installed, what it runs on and how fast the bonus is here."""
    _read_nothing(doctor, arguments)
    from episodic_curiosity.doctor import doctor as examine

    examine()


def read_train(arguments: list[str]) -> TrainOptions:
    """The whole run that a command line asks for."""
    arguments = _with_hyphens(arguments)
    some = _read_some(arguments)
    is_new = some.task or some.method or some.preset
    if some.resume and some.out and not is_new:
        run = _with_r_network(some, Run.from_dict(read_config(Path(some.out))))
    elif some.task or some.help:
        run = _resolve(some, some.task or EXAMPLE, some.method or METHOD)
    else:
        raise ValueError("say what to learn with --task; `curiosity tasks` lists the tasks")
    options = tyro.cli(
        TrainOptions,
        default=TrainOptions(run=run),
        args=arguments,
        prog="curiosity train",
        description=_description(run),
        config=(tyro.conf.AvoidSubcommands,),
    )
    _ = options.run.num_updates  # raises where the steps are not enough for one
    return options


def read_fit(arguments: list[str]) -> tuple[Run, Path]:
    """A run whose steps are those of the random play, and the folder for the R-network."""
    arguments = _with_hyphens(arguments)
    some = _read_some(arguments)
    if (some.task is None) == (some.tasks is None) and not some.help:
        raise ValueError("say whose random play to fit to with --task or with --tasks")
    task = some.task or (some.tasks or EXAMPLE).split(",")[0]
    run = _resolve(some, task, "ppo+ec")
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


class _Reader(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise ValueError(message)


def _read_some(arguments: list[str]) -> argparse.Namespace:
    """The first reading: what other values depend on; everything else waits for the second."""
    reader = _Reader(add_help=False, allow_abbrev=False)
    for name in ("task", "tasks", "method", "preset", "out"):
        reader.add_argument(f"--{name}")
    for name in ("r-network", "r-network-from", "r-network-tasks"):
        reader.add_argument(f"--{name}")
    reader.add_argument("--steps", type=int)
    reader.add_argument("--seed", type=int, default=0)
    reader.add_argument("--resume", action="store_true")
    reader.add_argument("-h", "--help", action="store_true")
    return reader.parse_known_args(arguments)[0]


def _resolve(some: argparse.Namespace, task: str, method: str) -> Run:
    preset = some.preset or PRESET
    check_choice("preset", preset, presets.PRESETS)
    steps = presets.PRESETS[preset].steps if some.steps is None else some.steps
    return _with_r_network(some, presets.resolve(task, method, preset, steps, some.seed))


def _with_r_network(some: argparse.Namespace, run: Run) -> Run:
    """The run with the R-network of --r-network, --r-network-from and --r-network-tasks."""
    r_network, tasks = run.r_network, some.r_network_tasks or some.tasks
    if r_network is None:
        if some.r_network or some.r_network_from or tasks:
            raise ValueError(f"{run.method} has no R-network")
        return run
    if some.r_network_from and (some.r_network or tasks):
        given = "--r-network" if some.r_network else "--r-network-tasks"
        raise ValueError(f"{given} is for a new R-network, --r-network-from names a fitted one")
    if some.r_network:
        r_network = r_network.with_architecture(some.r_network)
    if some.r_network_from:
        r_network = dataclasses.replace(r_network, source=Path(some.r_network_from))
    if tasks:
        names = tuple(tasks.split(","))
        for name in names:
            paper.check_task(name)
        if r_network.random_play is None:
            raise ValueError(f"{run.method} fits its R-network to its own play, not to {tasks}")
        play = dataclasses.replace(r_network.random_play, tasks=names)
        r_network = dataclasses.replace(r_network, random_play=play)
    return dataclasses.replace(run, r_network=r_network)


def _with_hyphens(arguments: list[str]) -> list[str]:
    """Options as both readings spell them: --r_network is --r-network."""
    spelt = []
    for argument in arguments:
        name, equals, value = argument.partition("=")
        if name.startswith("--"):
            name = name.replace("_", "-")
        spelt.append(name + equals + value)
    return spelt


def _description(run: Run) -> str:
    source = paper.find_settings(run.task, run.method).source
    lines = [f"Trains {run.method} on {run.task}. Hyper-parameters: {source}. Presets:"]
    lines += [f"  {name}: {preset.line}" for name, preset in presets.PRESETS.items()]
    return "\n".join(lines)


def _read_nothing(command: Callable[[list[str]], None], arguments: list[str]) -> None:
    name, about = command.__name__, command.__doc__
    tyro.cli(lambda: None, args=arguments, prog=f"curiosity {name}", description=about)
