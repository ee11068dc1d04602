"""Cameras on each family of worlds: the agent's view, and views from outside.

Shapes: h x w pixels.
"""

import sys
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Protocol, cast

import torch
from torch import Tensor

from episodic_curiosity.show.film.episode import Camera, Episode
from episodic_curiosity.worlds.base import Picture, RedrawableWorld, Split, Step, World
from episodic_curiosity.worlds.registry import make_world

SMALLEST_CELL = 4  # minimum side of a maze cell from above, in pixels
MARKED_CELL = 20  # pixels; marks do not shrink below their size in such a cell


@dataclass(frozen=True)
class WorldArguments:
    """Arguments for one environment of a task, with the options of a run."""

    task: str
    split: Split
    seed: int
    device: torch.device
    options: dict[str, Any]

    @property
    def family(self) -> str:
        return self.task.partition("/")[0]

    def make(self, **changes: Any) -> World:
        return make_world(
            self.task,
            num_envs=1,
            seed=self.seed,
            device=self.device,
            split=self.split,
            **self.options | changes,
        )


@dataclass(frozen=True)
class Scenery:
    """A world and its cameras, by caption."""

    world: World
    cameras: dict[str, Camera]
    has_map: bool  # a camera shows the agent's path
    opened: ExitStack  # closes the world and the worlds that draw for the cameras

    def close(self) -> None:
        self.opened.close()


def open_scenery(setting: WorldArguments, height: int) -> Scenery:
    """Creates the world and its cameras, with pictures of that height if the world can."""
    opened = ExitStack()
    try:
        return SCENERIES[setting.family](setting, height, opened)
    except BaseException:
        opened.close()
        raise


def _maze(setting: WorldArguments, height: int, opened: ExitStack) -> Scenery:
    from episodic_curiosity.worlds.maze.world import MazeWorld

    world = _make(setting, opened)
    maze = _behind_television(world)
    assert isinstance(maze, MazeWorld)
    maze.reset()
    eyes = _redrawn(setting, world, height, opened)
    cameras = {"first person": eyes, "from above": _from_above(maze, height)}
    return Scenery(world, cameras, has_map=True, opened=opened)


def _ant(setting: WorldArguments, height: int, opened: ExitStack) -> Scenery:
    from episodic_curiosity.worlds.ant.world import AntWorld

    world = _make(setting, opened)
    assert isinstance(world, AntWorld)
    cameras = {"first person": _redrawn(setting, world, height, opened)}
    try:
        world.reset()
        world.picture(size=_wide(height))
    except RuntimeError as error:
        print(f"no view of the ant from behind: {error}", file=sys.stderr)
    else:
        cameras["from behind"] = lambda _, __: world.picture(size=_wide(height))
    return Scenery(world, cameras, has_map=False, opened=opened)


def _doom(setting: WorldArguments, height: int, opened: ExitStack) -> Scenery:  # noqa: ARG001
    from episodic_curiosity.worlds.vizdoom.world import ViZDoomWorld

    world = _make(setting, opened)
    assert isinstance(world, ViZDoomWorld)
    cameras: dict[str, Camera] = {"first person": lambda _, __: world.picture()}
    return Scenery(world, cameras, has_map=False, opened=opened)


def _lab(setting: WorldArguments, height: int, opened: ExitStack) -> Scenery:
    """Adds a map if the level is a maze, which is known only after a reset."""
    from episodic_curiosity.worlds.dmlab.world import DMLabWorld

    world = _make(setting, opened)
    lab = _behind_television(world)
    assert isinstance(lab, DMLabWorld)

    def eyes(_: Episode, step: Step) -> Picture:
        return lab.picture() if lab is world else _shown(step.view[0])

    cameras: dict[str, Camera] = {"first person": eyes}
    lab.reset()
    if lab.layout():
        try:
            cameras["from above"] = _from_above(lab, height)
        except ValueError as error:
            print(f"the path is shown without walls: {error}", file=sys.stderr)
    return Scenery(world, cameras, has_map="from above" in cameras, opened=opened)


def _gymnasium(setting: WorldArguments, height: int, opened: ExitStack) -> Scenery:  # noqa: ARG001
    from episodic_curiosity.worlds.gymnasium.world import GymnasiumWorld

    world = _make(setting, opened)
    assert isinstance(world, GymnasiumWorld)
    spec, cameras = world.spec, dict[str, Camera]()
    if world.can_render:
        world.close()
        world = _make(setting, opened, render_mode="rgb_array")
        assert isinstance(world, GymnasiumWorld)
        rendered = world
        cameras["rendered"] = lambda _, __: rendered.picture()
    elif len(spec.observation_shape) == 3 and spec.observation_dtype == torch.uint8:
        cameras["its view"] = lambda _, step: _shown(step.view[0])
    else:
        raise ValueError(
            f"{spec.task} cannot be filmed: it needs render mode 'rgb_array' or uint8 frames"
        )
    return Scenery(world, cameras, has_map=False, opened=opened)


SCENERIES: dict[str, Callable[[WorldArguments, int, ExitStack], Scenery]] = {
    "maze": _maze,
    "ant": _ant,
    "vizdoom": _doom,
    "dmlab": _lab,
    "gym": _gymnasium,
}


class _WithMap(Protocol):
    def overhead(self, *, pixels_per_cell: int, **marks: Any) -> Picture:
        """See draw_overhead."""


def _make(setting: WorldArguments, opened: ExitStack, **changes: Any) -> World:
    world = setting.make(**changes)
    opened.callback(world.close)
    return world


def _behind_television(world: World) -> World:
    from episodic_curiosity.worlds.television import Television

    return world.world if isinstance(world, Television) else world


def _from_above(maze: _WithMap, height: int) -> Camera:
    """A map of a maze that has been reset."""
    num_cells = len(maze.overhead(pixels_per_cell=SMALLEST_CELL)) // SMALLEST_CELL
    pixels = max(SMALLEST_CELL, height // num_cells)

    def from_above(episode: Episode, _: Step) -> Picture:
        return maze.overhead(
            pixels_per_cell=pixels,
            mark_size=max(1.0, MARKED_CELL / pixels),
            trajectory=episode.way(episode.num_steps),
            memory=episode.memories(episode.num_steps),
        )

    return from_above


def _redrawn(setting: WorldArguments, world: World, height: int, opened: ExitStack) -> Camera:
    """The view, redrawn in a larger size: the agent's may be as small as 42 x 42."""
    drawer = cast(RedrawableWorld, _make(setting, opened, view_size=_wide(height)))
    played = cast(RedrawableWorld, world)
    return lambda _, __: _height_width_channels(drawer.redraw(played.snapshot())[0])


def _wide(height: int) -> tuple[int, int]:
    """A 4:3 size as (height, width)."""
    return height, round(height * 4 / 3)


def _shown(frame: Tensor) -> Picture:
    """A frame as RGB: its three channels, or else its last channel in grey."""
    return _height_width_channels(frame if len(frame) == 3 else frame[-1:].expand(3, -1, -1))


def _height_width_channels(frame: Tensor) -> Picture:
    picture: Picture = frame.permute(1, 2, 0).cpu().numpy()
    return picture
