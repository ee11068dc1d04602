"""Finds families and builds worlds by the names of tasks.

Families of other packages are found through the entry-point group GROUP, or registered.
"""

import functools
from typing import Any

import torch

from episodic_curiosity.support.checks import (
    check_at_least,
    check_choice,
    check_type,
    suggestion,
    usable_device,
)
from episodic_curiosity.support.importing import import_object
from episodic_curiosity.support.plugins import register_plugins
from episodic_curiosity.worlds.ant.family import FAMILY as ANT
from episodic_curiosity.worlds.base import SPLITS, Split, World
from episodic_curiosity.worlds.dmlab.family import FAMILY as DMLAB
from episodic_curiosity.worlds.family import Family, FrameSizes, split_task
from episodic_curiosity.worlds.gymnasium.family import FAMILY as GYMNASIUM
from episodic_curiosity.worlds.maze.family import FAMILY as MAZE
from episodic_curiosity.worlds.television import Television, find_programme
from episodic_curiosity.worlds.vizdoom.family import FAMILY as VIZDOOM

GROUP = "episodic_curiosity.families"
BUILT_IN = (MAZE, DMLAB, VIZDOOM, ANT, GYMNASIUM)

_FAMILIES = {family.name: family for family in BUILT_IN}


def register_family(family: Family) -> None:
    """Adds a family, for this process; an entry point adds it for every one.

    Args:
        family: its record.
    """
    check_type("family", family, Family)
    if _FAMILIES.setdefault(family.name, family) is not family:
        raise ValueError(f"there is already a family {family.name!r}: choose another name")


def families() -> dict[str, Family]:
    """Every family by its name, including those of other packages."""
    _load_entry_points()
    return dict(_FAMILIES)


def find_family(task: str) -> Family:
    """Returns the family of a task; raises for an unknown one, listing the choices."""
    name, _ = split_task(task)
    if name not in _FAMILIES and name not in families():
        raise _no_task(task)
    return _FAMILIES[name]


def known_tasks() -> dict[str, str]:
    """One line about each listed task of every family."""
    return {
        f"{family.name}/{task}": line
        for family in families().values()
        for task, line in family.tasks.items()
    }


def read_task(task: str) -> tuple[Family, str, str]:
    """Splits a task into its family, its name there and a television's programme or "".

    Raises unless there is such a task; the message lists the choices.
    """
    family, name, programme = find_family(task), split_task(task)[1], ""
    if family.television != "none":
        name, plus, programme = name.partition("+")
        if plus and find_programme(programme).switched and family.television != "any":
            raise ValueError(f"{programme} needs an idle action, which {family.name}/... lacks")
    if name not in family.tasks and not (name and family.open_tasks):
        raise _no_task(task)
    return family, name, programme


def frames_of(task: str) -> FrameSizes:
    """The sizes of frames that a preset sets for a task."""
    family, name, _ = read_task(task)
    return family.frames(name) if callable(family.frames) else family.frames


def split_tasks(names: str) -> tuple[str, ...]:
    """Splits a list such as "a,b,c", expanding task sets; raises as `read_task` does."""
    sets = {
        name: tuple(f"{family.name}/{task}" for task in tasks)
        for family in families().values()
        for name, tasks in family.task_sets.items()
    }
    tasks = tuple(task for name in names.split(",") for task in sets.get(name, (name,)))
    for task in tasks:
        read_task(task)
    return tasks


def what_it_loads(task: str) -> str | None:
    """Describes the module or file that a task's name loads; None if it loads neither."""
    loads = find_family(task).loads
    return None if loads is None else loads(split_task(task)[1])


def make_world(
    task: str,
    *,
    num_envs: int,
    seed: int,
    device: torch.device | str = "cpu",
    split: Split = "train",
    **options: Any,
) -> World:
    """Builds the world of a task such as "maze/sparse+noise" or "gym/CartPole-v1".

    A "+" suffix adds a television to the frames. A family's dependencies are imported only when
    one of its tasks is built.

    Args:
        task: "<family>/<task>", as `curiosity tasks` lists them.
        num_envs: N, the number of environments.
        seed: of everything random.
        device: of all tensors.
        split: "train", "validation", "test" or "r-network": their levels are disjoint.
        options: of the family's world and of the television.
    """
    family, name, programme = read_task(task)
    check_at_least("num_envs", num_envs, 1)
    check_choice("split", split, SPLITS)
    device = usable_device(device)
    if family.television != "none" and not programme and "pictures" in options:
        raise ValueError(f"{task} has no television that could show pictures")
    pictures = options.pop("pictures", None) if programme else None
    if programme and find_programme(programme).switched:
        options["idle"] = True
    make = import_object(family.make)
    world: World = make(
        name, num_envs=num_envs, seed=seed, device=device, split=split, **options
    )
    return Television(world, programme, seed=seed, pictures=pictures) if programme else world


@functools.cache
def _load_entry_points() -> tuple[str, ...]:
    """Registers the families of other packages; returns a sentence about each refused one."""
    return register_plugins(GROUP, "family", register_family)


def _no_task(task: str) -> ValueError:
    is_open = [f"{family.name}/..." for family in families().values() if family.open_tasks]
    choices = ", ".join([*known_tasks(), *is_open])
    refused = "".join(f"; {sentence}" for sentence in _load_entry_points())
    meant = suggestion(task, known_tasks())
    return ValueError(f"there is no task {task!r}{meant}; choose one of {choices}{refused}")
