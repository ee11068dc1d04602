"""Resizes frames by area averaging: each new pixel is the mean of the area it covers.

Shapes: n frames of h x w pixels, resized to H x W.
"""

import torch
from torch import Tensor


class AreaResize:
    """Resizes (n, 3, h, w) bytes to (n, 3, H, W)."""

    def __init__(
        self, old: tuple[int, int], new: tuple[int, int], device: torch.device
    ) -> None:
        self._rows, self._columns = (
            _shares(*sides).to(device) for sides in zip(old, new, strict=True)
        )  # (H, h), (W, w)

    def __call__(self, frames: Tensor) -> Tensor:
        resized = self._rows @ frames.to(torch.float32) @ self._columns.T
        return (resized + 0.5).to(torch.uint8)  # rounded


def _shares(old: int, new: int) -> Tensor:
    """The weight of each old pixel in each new pixel, (new, old)."""
    edges = torch.arange(old + 1, dtype=torch.float64)
    begin = torch.arange(new, dtype=torch.float64)[:, None] * old / new
    end = begin + old / new
    covered = torch.minimum(end, edges[1:]) - torch.maximum(begin, edges[:-1])
    return (covered.clamp(min=0.0) * new / old).to(torch.float32)
