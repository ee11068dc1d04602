"""The camera on ViZDoom: the engine's own frame."""

from episodic_curiosity.worlds.scenery import Make, Scenery
from episodic_curiosity.worlds.vizdoom.world import ViZDoomWorld


def open_scenery(make: Make, height: int) -> Scenery:  # noqa: ARG001
    world = make()
    assert isinstance(world, ViZDoomWorld)
    return Scenery(world, {"first person": lambda _, __: world.picture()})
