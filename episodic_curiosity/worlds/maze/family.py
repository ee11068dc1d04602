"""The mazes: the options of a run and the record of the family."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from episodic_curiosity.worlds.base import Split, WorldConfig
from episodic_curiosity.worlds.family import Family
from episodic_curiosity.worlds.lab.tasks import LAB_TASKS


@dataclass(frozen=True, kw_only=True)
class MazeConfig(WorldConfig):
    """The mazes; sizes are (height, width), None is the task's default."""

    stagger: bool = False  # begin the first episodes at random step counts
    episode_steps: int | None = None  # episodes are truncated after this many steps
    actions: str | None = None  # action set: nine, no-fire or three, optionally with +idle
    maze_size: int | None = None  # cells per side, including walls; odd
    rooms: int | None = None  # maximum number of rooms
    room_size: int | None = None  # cells per side; odd
    min_goal_distance: int | None = None  # least path length from start to goal, in cells
    doors: bool | None = None  # doors where rooms and corridors meet
    num_levels: int | None = None  # levels generated per split
    level_seed: int = 0  # seed of the generated levels
    layout: str | None = None  # a custom level, as text
    pictures: Path | None = None  # folder of images for a television

    def options(self, split: Split) -> dict[str, Any]:
        """As in WorldConfig, but final frames are left to be drawn from `final_snapshot`."""
        return super().options(split) | {"final_frames": False}


FAMILY = Family(
    name="maze",
    tasks={name: task.line for name, task in LAB_TASKS.items()},
    config=MazeConfig,
    make="episodic_curiosity.worlds.maze.world:MazeWorld",
    simulated_on="device",
    frames="shared",
    can_redraw=True,
    scenery="episodic_curiosity.worlds.maze.scenery:open_scenery",
    television="any",
)
