"""What there is to see of each world: through the agent's eyes, and from outside.

Shapes: h x w pixels.
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import Tensor

from episodic_curiosity.watch.episode import Camera, Episode, Picture
from episodic_curiosity.worlds import RedrawableWorld, Split, Step, World, make_world

SMALLEST_CELL = 4  # pixels of a maze's cell from above, at least
MARKED_CELL = 20  # pixels; in smaller cells, marks are drawn as large as in these


@dataclass(frozen=True)
class Setting:
    """One environment of a task, with the options of a run."""

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
    """A world to be played and the cameras on it, by their captions."""

    world: World
    cameras: dict[str, Camera]
    has_map: bool  # a camera shows the way that was walked

    def close(self) -> None:
        self.world.close()


def open_scenery(setting: Setting, height: int) -> Scenery:
    """Makes the world; the pictures are as high as that, or whatever the world can give."""
    return FAMILIES[setting.family](setting, height)


def _maze(setting: Setting, height: int) -> Scenery:
    from episodic_curiosity.worlds.maze.world import MazeWorld
    from episodic_curiosity.worlds.television import Television

    world = setting.make()
    maze = world.world if isinstance(world, Television) else world
    assert isinstance(maze, MazeWorld)

    maze.reset()
    num_cells = len(maze.overhead(pixels_per_cell=SMALLEST_CELL)) // SMALLEST_CELL
    pixels = max(SMALLEST_CELL, height // num_cells)

    def from_above(episode: Episode, _: Step) -> Picture:
        return maze.overhead(
            pixels_per_cell=pixels,
            mark_size=max(1.0, MARKED_CELL / pixels),
            trajectory=episode.way(episode.num_steps),
            memory=episode.memories(episode.num_steps),
        )

    eyes = _redrawn(setting, world, height)
    return Scenery(world, {"first person": eyes, "from above": from_above}, has_map=True)


def _ant(setting: Setting, height: int) -> Scenery:
    from episodic_curiosity.worlds.ant.world import AntWorld

    world = setting.make()
    assert isinstance(world, AntWorld)
    cameras = {"first person": _redrawn(setting, world, height)}
    try:
        world.reset()
        world.picture(size=_wide(height))
    except RuntimeError as error:
        print(f"the ant is not shown from behind: {error}", file=sys.stderr)
    else:
        cameras["from behind"] = lambda _, __: world.picture(size=_wide(height))
    return Scenery(world, cameras, has_map=False)


def _simulator(setting: Setting, height: int) -> Scenery:  # noqa: ARG001
    from episodic_curiosity.worlds.television import Television
    from episodic_curiosity.worlds.worker_world import WorkerWorld

    world = setting.make()
    simulator = world.world if isinstance(world, Television) else world
    assert isinstance(simulator, WorkerWorld)
    return Scenery(world, {"first person": lambda _, __: simulator.picture()}, has_map=False)


def _gymnasium(setting: Setting, height: int) -> Scenery:  # noqa: ARG001
    from episodic_curiosity.worlds.gymnasium import GymnasiumWorld

    world = setting.make()
    assert isinstance(world, GymnasiumWorld)
    spec = world.spec
    if world.can_render:
        world.close()
        rendered = setting.make(render_mode="rgb_array")
        assert isinstance(rendered, GymnasiumWorld)
        return Scenery(rendered, {"rendered": lambda _, __: rendered.picture()}, has_map=False)
    if len(spec.observation_shape) == 3 and spec.observation_dtype == torch.uint8:
        return Scenery(world, {"its view": lambda _, step: _shown(step.view[0])}, has_map=False)
    world.close()
    raise ValueError(
        f"{spec.task} cannot be watched: it neither renders 'rgb_array' nor observes frames"
    )


FAMILIES: dict[str, Callable[[Setting, int], Scenery]] = {
    "maze": _maze,
    "ant": _ant,
    "vizdoom": _simulator,
    "dmlab": _simulator,
    "gym": _gymnasium,
}


def _redrawn(setting: Setting, world: World, height: int) -> Camera:
    """The view, drawn anew in a size for people: an agent's own may be as small as 42 x 42."""
    drawer = cast(RedrawableWorld, setting.make(view_size=_wide(height)))
    played = cast(RedrawableWorld, world)
    return lambda _, __: _height_width_channels(drawer.redraw(played.snapshot())[0])


def _wide(height: int) -> tuple[int, int]:
    """A size of 4 : 3, as (height, width)."""
    return height, round(height * 4 / 3)


def _shown(frame: Tensor) -> Picture:
    """A frame of any number of channels: in colour where they are three, else the last one."""
    return _height_width_channels(frame if len(frame) == 3 else frame[-1:].expand(3, -1, -1))


def _height_width_channels(frame: Tensor) -> Picture:
    picture: Picture = frame.permute(1, 2, 0).cpu().numpy()
    return picture
