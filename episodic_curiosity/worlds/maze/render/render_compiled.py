"""Rendering on a GPU: the functions of render_torch, compiled for a few batch sizes.

Shapes: N frames, h x w pixels. Batches of another size are padded to a compiled size or drawn
in pieces.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import torch
from torch import Tensor

from episodic_curiosity.support.compiling import compile_varying, compiled_size
from episodic_curiosity.worlds.lab.elements import Theme
from episodic_curiosity.worlds.maze.render import render_torch, walk_torch
from episodic_curiosity.worlds.maze.render.level_map import LevelMap
from episodic_curiosity.worlds.maze.render.render_torch import Columns, Passes
from episodic_curiosity.worlds.maze.render.scene import Scene
from episodic_curiosity.worlds.maze.render.textures import Textures
from episodic_curiosity.worlds.maze.render.walk_torch import Rays, TorchCamera, Walk

MOST_PIECES = 16
MOST_PIECES_OF_A_STEP = 4  # more would slow down every step


class CompiledRenderer:
    """Compiles at the first draws, once per process, theme and size; levels may differ."""

    def __init__(
        self,
        theme: Theme,
        level_map: LevelMap,
        pictures: Textures,
        camera: TorchCamera,
        size: tuple[int, int],
        *,
        num_frames: int,
        before_fill: Callable[[], None] | None = None,
        backend: str = "inductor",
    ) -> None:
        """`size` is (h, w); `num_frames` is the most frequent N.

        `before_fill` is called before the last pass, which takes longest to compile.
        """
        self._before_fill = before_fill
        self._inputs = (theme, level_map, pictures, camera)
        self._size = size
        self._what = (theme, level_map.has_slabs, (*level_map.code.shape[1:], *size), backend)
        compiled_size(self._what, num_frames, most_pieces=MOST_PIECES_OF_A_STEP)

    def draw(self, scene: Scene) -> Tensor:
        """Draws frames, (N, 3, h, w) uint8."""
        count, device = len(scene.level), scene.level.device
        piece = 1
        if count:
            piece = compiled_size(self._what, count, most_pieces=MOST_PIECES)
        if piece == count:
            return self._draw_at_once(scene)
        frames = torch.empty(count, 3, *self._size, dtype=torch.uint8, device=device)
        for first in range(0, count, piece):
            rows = torch.arange(first, first + piece, device=device)
            rows = rows.clamp(max=count - 1)  # padding
            drawn = self._draw_at_once(Scene(*(field[rows] for field in scene)))
            frames[first : first + piece] = drawn[: count - first]
        return frames

    def _draw_at_once(self, scene: Scene) -> Tensor:
        passes = compiled_passes(*self._what, num_frames=len(scene.level))
        if self._before_fill is not None:
            passes = passes._replace(fill=_after(self._before_fill, passes.fill))
        return render_torch.render(*self._inputs, scene, passes=passes)


def _after(wait: Callable[[], None], part: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def wait_first(*arguments: Any) -> Tensor:
        wait()
        return part(*arguments)

    return wait_first


@cache
def compiled_passes(
    theme: Theme,  # noqa: ARG001 - part of the cache key:
    has_slabs: bool,
    shape: tuple[int, ...],  # noqa: ARG001 - of the map and the frame
    backend: str = "inductor",
    *,
    num_frames: int,  # noqa: ARG001 - torch stops recompiling after 8 variants
) -> Passes:
    """Returns the rendering passes, compiled at their first calls."""

    def compiled(part: Callable[..., Any]) -> Callable[..., Any]:
        fixed = (Theme, Textures, TorchCamera, Scene, Rays, Walk, Columns)  # all but the levels
        return compile_varying(part, backend=backend, fixed=fixed)

    return Passes(
        begin=compiled(render_torch.begin),
        walk_on=compiled(walk_torch.walk_on),
        find_columns=compiled(render_torch.find_columns),
        fill=compiled(render_torch.fill),
        # The complete walk as one kernel would compile for a minute.
        paces=2 if has_slabs else 6,
    )
