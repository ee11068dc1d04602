"""What a run can tell the mazes."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from episodic_curiosity.worlds.base import Split, WorldConfig


@dataclass(frozen=True, kw_only=True)
class MazeConfig(WorldConfig):
    """The mazes; sizes are height and width, None is the task's own."""

    stagger: bool = False  # let the first episodes begin at any point of their clock
    episode_steps: int | None = None  # the clock ends an episode after so many
    actions: str | None = None  # nine, no-fire or three, each also with +idle
    maze_size: int | None = None  # cells on a side, walls included; odd
    rooms: int | None = None  # at most
    room_size: int | None = None  # cells on a side; odd
    min_goal_distance: int | None = None  # cells from a start to its goal
    doors: bool | None = None  # where rooms and corridors meet
    num_levels: int | None = None  # drawn for each split
    level_seed: int = 0  # another one draws other levels
    layout: str | None = None  # one level of one's own, as the text of a maze
    pictures: Path | None = None  # a folder of images for a television

    def options(self, split: Split) -> dict[str, Any]:
        """As for every world; final frames are drawn later, by whoever wants one."""
        return super().options(split) | {"final_frames": False}
