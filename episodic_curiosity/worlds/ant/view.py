"""What the ant's head camera sees: a floor of random tiles under a sky, by geometry alone.

Where a pixel's ray meets the floor follows from the camera's pose, the tile there from the
floor's seed: any view can be drawn again from the two, and no OpenGL is needed. The ant's
own legs are left out. Shapes: N frames, h x w pixels.
"""

import warnings
from importlib.util import find_spec
from types import FunctionType

import torch
from torch import Tensor

from episodic_curiosity.worlds.ant import view_torch
from episodic_curiosity.worlds.ant.scene import Scene
from episodic_curiosity.worlds.ant.texels import make_texels


class HeadCamera:
    """Views of one size: by Numba on a CPU, by torch.compile on a GPU.

    On a GPU every draw is of `num_frames` frames, so that nothing compiles twice; more are
    drawn in pieces, fewer are filled up.
    """

    def __init__(self, size: tuple[int, int], num_frames: int, device: torch.device) -> None:
        self.shape = (3, *size)
        self._num_frames = num_frames
        self._device = device
        self._lens = view_torch.make_lens(*size, device)
        self._texels = make_texels().to(device)
        self._fixed_size = device.type != "cpu"
        self._render = view_torch.render
        if self._fixed_size:
            # torch.compile counts recompilations per code object: every camera has its own.
            own = FunctionType(view_torch.render.__code__.replace(), view_torch.__dict__)
            self._render = torch.compile(own, fullgraph=True, dynamic=False)
        elif find_spec("numba") is not None:
            from episodic_curiosity.worlds.ant import view_numba

            self._render = view_numba.render
        else:
            message = "Numba is missing: the ant's views are drawn several times slower"
            warnings.warn(message, stacklevel=2)

    @torch.no_grad()
    def draw(self, scene: Scene) -> Tensor:
        """(N, 3, h, w) uint8, for any N."""
        count, piece = len(scene.floor), self._num_frames
        if not self._fixed_size or count == piece:
            return self._render(self._lens, self._texels, scene)
        frames = torch.empty((count, *self.shape), dtype=torch.uint8, device=self._device)
        for first in range(0, count, piece):
            rows = torch.arange(first, first + piece, device=self._device)
            part = Scene(*(field[rows.clamp(max=count - 1)] for field in scene))
            drawn = self._render(self._lens, self._texels, part)
            frames[first : first + piece] = drawn[: count - first]
        return frames
