"""Draws scenes, with the back end that suits the device.

Shapes: N frames, R of them to draw, h x w pixels.
"""

import warnings
from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor

from episodic_curiosity.compiling import compile_varying, compiled_size
from episodic_curiosity.worlds.maze import render_torch, walk_torch
from episodic_curiosity.worlds.maze.camera import make_camera
from episodic_curiosity.worlds.maze.level_map import make_level_map
from episodic_curiosity.worlds.maze.render_torch import Columns, Parts
from episodic_curiosity.worlds.maze.scene import Scene, Stage, Theme
from episodic_curiosity.worlds.maze.textures import Textures, textures
from episodic_curiosity.worlds.maze.walk_torch import Camera, Rays, Walk

MOST_PIECES = 16
# Sizes of pieces that pictures are drawn in, by what is compiled for them.
_PIECES: dict[Parts, list[int]] = {}


class Renderer:
    """Pictures of one stage in one size: Numba on the CPU, torch.compile on a GPU.

    On a GPU the first draw compiles, once in a process for all levels. There every draw is of
    the same number of frames: more are drawn in pieces, fewer are filled up.
    """

    def __init__(
        self,
        theme: Theme,
        stage: Stage,
        height: int,
        width: int,
        device: torch.device | str,
        num_frames: int = 64,
    ) -> None:
        """`num_frames` are how many will mostly be drawn at once."""
        self.device = torch.device(device)
        self.shape = (3, height, width)
        stage = Stage(*(part.to(self.device) for part in stage))
        self._camera = make_camera(height, width)
        self._fixed = (theme, make_level_map(theme, stage), textures().to(self.device))
        self._numba = self.device.type == "cpu" and find_spec("numba") is not None
        if self._numba:
            return
        self._camera_tensors = walk_torch.make_camera(height, width, self.device)
        self._parts: Parts | None = None
        if self.device.type == "cpu":
            message = "Numba is missing: mazes are drawn a hundred times slower"
            warnings.warn(message, stacklevel=2)
        else:
            level_map = self._fixed[1]
            shape = (*level_map.code.shape[1:], height, width)
            self._parts = compiled_parts(theme, level_map.has_slabs, shape)
            sizes = _PIECES.setdefault(self._parts, [])
            self._piece = compiled_size(sizes, num_frames, most_pieces=MOST_PIECES)

    def fill_after(self, wait: Callable[[], None]) -> None:
        """Has every picture wait before its last part, the longest to compile."""
        assert self._parts is not None, "only pictures of a GPU have parts"
        fill = self._parts.fill

        def wait_and_fill(*arguments: Any) -> Tensor:
            wait()
            return fill(*arguments)

        self._parts = self._parts._replace(fill=wait_and_fill)

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
        if self._parts is None or len(scene.level) == self._piece:
            frames = self._draw_at_once(scene)
            return frames if out is None else out.copy_(frames)
        if out is None:
            out = torch.empty(shape, dtype=torch.uint8, device=self.device)
        return draw_in_pieces(self._draw_at_once, scene, self._piece, out)

    def _draw_at_once(self, scene: Scene) -> Tensor:
        return render_torch.render(*self._fixed, self._camera_tensors, scene, parts=self._parts)


def draw_in_pieces(
    draw: Callable[[Scene], Tensor], scene: Scene, piece: int, out: Tensor
) -> Tensor:
    """Draws any number of frames, `piece` at a time; the last piece is filled up."""
    count = len(out)
    for first in range(0, count, piece):
        rows = torch.arange(first, first + piece, device=out.device).clamp(max=count - 1)
        frames = draw(Scene(*(field[rows] for field in scene)))
        out[first : first + piece] = frames[: count - first]
    return out


@cache
def compiled_parts(
    theme: Theme,  # noqa: ARG001 - each its own
    has_slabs: bool,
    shape: tuple[int, ...],  # noqa: ARG001 - and this, of the map and the picture
    backend: str = "inductor",
) -> Parts:
    """The parts of a picture, compiled at their first calls: once for all worlds of a theme."""

    def compiled(part: Callable[..., Any]) -> Callable[..., Any]:
        fixed = (Theme, Textures, Camera, Scene, Rays, Walk, Columns)  # all but the levels
        return compile_varying(part, backend=backend, fixed=fixed)

    return Parts(
        begin=compiled(render_torch.begin),
        walk_on=compiled(walk_torch.walk_on),
        find_columns=compiled(render_torch.find_columns),
        fill=compiled(render_torch.fill),
        # A whole walk as one kernel would compile for a minute.
        paces=2 if has_slabs else 6,
    )
