"""The record of Gymnasium's environments."""

from episodic_curiosity.worlds.family import Family, FrameSizes, OpenTasks
from episodic_curiosity.worlds.gymnasium.config import GymnasiumConfig
from episodic_curiosity.worlds.gymnasium.packages import find_package


def what_it_loads(task: str) -> str | None:
    module = task.rpartition(":")[0]
    return f"imports the Python module {module}" if module else None


def preset_frames(task: str) -> FrameSizes:
    return find_package(task).frames


FAMILY = Family(
    name="gym",
    tasks={},
    open_tasks=OpenTasks("<id>", "any Gymnasium environment, such as gym/CartPole-v1"),
    config=GymnasiumConfig,
    make="episodic_curiosity.worlds.gymnasium.world:GymnasiumWorld",
    simulated_on="host",
    frames=preset_frames,
    scenery="episodic_curiosity.worlds.gymnasium.scenery:open_scenery",
    television="unswitched",
    loads=what_it_loads,
)
