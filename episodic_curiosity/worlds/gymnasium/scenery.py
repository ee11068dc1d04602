"""The camera on a Gymnasium environment: what it renders, or else its frames."""

from episodic_curiosity.worlds.gymnasium.world import GymnasiumWorld
from episodic_curiosity.worlds.scenery import Make, Scenery, show_views


def open_scenery(make: Make, height: int) -> Scenery:  # noqa: ARG001
    world = make()
    if not isinstance(world, GymnasiumWorld) or not world.can_render:  # or a television
        return show_views(world, "render mode 'rgb_array' or uint8 frames")
    world.close()
    rendered = make(render_mode="rgb_array")
    assert isinstance(rendered, GymnasiumWorld)
    return Scenery(rendered, {"rendered": lambda _, __: rendered.picture()})
