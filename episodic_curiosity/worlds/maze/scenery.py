"""Cameras on a maze: through the agent's eyes and from above."""

from episodic_curiosity.worlds.lab.scenery import from_above
from episodic_curiosity.worlds.maze.world import MazeWorld
from episodic_curiosity.worlds.scenery import Make, Scenery, behind_television, redrawn, wide


def open_scenery(make: Make, height: int) -> Scenery:
    world = make()
    maze = behind_television(world)
    assert isinstance(maze, MazeWorld)
    maze.reset()
    cameras = {
        "first person": redrawn(world, make(view_size=wide(height))),
        "from above": from_above(maze, height),
    }
    return Scenery(world, cameras, has_map=True)
