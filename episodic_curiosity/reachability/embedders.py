"""The paper's embedder E: one observation in, one embedding out.

Shapes: B observations, D embedding. Frames are (B, C, H, W), vectors (B, F).
"""

from collections.abc import Callable
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

from episodic_curiosity.support.convolutions import Halving, tiny_strides
from episodic_curiosity.support.pixels import BLOCK, to_blocks

SMALL_PADDING = 2  # pixels around a frame for the small embedder
SMALL_SIDE = 16  # of the frames it is for; it leaves one place of 16 x 16 pixels


def resnet18(view_shape: tuple[int, ...], embedding_size: int) -> nn.Module:
    """The paper's embedder: a pre-activation ResNet-18 for frames of any size."""
    channels = view_shape[0]
    stem = nn.Sequential(
        Halving(channels, 64, 7, bias=False),
        nn.BatchNorm2d(64),
        nn.ReLU(inplace=True),
        nn.MaxPool2d(3, stride=2, padding=1),
    )
    blocks = [
        ResidualBlock(64, 64, stride=1),
        ResidualBlock(64, 64, stride=1),
        ResidualBlock(64, 128, stride=2),
        ResidualBlock(128, 128, stride=1),
        ResidualBlock(128, 256, stride=2),
        ResidualBlock(256, 256, stride=1),
        ResidualBlock(256, 512, stride=2),
        ResidualBlock(512, 512, stride=1),
    ]
    head = [
        nn.BatchNorm2d(512),
        nn.ReLU(inplace=True),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(512, embedding_size),
    ]
    return nn.Sequential(stem, *blocks, *head)


class ResidualBlock(nn.Module):
    """Two 3x3 convolutions, each after batch normalisation and ReLU, with a shortcut."""

    def __init__(self, channels_in: int, channels_out: int, *, stride: int) -> None:
        super().__init__()
        self.norm1 = nn.BatchNorm2d(channels_in)
        self.conv1 = nn.Conv2d(channels_in, channels_out, 3, stride, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(channels_out)
        self.conv2 = nn.Conv2d(channels_out, channels_out, 3, padding=1, bias=False)
        self.shortcut: nn.Conv2d | None = None
        if stride != 1 or channels_in != channels_out:
            self.shortcut = nn.Conv2d(channels_in, channels_out, 1, stride, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        active = functional.relu(self.norm1(x), inplace=True)
        residual: Tensor = self.conv1(active)
        residual = self.conv2(functional.relu(self.norm2(residual), inplace=True))
        shortcut: Tensor = x if self.shortcut is None else self.shortcut(active)
        return residual + shortcut


def small(view_shape: tuple[int, ...], embedding_size: int) -> nn.Module:
    """Three convolutions, about 50 times less work than ResNet-18.

    The first, kernel 8 and stride 4, takes 2 x 2 blocks of `to_blocks(frames, SMALL_PADDING)`.

    Without the normalisation, unshared branches with a dot product stay at chance: both
    embeddings start nearly constant, so neither gets a useful gradient.
    """
    convolutions = nn.Sequential(
        *_convolution(view_shape[0] * BLOCK**2, 32, kernel=2, stride=1, padding=0),
        *_convolution(32, 64, kernel=4, stride=2, padding=1),
        *_convolution(64, 64, kernel=3, stride=2, padding=1),
        nn.Flatten(),
    ).eval()
    blocks = to_blocks(torch.zeros(1, *view_shape), SMALL_PADDING)
    num_features = convolutions(blocks).shape[1]
    return nn.Sequential(*convolutions, nn.Linear(num_features, embedding_size))


def tiny(view_shape: tuple[int, ...], embedding_size: int) -> nn.Module:
    """The small embedder's channels with 3 x 3 kernels, for frames of any size.

    Frames of up to 8 x 8, such as MiniGrid's 7 x 7 cells, keep their size to the last layer.
    """
    channels = (view_shape[0], 32, 64, 64)
    layers: list[nn.Module] = []
    for number, stride in enumerate(tiny_strides(view_shape[1:], 3)):
        both = channels[number], channels[number + 1]
        layers += _convolution(*both, kernel=3, stride=stride, padding=1)
    convolutions = nn.Sequential(*layers, nn.Flatten()).eval()
    num_features = convolutions(torch.zeros(1, *view_shape)).shape[1]
    return nn.Sequential(*convolutions, nn.Linear(num_features, embedding_size))


def _convolution(
    channels_in: int, channels_out: int, *, kernel: int, stride: int, padding: int
) -> list[nn.Module]:
    return [
        nn.Conv2d(channels_in, channels_out, kernel, stride, padding, bias=False),
        nn.BatchNorm2d(channels_out),
        nn.ReLU(inplace=True),
    ]


def mlp(view_shape: tuple[int, ...], embedding_size: int) -> nn.Module:
    """Two hidden layers, for vector observations."""
    return nn.Sequential(
        nn.Linear(view_shape[0], 512),
        nn.BatchNorm1d(512),
        nn.ReLU(inplace=True),
        nn.Linear(512, 512),
        nn.BatchNorm1d(512),
        nn.ReLU(inplace=True),
        nn.Linear(512, embedding_size),
    )


EMBEDDERS: dict[str, Callable[[tuple[int, ...], int], nn.Module]] = {
    "resnet18": resnet18,
    "small": small,
    "tiny": tiny,
    "mlp": mlp,
}
# The shortest side of frames that an embedder accepts.
SHORTEST_SIDE = {"resnet18": 8, "small": 8, "tiny": 1}


def usual_embedder(view_shape: tuple[int, ...]) -> Literal["small", "tiny", "mlp"]:
    """The default embedder of a view."""
    if len(view_shape) == 1:
        return "mlp"
    return "small" if min(view_shape[1:]) >= SMALL_SIDE else "tiny"
