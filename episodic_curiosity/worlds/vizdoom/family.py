"""ViZDoom: the options of a run and the record of the family."""

from dataclasses import dataclass

from episodic_curiosity.support.files import is_bare
from episodic_curiosity.worlds.base import WorldConfig
from episodic_curiosity.worlds.family import Family, OpenTasks


@dataclass(frozen=True, kw_only=True)
class ViZDoomConfig(WorldConfig):
    """ViZDoom games; sizes are (height, width), None is the task's default."""

    stagger: bool = False  # start first episodes at a random step count
    episode_steps: int | None = None  # truncates episodes
    actions: tuple[str, ...] | None = None  # button names joined by +, or idle
    num_workers: int | None = None  # processes that share the games; None: one per core
    timeout: float | None = None  # seconds until a process is considered frozen; None: 60


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
