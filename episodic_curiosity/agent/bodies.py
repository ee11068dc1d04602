"""The layers between the agent's observations and its heads.

A CNN is in two parts: its convolutions, and the layer that joins what they return.
"""

from typing import TypeVar

import torch
from torch import nn

from episodic_curiosity.support.convolutions import Unpadded, tiny_strides
from episodic_curiosity.support.pixels import BLOCK, to_blocks

Layer = TypeVar("Layer", nn.Linear, nn.Conv2d)

NUM_FEATURES = 512  # of a frame


def nature_convolutions(observation_shape: tuple[int, ...]) -> tuple[nn.Sequential, int]:
    """The Nature CNN over blocks: the first layer, kernel 8 and stride 4, is 2 x 2 blocks."""
    gain = nn.init.calculate_gain("relu")
    channels = observation_shape[0] * BLOCK**2
    convolutions = nn.Sequential(
        orthogonal(nn.Conv2d(channels, 32, 2), gain),
        nn.ReLU(inplace=True),
        orthogonal(nn.Conv2d(32, 64, 4, stride=2), gain),
        nn.ReLU(inplace=True),
        orthogonal(Unpadded(64, 64, 3), gain),
        nn.ReLU(inplace=True),
        nn.Flatten(),
    )
    return convolutions, convolutions(to_blocks(torch.zeros(1, *observation_shape))).shape[1]


def tiny_convolutions(observation_shape: tuple[int, ...]) -> tuple[nn.Sequential, int]:
    """The Nature CNN's channels with 3 x 3 kernels, and strides that leave small frames."""
    gain = nn.init.calculate_gain("relu")
    channels = (observation_shape[0], 32, 64, 64)
    layers: list[nn.Module] = []
    for number, stride in enumerate(tiny_strides(observation_shape[1:], 3)):
        convolution = nn.Conv2d(channels[number], channels[number + 1], 3, stride, padding=1)
        layers += [orthogonal(convolution, gain), nn.ReLU(inplace=True)]
    convolutions = nn.Sequential(*layers, nn.Flatten())
    return convolutions, convolutions(torch.zeros(1, *observation_shape)).shape[1]


def joining_layer(num_inputs: int) -> nn.Sequential:
    """The last layer of a CNN, with NUM_FEATURES outputs."""
    last = nn.Linear(num_inputs, NUM_FEATURES)
    return nn.Sequential(
        orthogonal(last, nn.init.calculate_gain("relu")), nn.ReLU(inplace=True)
    )


def mlp(num_inputs: int, gain: float) -> tuple[nn.Module, int]:
    """Two layers of 64, for vectors."""
    first = orthogonal(nn.Linear(num_inputs, 64), gain)
    second = orthogonal(nn.Linear(64, 64), gain)
    return nn.Sequential(first, nn.Tanh(), second, nn.Tanh()), 64


def orthogonal(layer: Layer, gain: float) -> Layer:
    """Initialises a layer: orthogonal weights, biases of zero."""
    nn.init.orthogonal_(layer.weight, gain)
    assert layer.bias is not None
    nn.init.zeros_(layer.bias)
    return layer
