"""`curiosity table`.

It uses argparse instead of tyro, because it must also run on machines with nothing but PyTorch,
as `python -m episodic_curiosity.cli.table`.
"""

import argparse
import contextlib
import re
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from episodic_curiosity.cli.errors import FAILED, Reader, call, whole_number
from episodic_curiosity.experiments.cells import EPISODES, LEAST_EPISODES, Cell
from episodic_curiosity.experiments.claims import CLAIMS, claimed_cells
from episodic_curiosity.experiments.tables import EXPERIMENTS, MAZES, Experiment
from episodic_curiosity.runs.presets import PRESETS
from episodic_curiosity.support.checks import check_at_least, check_choice

if TYPE_CHECKING:
    from episodic_curiosity.experiments.runner import RunnerConfig

CLAIMED = "claims"  # not a table of the paper: the claims in its text
# Exit codes: nothing failed, but another process is running a missing cell, or time is up.
BUSY, OVER = 3, 4
SEEDS, MOST_SEEDS = 5, 1_000
MOST_SECONDS = 365 * 24 * 3600  # of a budget: far more would overflow a timer
PRESET = "cpu"


def table(arguments: list[str]) -> None:
    """Runs the missing cells of one of the paper's tables, locally or on a Ray cluster."""
    options = _read(arguments)
    if options.list:
        if options.table is not None:
            raise ValueError(f"--list counts the cells of all tables, got {options.table}, too")
        print(_list(options.preset, options.out))
        return
    if options.preset is None:
        options.preset = PRESET
    check_options(options)
    cells = find_cells(options)
    if options.dry_run:
        from episodic_curiosity.experiments.forecast import forecast, show

        print(show(forecast(cells, options.out, options.runs, options.episodes)))
        return
    from episodic_curiosity.experiments.runner import RunnerConfig
    from episodic_curiosity.experiments.sources import is_committed

    if is_committed() is False:
        note = "the sources are not committed: reports will not count what is measured now"
        print(f"curiosity: {note}", file=sys.stderr)
    deadline = None if options.budget is None else time.monotonic() + options.budget
    settings = RunnerConfig(
        results=options.out,
        runs=options.runs,
        episodes=options.episodes,
        device=options.device,
        progress=options.ray is None,
        deadline=deadline,
    )
    try:
        # Each process of `--side-by-side` is interrupted by itself.
        with _interrupted_at(None if options.side_by_side else deadline):
            code = _run(cells, settings, options, arguments)
    except KeyboardInterrupt:
        is_over = deadline is not None and time.monotonic() >= deadline
        what = "the budget is used up" if is_over else "stopped"
        print(f"{what}; run the same command again to continue", file=sys.stderr)
        if is_over:
            sys.exit(OVER)
        raise
    if code:
        sys.exit(code)


def _run(
    cells: list[Cell],
    settings: "RunnerConfig",
    options: argparse.Namespace,
    arguments: list[str],
) -> int:
    """Runs the missing cells; returns the exit code."""
    if options.side_by_side is not None:
        from episodic_curiosity.experiments.side_by_side import run_side_by_side

        one = _without_option(arguments, "--side-by-side")
        command = [sys.executable, "-P", "-m", "episodic_curiosity.cli.table", *one]
        left = run_side_by_side(cells, settings, options.side_by_side, command)
        is_over = settings.deadline is not None and time.monotonic() >= settings.deadline
        return 0 if not left else OVER if is_over else FAILED
    if options.ray is not None:
        from episodic_curiosity.experiments.on_ray import Request, run_cells_on_ray

        cpus, gpus = options.ray_cpus, options.ray_gpus
        request = Request(
            num_cpus=1.0 if cpus is None else cpus, num_gpus=0.0 if gpus is None else gpus
        )
        outcomes = run_cells_on_ray(cells, settings, options.ray, request)
    else:
        from episodic_curiosity.experiments.runner import run_cells

        outcomes = run_cells(cells, settings)
    states = {outcome.state for outcome in outcomes if not outcome.is_good}
    if not states:
        return 0
    return {frozenset({"busy"}): BUSY, frozenset({"postponed"}): OVER}.get(
        frozenset(states), FAILED
    )


@contextlib.contextmanager
def _interrupted_at(deadline: float | None) -> Iterator[None]:
    """Interrupts the block at that time as Ctrl-C does: a run stops with a checkpoint."""
    if deadline is None:
        yield
        return
    main = threading.get_ident()
    timer = threading.Timer(
        max(0.0, deadline - time.monotonic()), signal.pthread_kill, (main, signal.SIGINT)
    )
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _without_option(arguments: list[str], name: str) -> list[str]:
    """The arguments without an option and its value."""
    kept, rest = [], iter(arguments)
    for argument in rest:
        if argument == name:
            next(rest, None)
        elif not argument.startswith(f"{name}="):
            kept.append(argument)
    return kept


def check_options(options: argparse.Namespace) -> None:
    """Raises if options are out of range or would be ignored."""
    check_at_least("--episodes", options.episodes, LEAST_EPISODES)
    for name in ("out", "runs"):
        folder = getattr(options, name)
        if folder.exists() and not folder.is_dir():
            raise ValueError(f"--{name} must be a folder, got the file {folder}")
    if options.seeds is not None:
        check_at_least("--seeds", options.seeds, 1)
        if options.seeds > MOST_SEEDS:
            raise ValueError(f"--seeds must be at most {MOST_SEEDS:,}, got {options.seeds:,}")
    if options.side_by_side is not None:
        check_at_least("--side-by-side", options.side_by_side, 1)
        if options.ray is not None:
            raise ValueError("--side-by-side is for this machine, --ray for a cluster")
    if options.budget is not None and options.ray is not None:
        raise ValueError("--budget is for this machine, not for --ray")
    for names, wanted, is_there in (
        (("world", "seeds"), "a complete table, not for --cell", not options.cell),
        (("ray_cpus", "ray_gpus"), "a cluster: name one with --ray", options.ray is not None),
    ):
        for name in names:
            if getattr(options, name) is not None and not is_there:
                raise ValueError(f"--{name.replace('_', '-')} is for {wanted}")


def find_cells(options: argparse.Namespace) -> list[Cell]:
    """Returns the requested cells; raises for an unknown name, listing the choices."""
    name = options.table
    if name is None:
        raise ValueError(f"name a table: one of {', '.join((*EXPERIMENTS, CLAIMED))}")
    check_choice("the table", name, (*EXPERIMENTS, CLAIMED))
    check_choice("preset", options.preset, PRESETS)
    seeds = SEEDS if options.seeds is None else options.seeds
    steps = PRESETS[options.preset].steps if options.steps is None else options.steps
    if name == CLAIMED:
        worlds = dict.fromkeys(
            world for claim in CLAIMS for world in EXPERIMENTS[claim.experiment].worlds
        )
        world = options.world or MAZES[0]
        check_choice("the world of claims", world, worlds)
        if options.cell:
            raise ValueError("--cell is for a table; `curiosity table claims` runs all cells")
        return list(claimed_cells(world, options.preset, steps, seeds))
    experiment = EXPERIMENTS[name]
    if options.cell:
        return [_find_cell(experiment, label, options.preset, steps) for label in options.cell]
    world = options.world or experiment.worlds[0]
    return list(experiment.cells(world, options.preset, steps, seeds))


def _find_cell(experiment: Experiment, label: str, preset: str, steps: int) -> Cell:
    """The cell named by TASK:METHOD:SEED or TASK:METHOD@VARIANT:SEED."""
    task, _, rest = label.partition(":")
    named, _, seed = rest.rpartition(":")
    if not (task and named and seed.isdecimal()):
        raise ValueError(
            f"--cell must be TASK:METHOD:SEED, such as maze/sparse:ppo:0, got {label!r}"
        )
    tasks = [task for world in experiment.worlds for task in experiment.tasks(world)]
    check_choice(f"the task of {experiment.name}", task, tasks)
    rows = {}
    for row in experiment.rows:
        variant = f"@{row.variant.name}" if row.variant else ""
        rows[row.method + variant] = row
    check_choice(f"the method of {experiment.name}", named, rows)
    return experiment.cell(rows[named], task, preset, steps, int(seed))


def _list(preset: str | None, results: Path) -> str:
    """One line per experiment of the paper, and one for the claims in its text.

    Without a preset, cells of the one with most results are counted. A folder that does not
    exist yet has none.
    """
    from episodic_curiosity.experiments.results import load_results

    there = []
    if results.exists():
        there = [result.key for result in load_results(results).results]
    if preset is None:
        counts = Counter(key.preset for key in there)
        preset = max(counts, key=lambda name: counts[name], default=PRESET)
    check_choice("preset", preset, PRESETS)
    measured = {key._replace(steps=0, seed=0) for key in there}
    lines = [f"cells measured with preset {preset}, with any seed and steps, in {results}:"]
    for experiment in EXPERIMENTS.values():
        places = [
            cell.key._replace(steps=0)
            for cell in experiment.cells(experiment.worlds[0], preset, experiment.steps, 1)
        ]
        done = f"{sum(key in measured for key in places)} of {len(places)}"
        worlds = " or ".join(experiment.worlds)
        start = f"{experiment.name:24} {experiment.source:14} {done:10}"
        lines.append(f"{start} {experiment.title} ({worlds})")
    start = f"{CLAIMED:24} {'sections 1, S7':14} {len(CLAIMS):<10}"
    lines.append(f"{start} Ratios between methods that the paper's text claims")
    return "\n".join(lines)


def _read(arguments: list[str]) -> argparse.Namespace:
    reader = Reader(prog="curiosity table", description=table.__doc__, allow_abbrev=False)
    add = reader.add_argument
    add("table", nargs="?", help="name of the experiment; see curiosity table --list")
    add("--list", action="store_true", help="list the experiments of the paper")
    add("--dry-run", action="store_true", help="print the missing cells and an estimate")
    add("--cell", action="append", help="only TASK:METHOD[@VARIANT]:SEED; can be repeated")
    worlds = dict.fromkeys(world for each in EXPERIMENTS.values() for world in each.worlds)
    add("--world", help=f"the family of tasks: {', '.join(worlds)}")
    add("--seeds", type=whole_number, help=f"number of seeds, from 0 (default: {SEEDS})")
    add("--steps", type=whole_number, help="steps of each run (default: the preset's)")
    most = "with --list, the one with most results"
    add("--preset", help=f"{', '.join(PRESETS)} (default: {PRESET}; {most})")
    add("--out", type=Path, default=Path("results"), help="results folder (default: results)")
    add("--runs", type=Path, default=Path("runs/tables"), help="default: runs/tables")
    episodes = f"test episodes, at least {LEAST_EPISODES} (default: {EPISODES})"
    add("--episodes", type=whole_number, default=EPISODES, help=episodes)
    budget = "time to work, such as 9m; runs stop with a checkpoint when it is used up"
    add("--budget", type=_seconds, help=budget)
    add("--side-by-side", type=whole_number, help="processes that share this machine")
    add("--device", choices=("auto", "cpu", "cuda"), default="auto")
    add("--ray", metavar="ADDRESS", help="run on this Ray cluster; auto: a local one")
    add("--ray-cpus", type=float, help="CPUs per cell (default: 1)")
    add("--ray-gpus", type=float, help="GPUs per cell (default: 0, which uses no GPU)")
    return reader.parse_args(arguments)


def _seconds(text: str) -> float:
    """Parses a duration such as 90s, 9m or 2h."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([smh])", text)
    if not found or float(found[1]) == 0:
        raise argparse.ArgumentTypeError(f"must be like 90s, 9m or 2h, got {text!r}")
    seconds = float(found[1]) * {"s": 1, "m": 60, "h": 3600}[found[2]]
    if seconds > MOST_SECONDS:
        raise argparse.ArgumentTypeError(f"must be at most a year, got {text!r}")
    return seconds


if __name__ == "__main__":
    call(table, sys.argv[1:])
