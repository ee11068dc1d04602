"""The record of Gymnasium's environments."""

from episodic_curiosity.worlds.family import Family, OpenTasks
from episodic_curiosity.worlds.gymnasium.config import GymnasiumConfig


def what_it_loads(task: str) -> str | None:
    module = task.rpartition(":")[0]
    return f"imports the Python module {module}" if module else None


FAMILY = Family(
    name="gym",
    tasks={},
    open_tasks=OpenTasks("<id>", "any Gymnasium environment, such as gym/CartPole-v1"),
    config=GymnasiumConfig,
    make="episodic_curiosity.worlds.gymnasium.world:GymnasiumWorld",
    simulated_on="host",
    scenery="episodic_curiosity.worlds.gymnasium.scenery:open_scenery",
    television="unswitched",
    loads=what_it_loads,
)
