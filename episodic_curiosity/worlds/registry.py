"""Worlds by the names of their tasks."""

import re
from typing import Any

import torch

from episodic_curiosity.support.checks import check_choice
from episodic_curiosity.support.files import is_bare
from episodic_curiosity.worlds.ant.config import AntConfig
from episodic_curiosity.worlds.base import Split, World, WorldConfig
from episodic_curiosity.worlds.dmlab.config import DMLabConfig
from episodic_curiosity.worlds.gymnasium.config import GymnasiumConfig
from episodic_curiosity.worlds.maze.config import MazeConfig
from episodic_curiosity.worlds.vizdoom.config import ViZDoomConfig

FAMILIES = ("maze", "dmlab", "vizdoom", "gym", "ant")
# The name of a level that Lab has; it takes others for the paths of Lua scripts.
LAB_LEVEL = re.compile(r"[\w-]+(/[\w-]+)*")


# What the worlds of a family can be told, where that is more than every world can.
WORLDS: dict[str, type[WorldConfig]] = {
    "maze": MazeConfig,
    "dmlab": DMLabConfig,
    "vizdoom": ViZDoomConfig,
    "ant": AntConfig,
    "gym": GymnasiumConfig,
}


def find_world(task: str) -> type[WorldConfig]:
    """What the world of a task can be told."""
    family = task.partition("/")[0]
    check_choice("a task's family", family, FAMILIES)
    return WORLDS.get(family, WorldConfig)


def what_it_loads(task: str) -> str | None:
    """Says which module or file a task's name asks for; None where it asks for neither."""
    family, _, member = task.partition("/")
    module = member.rpartition(":")[0]
    if family == "gym" and module:
        return f"imports the Python module {module}"
    if family == "vizdoom" and not is_bare(member):
        return f"plays the file {member}"
    if family == "dmlab" and not LAB_LEVEL.fullmatch(member.partition("+")[0]):
        return f"runs the level script {member}"
    return None


def make_world(
    task: str,
    *,
    num_envs: int,
    seed: int,
    device: torch.device | str = "cpu",
    split: Split = "train",
    **options: Any,
) -> World:
    """Makes the world of a task such as "maze/sparse+noise" or "gym/CartPole-v1".

    A suffix puts a television into the picture; the options are those of the family's world
    (and of the television). A family's dependencies are imported only when it is asked for.
    """
    name, plus, programme = task.partition("+")
    family, _, member = name.partition("/")
    if family not in FAMILIES:
        known = ", ".join(f"{known}/..." for known in FAMILIES)
        raise ValueError(f"there is no task {task!r}; tasks are named {known}")
    if family == "vizdoom":
        from episodic_curiosity.worlds.vizdoom.world import ViZDoomWorld

        scenario = task.partition("/")[2]  # maybe a path, with a plus of its own
        return ViZDoomWorld(
            scenario, num_envs=num_envs, seed=seed, device=device, split=split, **options
        )
    if not plus and "pictures" in options:
        raise ValueError(f"{task} has no television that could show pictures")
    if plus:
        from episodic_curiosity.worlds import television

        pictures = options.pop("pictures", None)
        if television.find_programme(programme).switched:
            if family not in ("maze", "dmlab"):
                raise ValueError(f"{programme} needs an idle action, which only mazes have")
            options["idle"] = True
        inner = make_world(
            name, num_envs=num_envs, seed=seed, device=device, split=split, **options
        )
        return television.Television(inner, programme, seed=seed, pictures=pictures)
    if family == "dmlab":
        from episodic_curiosity.worlds.dmlab.world import DMLabWorld

        return DMLabWorld(
            member, num_envs=num_envs, seed=seed, device=device, split=split, **options
        )
    if family == "gym":
        from episodic_curiosity.worlds.gymnasium.world import GymnasiumWorld

        return GymnasiumWorld(
            member, num_envs=num_envs, seed=seed, device=device, split=split, **options
        )
    if family == "ant":
        from episodic_curiosity.worlds.ant.world import AntWorld

        return AntWorld(
            member, num_envs=num_envs, seed=seed, device=device, split=split, **options
        )

    from episodic_curiosity.worlds.maze.world import MazeWorld

    return MazeWorld(
        member, num_envs=num_envs, seed=seed, device=device, split=split, **options
    )
