"""Opens the world of a film and the cameras on it, which its family's record names."""

import contextlib
from collections.abc import Iterator
from typing import Any

from episodic_curiosity.support.importing import import_object
from episodic_curiosity.worlds.base import World
from episodic_curiosity.worlds.registry import find_family, make_world
from episodic_curiosity.worlds.scenery import Scenery, show_views


@contextlib.contextmanager
def open_scenery(task: str, height: int, **options: Any) -> Iterator[Scenery]:
    """Makes one environment with cameras; pictures have that height if the world can.

    `options` are those of make_world. Closes the worlds that the cameras needed, too.
    """
    with contextlib.ExitStack() as opened:

        def make(**changes: Any) -> World:
            world = make_world(task, num_envs=1, **options | changes)
            opened.callback(world.close)
            return world

        scenery = find_family(task).scenery
        yield import_object(scenery)(make, height) if scenery else show_views(make())
