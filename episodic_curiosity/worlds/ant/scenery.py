"""Cameras on an ant: its head camera and, with OpenGL, one behind it."""

import sys

from episodic_curiosity.worlds.ant.world import AntWorld
from episodic_curiosity.worlds.scenery import Make, Scenery, behind_television, redrawn, wide


def open_scenery(make: Make, height: int) -> Scenery:
    world, size = make(), wide(height)
    ant = behind_television(world)
    assert isinstance(ant, AntWorld)
    cameras = {"first person": redrawn(world, make(view_size=size))}
    try:
        ant.reset()
        ant.picture(size=size)
    except RuntimeError as error:
        print(f"no view of the ant from behind: {error}", file=sys.stderr)
    else:
        cameras["from behind"] = lambda _, __: ant.picture(size=size)
    return Scenery(world, cameras)
