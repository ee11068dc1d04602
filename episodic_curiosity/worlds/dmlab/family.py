"""The record of DeepMind Lab."""

import re

from episodic_curiosity.worlds.dmlab.config import DMLabConfig
from episodic_curiosity.worlds.dmlab.levels import DMLAB_30
from episodic_curiosity.worlds.family import Family, OpenTasks
from episodic_curiosity.worlds.lab.tasks import LAB_TASKS

# The name of a level that Lab has; it takes others for the paths of Lua scripts.
LEVEL = re.compile(r"[\w-]+(/[\w-]+)*")


def what_it_loads(task: str) -> str | None:
    is_level = LEVEL.fullmatch(task.partition("+")[0])
    return None if is_level else f"runs the level script {task}"


FAMILY = Family(
    name="dmlab",
    tasks={name: task.line for name, task in LAB_TASKS.items()},
    open_tasks=OpenTasks("<level>", "any level of DeepMind Lab, such as those of dmlab-30"),
    task_sets={"dmlab-30": DMLAB_30},  # section S4
    config=DMLabConfig,
    make="episodic_curiosity.worlds.dmlab.world:DMLabWorld",
    simulated_on="host",
    frames="separate",
    scenery="episodic_curiosity.worlds.dmlab.scenery:open_scenery",
    television="any",
    loads=what_it_loads,
    settings="maze",
)
