"""DeepMind Lab: the options of a run and the record of the family."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from episodic_curiosity.support.checks import check_type
from episodic_curiosity.worlds.base import WorldConfig
from episodic_curiosity.worlds.dmlab.levels import DMLAB_30
from episodic_curiosity.worlds.family import Family, OpenTasks
from episodic_curiosity.worlds.lab.tasks import LAB_TASKS


@dataclass(frozen=True, kw_only=True)
class DMLabConfig(WorldConfig):
    """DeepMind Lab; sizes are (height, width), None is the task's default."""

    stagger: bool = False  # begin the first episodes at random step counts
    episode_steps: int | None = None  # episodes are truncated after this many steps
    actions: str | None = None  # action set: nine, no-fire or three, optionally with +idle
    frame_size: tuple[int, int] | None = None  # size that Lab renders, before resizing
    level_cache: Path | None = None  # folder for compiled levels; runs may share it
    redraw_starts: bool = False  # draw far starts here, for builds without the authors' patch
    renderer: Literal["software", "hardware"] = "software"  # hardware: render on a GPU
    pictures: Path | None = None  # folder of images for a television
    # Seconds until a worker counts as hung; must cover compiling all levels in parallel.
    # None: derived from the number of environments per core.
    timeout: float | None = None

    def __post_init__(self) -> None:
        """Makes `level_cache` absolute, so that a resumed run finds it from any directory."""
        super().__post_init__()
        if self.level_cache is not None:
            check_type("world.level_cache", self.level_cache, Path)
            object.__setattr__(self, "level_cache", self.level_cache.absolute())


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
