"""Draws scenes, with the back end that suits the device.

Shapes: N frames, R of them to draw, h x w pixels.
"""

import warnings
from collections.abc import Callable
from importlib.util import find_spec
from types import FunctionType
from typing import Any

import torch
from torch import Tensor

from episodic_curiosity.worlds.maze import render_torch, walk_torch
from episodic_curiosity.worlds.maze.camera import make_camera
from episodic_curiosity.worlds.maze.level_map import make_level_map
from episodic_curiosity.worlds.maze.scene import Scene, Stage, Theme
from episodic_curiosity.worlds.maze.textures import textures


class Renderer:
    """Pictures of one stage in one size: Numba on the CPU, torch.compile on a GPU.

    On a GPU the first draw compiles for a minute; its number of frames is then fixed, and any
    other number is drawn in pieces of that size, so that nothing compiles again.
    """

    def __init__(
        self, theme: Theme, stage: Stage, height: int, width: int, device: torch.device | str
    ) -> None:
        self.device = torch.device(device)
        self.shape = (3, height, width)
        stage = Stage(*(part.to(self.device) for part in stage))
        self._camera = make_camera(height, width)
        self._fixed = (theme, make_level_map(theme, stage), textures().to(self.device))
        self._numba = self.device.type == "cpu" and find_spec("numba") is not None
        if self._numba:
            return
        self._camera_tensors = walk_torch.make_camera(height, width, self.device)
        self._find_columns, self._fill = render_torch.find_columns, render_torch.fill
        self._piece = 0  # frames drawn at once, where that is fixed
        if self.device.type == "cpu":
            message = "Numba is missing: mazes are drawn a hundred times slower"
            warnings.warn(message, stacklevel=2)
        else:
            # With slabs the walk through the grid would compile for minutes as one kernel.
            fusion = 64 if self._fixed[1].has_slabs else 1000
            self._find_columns = _compile(self._find_columns, fusion)
            self._fill = _compile(self._fill, 1000)

    @torch.no_grad()
    def draw(
        self, scene: Scene, rows: Tensor | None = None, out: Tensor | None = None
    ) -> Tensor:
        """(N, 3, h, w) uint8, or (R, 3, h, w) of the frames that `rows` (R,) int64 lists.

        Written into `out` where it is given.
        """
        shape = (len(scene.level if rows is None else rows), *self.shape)
        if out is not None and (tuple(out.shape) != shape or out.dtype != torch.uint8):
            raise ValueError(
                f"out is {out.dtype} of shape {tuple(out.shape)}; wanted is uint8 of {shape}"
            )
        if self._numba:
            from episodic_curiosity.worlds.maze.render_numba import render_into

            out = torch.empty(shape, dtype=torch.uint8) if out is None else out
            render_into(*self._fixed, self._camera, scene, out, rows)
            return out
        if rows is not None:
            scene = Scene(*(field[rows] for field in scene))
        frames = self._draw_with_torch(scene)
        return frames if out is None else out.copy_(frames)

    def _draw_with_torch(self, scene: Scene) -> Tensor:
        count = len(scene.level)
        self._piece = self._piece or count
        if self.device.type == "cpu" or count == self._piece:
            fixed = (*self._fixed, self._camera_tensors)
            columns = render_torch.name_columns(self._find_columns(*fixed, scene))
            return self._fill(*fixed, scene, columns)
        frames = torch.empty((count, *self.shape), dtype=torch.uint8, device=self.device)
        for first in range(0, count, self._piece):
            # The last piece is filled up with the last frame.
            rows = torch.arange(first, first + self._piece, device=self.device)
            piece = Scene(*(field[rows.clamp(max=count - 1)] for field in scene))
            frames[first : first + self._piece] = self._draw_with_torch(piece)[: count - first]
        return frames


def _compile(function: Callable[..., Any], fusion: int) -> Callable[..., Any]:
    """Compiles a copy with a code object of its own.

    torch.compile counts recompilations per code object, and a process may draw many tasks.
    """
    copy = FunctionType(function.__code__.replace(), function.__globals__)
    # Long chains of small operations are worth one kernel; the indices are clamped already.
    options: dict[str, Any] = {"max_fusion_size": fusion, "assert_indirect_indexing": False}
    return torch.compile(copy, fullgraph=True, dynamic=False, options=options)
