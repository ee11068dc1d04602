"""Convolutions in a form that GPUs are fast with.

Shapes: B frames of h x w pixels.
"""

from torch import Tensor, nn
from torch.nn.functional import conv2d, pad

CHANNEL_MULTIPLE = 8  # what fast kernels want


class Halving(nn.Conv2d):
    """A convolution of an odd number of pixels, 2 apart: frames of half the size.

    On a GPU as one over blocks of 2 x 2 pixels, which is the same sums over four times as many
    channels: there are no fast kernels for three channels, nor for gradients through strides.
    """

    def __init__(
        self, channels_in: int, channels_out: int, kernel: int, *, bias: bool = True
    ) -> None:
        if kernel % 2 == 0:
            raise ValueError(f"kernel must be an odd number of pixels, got {kernel}")
        padding = kernel // 2
        super().__init__(channels_in, channels_out, kernel, 2, padding, bias=bias)

    def forward(self, frames: Tensor) -> Tensor:
        """(B, channels_out, (h + 1) // 2, (w + 1) // 2)."""
        return self.over_blocks(frames) if frames.is_cuda else super().forward(frames)

    def over_blocks(self, frames: Tensor) -> Tensor:
        """The same as `forward`, by blocks."""
        count, channels, height, width = frames.shape
        padding = self.kernel_size[0] // 2
        side = padding + 1  # of a kernel in blocks, whose last row and column count half
        rows, columns = (height + 1) // 2 + padding, (width + 1) // 2 + padding
        below, right = 2 * rows - padding - height, 2 * columns - padding - width
        blocks = pad(frames, (padding, right, padding, below))
        blocks = blocks.reshape(count, channels, rows, 2, columns, 2).permute(0, 2, 4, 3, 5, 1)
        blocks = blocks.reshape(count, rows, columns, 4 * channels)
        weight = pad(self.weight, (0, 1, 0, 1)).reshape(-1, channels, side, 2, side, 2)
        weight = weight.permute(0, 3, 5, 1, 2, 4).reshape(-1, 4 * channels, side, side)
        missing = -4 * channels % CHANNEL_MULTIPLE
        blocks = pad(blocks, (0, missing)).permute(0, 3, 1, 2)
        return conv2d(blocks, pad(weight, (0, 0, 0, 0, 0, missing)), self.bias)
