"""Cameras on DeepMind Lab: through the agent's eyes and, in a maze, from above."""

import sys

from episodic_curiosity.worlds.base import Picture, Step
from episodic_curiosity.worlds.dmlab.world import DMLabWorld
from episodic_curiosity.worlds.lab.scenery import from_above
from episodic_curiosity.worlds.scenery import (
    Camera,
    EpisodePath,
    Make,
    Scenery,
    as_picture,
    behind_television,
)


def open_scenery(make: Make, height: int) -> Scenery:
    """Adds a map if the level is a maze, which is known only after a reset."""
    world = make()
    lab = behind_television(world)
    assert isinstance(lab, DMLabWorld)

    def eyes(_: EpisodePath, step: Step) -> Picture:
        return lab.picture() if lab is world else as_picture(step.view[0])

    cameras: dict[str, Camera] = {"first person": eyes}
    lab.reset()
    if lab.layout():
        try:
            cameras["from above"] = from_above(lab, height)
        except ValueError as error:
            print(f"the path is shown without walls: {error}", file=sys.stderr)
    return Scenery(world, cameras, has_map="from above" in cameras)
