"""The record of ViZDoom."""

from episodic_curiosity.support.files import is_bare
from episodic_curiosity.worlds.family import Family, OpenTasks
from episodic_curiosity.worlds.vizdoom.config import ViZDoomConfig


def what_it_loads(task: str) -> str | None:
    return None if is_bare(task) else f"plays the file {task}"


FAMILY = Family(
    name="vizdoom",
    tasks={
        "dense": "MyWayHome: +1 at the goal, starts all over the map; 525 steps",
        "sparse": "MyWayHome, starting in a room at medium distance",
        "very-sparse": "MyWayHome, starting in the farthest room",
    },
    open_tasks=OpenTasks("<path>", "any scenario, as a .cfg or .wad file"),
    config=ViZDoomConfig,
    make="episodic_curiosity.worlds.vizdoom.world:ViZDoomWorld",
    simulated_on="host",
    frames="separate",
    scenery="episodic_curiosity.worlds.vizdoom.scenery:open_scenery",
    loads=what_it_loads,
)
