"""Evaluates the content of a folder: the agent of a run, or an R-network.

Either can be tested on another task than it was trained on, if observations and actions fit.
"""

import contextlib
import dataclasses
import json
import re
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch

from episodic_curiosity.agent.network import Agent
from episodic_curiosity.reachability.accuracy import pair_accuracy
from episodic_curiosity.reachability.network import RNetwork
from episodic_curiosity.reachability.random_play import random_play
from episodic_curiosity.runs.build import check_fits, load_bonus
from episodic_curiosity.runs.checkpoints import Checkpoints
from episodic_curiosity.runs.config import Run
from episodic_curiosity.runs.evaluate import Evaluation, evaluate
from episodic_curiosity.runs.presets import resolve
from episodic_curiosity.runs.record import CONFIG
from episodic_curiosity.runs.stored_run import read_run
from episodic_curiosity.support.checks import check_at_least
from episodic_curiosity.support.machine import find_device
from episodic_curiosity.support.saving import check_writable, write_atomically
from episodic_curiosity.support.shared import find_folder, has_card
from episodic_curiosity.worlds.base import Split, World, WorldConfig
from episodic_curiosity.worlds.registry import find_family, frames_of, make_world

Device = Literal["auto", "cpu", "cuda"]  # auto: a GPU if available
# Sizes that worlds of a family may not take, by the family's `frames`.
UNSIZED = {"fixed": ("observation_size", "view_size"), "views": ("observation_size",)}


def evaluate_run(
    folder: str | Path,
    *,
    task: str | None = None,
    episodes: int = 100,
    split: Split = "test",
    deterministic: bool = False,
    device: Device = "auto",
    seed: int = 0,
    run: Run | None = None,
    trust: bool = False,
    progress: bool = False,
) -> Evaluation:
    """Evaluates the agent of a run's folder and writes evaluation.json there.

    A shared agent's folder or name (`pretrained:NAME`) is only read. Another `task` than the
    run's is played with those options of the run's world that it also has, and written to
    evaluation_<task>.json. The same seed plays every run of a task on the same levels in the
    same order. The config is that of `run`, or else the folder's own, which is refused without
    `trust` if it names a module or a path.
    """
    check_at_least("episodes", episodes, 1)
    folder = find_folder(folder, "agent")
    run = run or read_run(folder, trust=trust)
    task = task or run.task
    config = run.world if task == run.task else world_of_another_task(run.world, task)
    found = find_device(device)
    agent = Agent.load(folder, found)
    file = "evaluation.json" if task == run.task else _file_name(task)
    _check_writable(folder, file)
    size = run.world.observation_size
    if size is not None and agent.config.observation_shape[1:] != size:  # not drawn in vain
        raise ValueError(
            f"the agent in {folder} is for observations of shape "
            f"{agent.config.observation_shape}, its config says {size}"
        )
    with contextlib.closing(_world(task, config, episodes, split, found, seed)) as world:
        evaluation = evaluate(
            agent,
            world,
            num_episodes=episodes,
            deterministic=deterministic,
            seed=seed,
            progress=progress,
            bonus=load_bonus(run, world, folder) if run.ppo.sees_memory else None,
        )
    content = {"split": split, "seed": seed} | evaluation.to_dict()
    _write(folder, file, content)
    return evaluation


@dataclass(frozen=True, kw_only=True)
class RNetworkEvaluation:
    """The accuracy of an R-network on near and far pairs of a task's random play."""

    task: str
    steps: int  # of random play, summed over all environments
    accuracy: float
    held_out_accuracy: float  # on the task that it was fitted to

    def report(self) -> str:
        """A line of text."""
        return (
            f"{self.task}: accuracy {self.accuracy:.1%} on {self.steps:,} steps of random "
            f"play; {self.held_out_accuracy:.1%} was the held-out accuracy of its fit"
        )


def evaluate_r_network(
    folder: str | Path,
    *,
    task: str,
    episodes: int = 100,
    split: Split = "test",
    device: Device = "auto",
    seed: int = 0,
    progress: bool = False,
) -> RNetworkEvaluation:
    """Tests a folder's R-network on a task's random play and writes evaluation_<task>.json.

    In a run's folder that is the agent's: it writes r_network_evaluation_<task>.json there.
    A shared R-network's folder or name (`pretrained:NAME`) is only read.
    At least `episodes` complete episodes are played. The pairs are those of the paper.
    """
    check_at_least("episodes", episodes, 1)
    folder = find_folder(folder, "r_network")
    r_network = RNetwork.load(folder, find_device(device))
    written = ("" if holds_r_network_alone(folder) else "r_network_") + _file_name(task)
    _check_writable(folder, written)
    shape = r_network.config.view_shape
    config = resolve(task, "ppo+ec", "cpu", steps=1, seed=seed).world
    if frames_of(task) != "fixed" and len(shape) == 3:
        config = dataclasses.replace(config, view_size=shape[1:])
    made = _world(task, config, episodes, split, r_network.device, seed)
    with contextlib.closing(made) as world, _folder_for_frames(folder) as frames:
        spec = world.spec
        check_fits(r_network, folder, spec)
        num_steps = -(-episodes // spec.num_envs) * spec.num_envs * spec.episode_steps
        file = frames / "random_play.bin"  # for frames that do not fit into memory
        played = random_play(world, num_steps, seed=seed, file=file, progress=progress)
        accuracy = pair_accuracy(r_network, played, seed=seed)
    evaluation = RNetworkEvaluation(
        task=task,
        steps=num_steps,
        accuracy=accuracy,
        held_out_accuracy=r_network.held_out_accuracy.item(),
    )
    content = {"split": split, "seed": seed} | dataclasses.asdict(evaluation)
    _write(folder, written, content)
    return evaluation


def holds_r_network_alone(folder: Path) -> bool:
    """True for a folder of `curiosity fit`: an R-network without a run."""
    return (folder / "r_network.safetensors").exists() and not (folder / CONFIG).exists()


def remarks_on(folder: Path, *, trust: bool = False) -> Iterator[str]:
    """A line if the agent in a run's folder is not the one of the complete run."""
    if has_card(folder):
        return
    run = read_run(folder, trust=trust)
    number = Checkpoints(folder).newest_number  # saved with the agent
    if number is not None and number < run.num_updates:
        steps, total = run.steps_after(number), run.steps_after(run.num_updates)
        yield f"the run is not complete: its agent after {steps:,} of {total:,} steps"


def world_of_another_task(world: WorldConfig, task: str) -> WorldConfig:
    """The options of another task's world: those of `world` that its family has, too.

    An option of the same name but another type is another option.
    """
    family = find_family(task)
    if family.config is type(world):
        return world
    types = {field.name: field.type for field in dataclasses.fields(world)}
    shared = {
        field.name: getattr(world, field.name)
        for field in dataclasses.fields(family.config)
        if types.get(field.name) == field.type
        and field.name not in UNSIZED.get(frames_of(task), ())
    }
    return family.config(**shared)


def _world(
    task: str, config: WorldConfig, episodes: int, split: Split, device: torch.device, seed: int
) -> World:
    options = config.options(split)
    options.pop("stagger", None)  # complete episodes are wanted of any split
    num_envs = min(config.num_envs, episodes)
    return make_world(task, num_envs=num_envs, seed=seed, device=device, split=split, **options)


def _file_name(task: str) -> str:
    """The file for the evaluation on another task than the run's; no task names a folder."""
    name = re.sub(r"[^\w.@-]", "-", task.replace("+", "_"))
    return f"evaluation_{name}.json"


@contextlib.contextmanager
def _folder_for_frames(folder: Path) -> Iterator[Path]:
    """The folder itself, or a temporary one where it is shared."""
    if not has_card(folder):
        yield folder
        return
    with tempfile.TemporaryDirectory() as temporary:
        yield Path(temporary)


def _check_writable(folder: Path, name: str) -> None:
    """Raises, before anything is played, if `_write` could not write there."""
    if not has_card(folder):
        check_writable(folder / name)


def _write(folder: Path, name: str, content: dict[str, Any]) -> None:
    if has_card(folder):
        return
    packed = json.dumps(content, indent=2, allow_nan=False).encode() + b"\n"
    write_atomically({folder / name: packed})
