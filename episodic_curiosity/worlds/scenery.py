"""A world to film and the cameras on it, with the cameras that several families share.

A family's `scenery` is a function of `make` and `height`. `make(**changes)` makes the film's
world of one environment, with changed options; the film closes what it made. Pictures should
have that height where the world can draw any. Shapes: h x w pixels.
"""

from collections.abc import Callable
from typing import NamedTuple, Protocol, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from episodic_curiosity.worlds.base import Picture, RedrawableWorld, Step, World
from episodic_curiosity.worlds.television import Television

Points = NDArray[np.float32]  # (places, 2)
Make = Callable[..., World]


class EpisodePath(Protocol):
    """The path of the episode that is filmed."""

    @property
    def num_steps(self) -> int: ...

    def path(self, step: int) -> Points:
        """The places of the first steps, (step + 1, 2)."""

    def memories(self, step: int) -> Points:
        """The places where a view was stored in memory, up to that step."""


# Shows the present: the episode so far and its newest step.
Camera = Callable[[EpisodePath, Step], Picture]


class Scenery(NamedTuple):
    """A world of one environment and its cameras, by caption."""

    world: World
    cameras: dict[str, Camera]
    has_map: bool = False  # a camera shows the agent's path


def show_views(world: World, wanted: str = "uint8 frames") -> Scenery:
    """Films the views as they are; raises unless they are frames, naming what is `wanted`."""
    spec = world.spec
    if len(spec.view_shape) != 3 or spec.view_dtype != torch.uint8:
        raise ValueError(f"{spec.task} cannot be filmed: it needs {wanted}")
    return Scenery(world, {"its view": lambda _, step: as_picture(step.view[0])})


def redrawn(world: World, drawer: World) -> Camera:
    """The view as another world draws it: the agent's may be as small as 42 x 42."""
    played, larger = cast(RedrawableWorld, world), cast(RedrawableWorld, drawer)
    return lambda _, __: as_picture(larger.redraw(played.snapshot())[0])


def behind_television(world: World) -> World:
    """The world that a television is drawn over, if there is one."""
    return world.world if isinstance(world, Television) else world


def wide(height: int) -> tuple[int, int]:
    """A 4:3 size as (height, width)."""
    return height, round(height * 4 / 3)


def as_picture(frame: Tensor) -> Picture:
    """A frame as RGB: its three channels, or else its last channel in grey."""
    frame = frame if len(frame) == 3 else frame[-1:].expand(3, -1, -1)
    picture: Picture = frame.permute(1, 2, 0).cpu().numpy()
    return picture
