"""The record of the mazes."""

from episodic_curiosity.worlds.family import Family
from episodic_curiosity.worlds.lab.tasks import LAB_TASKS
from episodic_curiosity.worlds.maze.config import MazeConfig

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
