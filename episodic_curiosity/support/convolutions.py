"""Convolutions in a form that is fast on GPUs.

Shapes: B frames of h x w pixels.
"""

from torch import Tensor, nn
from torch.nn.functional import conv2d, linear, pad

CHANNEL_MULTIPLE = 8  # required by fast kernels
TINY = 8  # pixels on a side that are not halved further


def tiny_strides(size: tuple[int, ...], num_layers: int) -> list[int]:
    """Strides of 3 x 3 convolutions with a padding of 1, for frames of any (height, width).

    A layer halves the frame only while its shorter side is over 8 pixels: three layers leave
    7 x 7 of 7 x 7, and 5 x 5 of 35 x 35.
    """
    side, strides = min(size), []
    for _ in range(num_layers):
        strides.append(2 if side > TINY else 1)
        side = -(-side // strides[-1])
    return strides


class Unpadded(nn.Conv2d):
    """A convolution with stride 1 and no padding.

    On a CPU, where a kernel covers the frame, it is computed as a linear layer: half the time.
    """

    def __init__(self, channels_in: int, channels_out: int, kernel: int) -> None:
        super().__init__(channels_in, channels_out, kernel)

    def forward(self, frames: Tensor) -> Tensor:
        """(B, channels_out, h - kernel + 1, w - kernel + 1)."""
        if not frames.is_cpu or frames.shape[2:] != self.weight.shape[2:]:
            return super().forward(frames)
        # Channels last, as both are stored.
        weight, values = (each.permute(0, 2, 3, 1).flatten(1) for each in (self.weight, frames))
        return linear(values, weight, self.bias)[:, :, None, None]


class Halving(nn.Conv2d):
    """A convolution with an odd kernel size and stride 2, which halves the size of frames.

    On a GPU it is computed over blocks of 2 x 2 pixels: the same sums over four times as many
    channels. There are no fast kernels for three channels, nor for gradients through strides.
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
        """Same as `forward`, over blocks."""
        count, channels, height, width = frames.shape
        padding = self.kernel_size[0] // 2
        side = padding + 1  # of a kernel in blocks; its last row and column are half padding
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
