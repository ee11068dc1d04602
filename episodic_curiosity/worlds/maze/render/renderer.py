"""Draws scenes with the back end for the device.

Shapes: N frames, R of them to draw, h x w pixels.
"""

import warnings
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec

import torch
from torch import Tensor

from episodic_curiosity.worlds.lab.elements import Theme
from episodic_curiosity.worlds.maze.levels.stored import LevelPool
from episodic_curiosity.worlds.maze.render import render_torch, walk_torch
from episodic_curiosity.worlds.maze.render.camera import make_camera
from episodic_curiosity.worlds.maze.render.level_map import make_level_map
from episodic_curiosity.worlds.maze.render.render_compiled import CompiledRenderer
from episodic_curiosity.worlds.maze.render.scene import Scene
from episodic_curiosity.worlds.maze.render.textures import textures


class Renderer:
    """Draws frames of one pool of levels in one size: Numba on a CPU, torch.compile on a GPU.

    On a GPU the first draw compiles, once per process for all levels.
    """

    def __init__(
        self,
        theme: Theme,
        pool: LevelPool,
        height: int,
        width: int,
        device: torch.device | str,
        *,
        num_frames: int = 64,
        before_fill: Callable[[], None] | None = None,
    ) -> None:
        """`num_frames` is the most frequent batch size.

        On a GPU, `before_fill` is called before the pass that takes longest to compile.
        """
        self.device = torch.device(device)
        self.shape = (3, height, width)
        self._camera = make_camera(height, width)
        level_map = make_level_map(theme, pool, self.device)
        self._fixed = (theme, level_map, textures().to(self.device))
        self._numba = self.device.type == "cpu" and find_spec("numba") is not None
        if self._numba:
            return
        camera = walk_torch.make_camera(height, width, self.device)
        self._draw: Callable[[Scene], Tensor]
        if self.device.type == "cpu":
            message = "Numba is missing: drawing mazes is about 100 times slower"
            warnings.warn(message, stacklevel=2)
            self._draw = partial(render_torch.render, *self._fixed, camera)
        else:
            self._draw = CompiledRenderer(
                *self._fixed,
                camera,
                (height, width),
                num_frames=num_frames,
                before_fill=before_fill,
            ).draw

    @torch.no_grad()
    def draw(self, scene: Scene, rows: Tensor | None = None) -> Tensor:
        """Draws all frames, (N, 3, h, w) uint8, or those of `rows` (R,) int64, (R, 3, h, w)."""
        if self._numba:
            from episodic_curiosity.worlds.maze.render.render_numba import render_into

            count = len(scene.level if rows is None else rows)
            frames = torch.empty(count, *self.shape, dtype=torch.uint8)
            render_into(*self._fixed, self._camera, scene, frames, rows)
            return frames
        if rows is not None:
            scene = Scene(*(field[rows] for field in scene))
        return self._draw(scene)
