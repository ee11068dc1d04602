"""Measures one cell: trains or resumes its run, then makes its result.

On a CPU the result does not depend on how often the run was interrupted; time and hardware,
which do, are kept apart.
"""

import dataclasses
import math
import platform
import statistics
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Literal, NamedTuple

import torch

from episodic_curiosity.experiments.cells import EPISODES, LEAST_EPISODES, Cell
from episodic_curiosity.experiments.results import RATE, RATE_IN_ALL, Result
from episodic_curiosity.experiments.sources import (
    NOT_COMMITTED,
    fingerprint_in,
    flawed,
    is_committed,
)
from episodic_curiosity.experiments.tables import EXPERIMENTS
from episodic_curiosity.runs.build import open_world
from episodic_curiosity.runs.command import evaluate_command, train_command
from episodic_curiosity.runs.config import Run
from episodic_curiosity.runs.evaluate_folder import evaluate_run
from episodic_curiosity.runs.fit import fit
from episodic_curiosity.runs.learner import Learner
from episodic_curiosity.runs.metrics_files import METRICS, read_metrics, read_timing
from episodic_curiosity.runs.record import is_finished, read_sources
from episodic_curiosity.runs.train import train
from episodic_curiosity.support.files import remove_folder
from episodic_curiosity.support.machine import find_device, num_cores, processor_name
from episodic_curiosity.support.statistics import summarise
from episodic_curiosity.support.version import code_version

Device = Literal["auto", "cpu", "cuda"]  # auto: a GPU where there is one
CURVE_POINTS = 100
OF_EPISODES = ("reward", "coverage", "length", "bonus")  # means over episodes that ended
DIGITS = 6  # of a curve's values, so that its file stays small


class Measured(NamedTuple):
    """A result, and its timing, which differs between measurements."""

    result: Result
    timing: dict[str, Any]


def measure(
    cell: Cell,
    folder: Path,
    *,
    episodes: int = EPISODES,
    device: Device = "auto",
    progress: bool = False,
) -> Measured:
    """Measures a cell whose run is, or will be, in that folder."""
    code = now = code_version()  # of the sources as they are now: a run may take days
    if is_committed() is False:
        code = flawed(code, NOT_COMMITTED)
    run = dataclasses.replace(cell.run(), device=device)
    shares: dict[str, float] = {}
    began = time.monotonic()
    if cell.measure == "r-network":
        remove_folder(folder, ignore_errors=True)  # of an interrupted fit
        report = fit(run, folder, progress=progress)
        summaries = {"accuracy": summarise([report.held_out_accuracy])}
        timing: dict[str, Any] = {"seconds": round(time.monotonic() - began, 3)}
    else:
        if not is_finished(folder, run.steps_after(run.num_updates)):
            train(run, folder, resume=True, progress=progress)
        if (begun := read_sources(folder)) != now:
            code = flawed(code, f"begun with {fingerprint_in(str(begun)) or begun}")
        timing = _training_time(folder)
        if cell.measure == "speed":
            summaries = {"parameters": summarise([count_parameters(run, folder)])}
        else:
            began = time.monotonic()
            evaluation = evaluate_run(
                folder, episodes=episodes, device=device, run=run, progress=progress
            )
            timing["evaluation_seconds"] = round(time.monotonic() - began, 3)
            summaries, shares = evaluation.summary(), evaluation.action_shares
    has_curve = (folder / METRICS).exists()
    result = Result(
        key=cell.key,
        config=cell.run().to_dict(),
        code=code,
        command=command_for(cell, episodes),
        curve=thin(read_metrics(folder)) if has_curve else [],
        metrics={name: summary._asdict() for name, summary in summaries.items()},
        action_shares=shares,
    )
    return Measured(result, timing | _hardware(run))


def measure_speed(cell: Cell, trained: Measured, folder: Path, device: Device) -> Measured:
    """The speed of a cell whose run has been trained for another cell."""
    run = dataclasses.replace(cell.run(), device=device)
    result = dataclasses.replace(
        trained.result,
        key=cell.key,
        command=command_for(cell, EPISODES),
        metrics={"parameters": summarise([count_parameters(run, folder)])._asdict()},
        action_shares={},
    )
    timing = dict(trained.timing)
    timing.pop("evaluation_seconds", None)
    return Measured(result, timing)


def count_parameters(run: Run, folder: Path) -> int:
    """The number of trained parameters of a run: of the policy and of its bonus."""
    with closing(open_world(run)) as world:
        learner = Learner.make(run, world, folder)
    tensors = [*learner.agent.parameters(), *learner.curiosity.parameters()]
    return sum(tensor.numel() for tensor in tensors if tensor.requires_grad)


def thin(lines: Sequence[Mapping[str, float]]) -> list[dict[str, float]]:
    """A run's metrics as at most CURVE_POINTS points, each a mean of the lines up to it.

    Means over episodes are weighted by their number; missing metrics are left out.
    """
    size = max(1, math.ceil(len(lines) / CURVE_POINTS))
    return [_point(lines[start : start + size]) for start in range(0, len(lines), size)]


def _point(lines: Sequence[Mapping[str, float]]) -> dict[str, float]:
    point: dict[str, float] = {"steps": lines[-1]["steps"]}
    ended = sum(line.get("episodes", 0.0) for line in lines)
    for name in OF_EPISODES:
        sums = [
            line[name] * line["episodes"]
            for line in lines
            if line.get("episodes") and math.isfinite(line.get(name, math.nan))
        ]
        if sums:
            point[name] = float(f"{sum(sums) / ended:.{DIGITS}g}")
    if ended:
        point["episodes"] = ended
    accuracies = [line["r_network_accuracy"] for line in lines if "r_network_accuracy" in line]
    if accuracies and math.isfinite(accuracies[-1]):
        point["r_network_accuracy"] = float(f"{accuracies[-1]:.{DIGITS}g}")
    return point


def command_for(cell: Cell, episodes: int) -> str:
    """The command that measures a cell; empty where there is none."""
    key, run = cell.key, cell.run()
    if _is_in_its_table(cell):
        return (
            f"curiosity table {key.table} --cell {key.label} --preset {key.preset} "
            f"--steps {key.steps} --episodes {max(episodes, LEAST_EPISODES)}"
        )
    if cell.measure == "r-network":
        return ""
    folder = Path("runs") / run.name
    return f"{train_command(run, folder)}\n{evaluate_command(run, folder, episodes)}"


def _is_in_its_table(cell: Cell) -> bool:
    """True if `curiosity table` can make it; cells can also be made in Python."""
    experiment = EXPERIMENTS.get(cell.key.table)
    return experiment is not None and any(
        experiment.cell(row, cell.key.task, cell.key.preset, cell.key.steps, cell.key.seed)
        == cell
        for world in experiment.worlds
        if cell.key.task in experiment.tasks(world)
        for row in experiment.rows
    )


def _training_time(folder: Path) -> dict[str, Any]:
    """Steps/s of the median update, which fits no R-network, and of the whole training."""
    lines = read_timing(folder)
    seconds, steps = lines[-1]["seconds"], lines[-1]["steps"]
    usual = statistics.median(line["steps_per_second"] for line in lines)
    return {"seconds": seconds, RATE: usual, RATE_IN_ALL: round(steps / seconds, 1)}


def _hardware(run: Run) -> dict[str, Any]:
    device = find_device(run.device)
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else processor_name()
    versions = {"python": platform.python_version(), "torch": torch.__version__}
    return {"hardware": name, "cores": num_cores()} | versions
