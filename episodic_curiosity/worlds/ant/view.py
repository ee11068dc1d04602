"""The ant's head camera: a floor of random tiles under a sky, rendered without OpenGL.

The camera's pose determines where a pixel's ray meets the floor, and the floor's seed the tile
there, so any view can be redrawn from the two. The ant's legs are not drawn.
Shapes: N frames, h x w pixels.
"""

import warnings
from collections.abc import Callable
from functools import cache
from importlib.util import find_spec

import torch
from torch import Tensor

from episodic_curiosity.support.compiling import compile_varying
from episodic_curiosity.worlds.ant import view_torch
from episodic_curiosity.worlds.ant.scene import Scene
from episodic_curiosity.worlds.ant.textures import make_texels
from episodic_curiosity.worlds.ant.view_torch import Lens


class HeadCamera:
    """Renders views of one size: with Numba on a CPU, with torch.compile on a GPU."""

    def __init__(self, size: tuple[int, int], device: torch.device) -> None:
        self._lens = view_torch.make_lens(*size, device)
        self._texels = make_texels().to(device)
        self._render: Callable[[Lens, Tensor, Scene], Tensor] = view_torch.render
        if device.type != "cpu":
            self._render = _compiled(size)
        elif find_spec("numba") is not None:
            from episodic_curiosity.worlds.ant import view_numba

            self._render = view_numba.render
        else:
            message = "Numba is missing: the ant's views render several times slower"
            warnings.warn(message, stacklevel=2)

    @torch.no_grad()
    def draw(self, scene: Scene) -> Tensor:
        """(N, 3, h, w) uint8, for any N."""
        return self._render(self._lens, self._texels, scene)


@cache
def _compiled(_: tuple[int, int]) -> Callable[..., Tensor]:
    """One function per size, shared by all worlds, for any number of frames above 1."""
    return compile_varying(view_torch.render, fixed=(Lens,))
