"""What the ant's head camera sees: a floor of random tiles under a sky, by geometry alone.

Where a pixel's ray meets the floor follows from the camera's pose, the tile there from the
floor's seed: any view can be drawn again from the two, and no OpenGL is needed. The ant's
own legs are left out. Shapes: N frames, h x w pixels.
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
from episodic_curiosity.worlds.ant.texels import make_texels
from episodic_curiosity.worlds.ant.view_torch import Lens


class HeadCamera:
    """Views of one size: by Numba on a CPU, by torch.compile on a GPU."""

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
            message = "Numba is missing: the ant's views are drawn several times slower"
            warnings.warn(message, stacklevel=2)

    @torch.no_grad()
    def draw(self, scene: Scene) -> Tensor:
        """(N, 3, h, w) uint8, for any N."""
        return self._render(self._lens, self._texels, scene)


@cache
def _compiled(_: tuple[int, int]) -> Callable[..., Tensor]:
    """Once in a process for each size, for all worlds and any number of frames but one."""
    return compile_varying(view_torch.render, fixed=(Lens,))
