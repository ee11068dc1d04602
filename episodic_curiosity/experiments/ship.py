"""Makes a folder to share from a trained run: weights in bfloat16, its config and a card.

    python -m episodic_curiosity.experiments.ship runs/x --name maze-no-reward-eco \\
        --out episodic_curiosity/pretrained

writes OUT/NAME. The scores on the card are measured on these files, on unseen levels.
"""

import argparse
import re
import shutil
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from episodic_curiosity.agent.network import Agent
from episodic_curiosity.experiments.card import README, render
from episodic_curiosity.experiments.sources import fingerprint_in, history
from episodic_curiosity.reachability.network import RNetwork
from episodic_curiosity.runs.checkpoints import Checkpoints
from episodic_curiosity.runs.command import train_command
from episodic_curiosity.runs.config import Run
from episodic_curiosity.runs.evaluate_folder import Device, evaluate_r_network, evaluate_run
from episodic_curiosity.runs.metrics_files import read_metrics
from episodic_curiosity.runs.record import CONFIG, read_sources, write_config
from episodic_curiosity.runs.stored_run import read_run
from episodic_curiosity.support import saving, shared
from episodic_curiosity.support.checks import check_at_least, check_choice
from episodic_curiosity.support.machine import find_device, processor_name
from episodic_curiosity.support.shared import PARTS, PRETRAINED, fingerprints, write_card
from episodic_curiosity.support.version import PACKAGE, code_version

NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
EPISODES = 100


def ship(
    run_folder: Path,
    out: Path,
    name: str,
    *,
    parts: Sequence[str] | None = None,
    tasks: Sequence[str] = (),
    episodes: int = EPISODES,
    device: Device = "auto",
    progress: bool = False,
) -> Path:
    """Writes a run's agent and R-network with their card to OUT/NAME; returns that folder.

    Args:
        run_folder: of a run, complete or with its newest checkpoint.
        out: for the new folder.
        name: of the new folder.
        parts: of "agent", "r_network" and "bonus"; None: all that the run has.
        tasks: to measure the scores on; empty: the run's.
        episodes: per task, on unseen levels.
        device: plays them.
        progress: shows a bar on a terminal.
    """
    check_at_least("episodes", episodes, 1)
    if not NAME.fullmatch(name):
        raise ValueError(f"a name must be like maze-no-reward-eco, got {name!r}")
    final = out / name
    if final.exists():
        raise ValueError(f"{final} already exists: remove it or choose another name")
    run = read_run(run_folder)
    source = run.r_network.source if run.r_network else None
    if source is not None and source.is_absolute():
        raise ValueError(
            f"{run_folder / CONFIG} names {source}, a folder of one machine (r_network.source)"
        )
    unfinished = out / f".{name}.new"
    shutil.rmtree(unfinished, ignore_errors=True)  # of a call that was killed
    try:
        _write_parts(run, run_folder, unfinished, parts)
        where = f"{PRETRAINED}:{name}" if out.resolve() == shared.SHIPPED.resolve() else name
        card = _facts(run, run_folder, unfinished) | {"name": name, "where": where}
        write_card(unfinished, card)
        for task in tasks or (run.task,):
            card["scores"] += _scores(unfinished, card, task, episodes, device, progress)
        card |= {"measured_on": _machine(device), "measured_by": code_version()}
        write_card(unfinished, card)
        saving.write_atomically({unfinished / README: render(card).encode()})
        unfinished.rename(final)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    return final


def _write_parts(run: Run, run_folder: Path, out: Path, parts: Sequence[str] | None) -> None:
    """Writes the weights in bfloat16, and the config of an agent."""
    there = [part for part in PARTS if (run_folder / f"{part}.safetensors").exists()]
    for part in parts or ():
        check_choice(f"a part of {run_folder}", part, there)
    chosen = there if parts is None else parts
    if not {"agent", "r_network"} & set(chosen):
        raise ValueError(f"{run_folder} has no agent and no R-network to share")
    for part in chosen:
        config, weights = saving.read(run_folder, part)
        saving.save(out, part, in_bfloat16(weights), config)
    if "agent" in chosen:
        write_config(out, run.to_dict(), sources=read_sources(run_folder))
        Agent.load(out)
    if "r_network" in chosen and not RNetwork.load(out).fitted:
        raise ValueError(f"the R-network in {run_folder} is not fitted")


def in_bfloat16(weights: dict[str, Tensor]) -> dict[str, Tensor]:
    """The weights, float32 as bfloat16; single numbers are kept."""
    return {
        name: tensor.bfloat16() if tensor.dtype == torch.float32 and tensor.dim() else tensor
        for name, tensor in weights.items()
    }


def _facts(run: Run, run_folder: Path, out: Path) -> dict[str, Any]:
    """The card without scores."""
    sources = read_sources(run_folder) or "unknown sources"
    return {
        "task": run.task,
        "method": run.method,
        "preset": run.preset,
        "steps": steps_learnt(run, run_folder),
        "steps_of_the_run": run.steps_after(run.num_updates),
        "seed": run.seed,
        "sources": sources,
        "commit": _commit(sources),
        "command": train_command(run, Path("runs") / run.name),
        "dtype": "bfloat16",
        "bytes": sum(path.stat().st_size for path in out.glob("*.safetensors")),
        "files": fingerprints(out),
        "view_shape": _view_shape(out),
        "scores": [],
    }


def steps_learnt(run: Run, folder: Path) -> int:
    """The steps that the saved agent of a run has learnt from."""
    total = run.steps_after(run.num_updates)
    lines = read_metrics(folder)
    if lines and lines[-1]["steps"] == total:
        return total
    number = Checkpoints(folder).newest_number
    if number is None:
        done = lines[-1]["steps"] if lines else 0
        raise ValueError(
            f"{folder} has {done:,} of its {total:,} steps and no checkpoint: the steps of its "
            f"agent are unknown"
        )
    return run.steps_after(number)


def _view_shape(folder: Path) -> list[int] | None:
    """The shape of the R-network's views; None without an R-network."""
    if not (folder / "r_network.safetensors").exists():
        return None
    shape: list[int] = saving.read_weights_header(folder, "r_network")["config"]["view_shape"]
    return shape


def _commit(sources: str) -> str | None:
    """The newest commit with these sources in the clone of this package; None without one."""
    wanted = fingerprint_in(sources)
    return next(
        (commit for commit, theirs in history(PACKAGE.parent) if theirs == wanted), None
    )


def _scores(
    folder: Path, card: dict[str, Any], task: str, episodes: int, device: Device, progress: bool
) -> Iterator[dict[str, Any]]:
    """Measures the agent and the R-network on a task's unseen levels."""
    how = f"--episodes {episodes} --device {find_device(device).type}"
    where = f"curiosity evaluate {card['where']}"
    has_agent = "agent.safetensors" in card["files"]
    common: dict[str, Any] = {"episodes": episodes, "device": device, "progress": progress}
    if has_agent:
        played = evaluate_run(folder, task=task, **common)
        other = "" if task == card["task"] else f"--task {task} "
        summary = {name: short._asdict() for name, short in played.summary().items()}
        yield {"task": task, "summary": summary, "command": f"{where} {other}{how}"}
    if "r_network.safetensors" in card["files"]:
        tested = evaluate_r_network(folder, task=task, **common)
        part = "--r-network " if has_agent else ""
        yield {
            "task": task,
            "r_network_accuracy": tested.accuracy,
            "steps": tested.steps,
            "command": f"{where} {part}--task {task} {how}",
        }


def _machine(device: Device) -> str:
    found = find_device(device)
    return torch.cuda.get_device_name(found) if found.type == "cuda" else processor_name()


def main(arguments: Sequence[str] | None = None) -> None:
    """Makes one folder, and prints its card and the sizes of all folders next to it."""
    options = _read(arguments)
    try:
        folder = ship(progress=True, **vars(options))
    except (ValueError, ImportError, OSError) as error:
        sys.exit(f"ship: {error}")
    print((folder / README).read_text())
    sizes = {
        path.name: sum(file.stat().st_size for file in path.iterdir())
        for path in sorted(options.out.iterdir())
        if path.is_dir()
    }
    for name, size in sizes.items():
        print(f"{size:12,} bytes  {name}")
    print(f"{sum(sizes.values()):12,} bytes  in all of {options.out}")


def _read(arguments: Sequence[str] | None) -> argparse.Namespace:
    reader = argparse.ArgumentParser(
        prog="ship", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = reader.add_argument
    add("run_folder", metavar="RUN", type=Path, help="folder of a trained run")
    add("--name", required=True, help="name of the new folder")
    add("--out", type=Path, required=True, help="folder for the new folder")
    add("--parts", nargs="+", metavar="PART", help=f"of {', '.join(PARTS)} (default: all)")
    add("--tasks", nargs="+", default=(), metavar="TASK", help="default: the run's task")
    add("--episodes", type=int, default=EPISODES, help=f"default: {EPISODES}")
    add("--device", choices=("auto", "cpu", "cuda"), default="auto")
    return reader.parse_args(arguments)


if __name__ == "__main__":
    main()
