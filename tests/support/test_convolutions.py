"""Convolutions by blocks are the same ones."""

import pytest
import torch

from episodic_curiosity.support.convolutions import Halving, Unpadded, tiny_strides


@pytest.mark.parametrize("channels", [1, 3, 32])
@pytest.mark.parametrize("size", [(42, 42), (21, 6), (11, 11), (1, 2)])
@pytest.mark.parametrize("kernel", [3, 7])
def test_a_convolution_over_blocks_is_the_same_one(channels, size, kernel):
    """What it gives, and every gradient."""
    convolution = Halving(channels, 8, kernel, bias=kernel == 3).double()
    frames = torch.rand(3, channels, *size, dtype=torch.float64, requires_grad=True)
    results, gradients = [], []
    for work in (convolution, convolution.over_blocks):
        outputs = work(frames)
        results.append(outputs)
        inputs = (frames, *convolution.parameters())
        gradients.append(torch.autograd.grad(outputs.sin().sum(), inputs))
    assert results[0].shape == (3, 8, (size[0] + 1) // 2, (size[1] + 1) // 2)
    torch.testing.assert_close(results[1], results[0])
    torch.testing.assert_close(gradients[1], gradients[0])


@pytest.mark.parametrize("size", [(3, 3), (3, 4), (5, 3)])
def test_a_kernel_that_covers_a_frame_is_a_linear_layer(size):
    layer = Unpadded(5, 4, 3).to(memory_format=torch.channels_last)
    frames = torch.rand(6, 5, *size).to(memory_format=torch.channels_last).requires_grad_()
    inputs = (frames, *layer.parameters())
    found, expected = layer(frames), torch.conv2d(frames, layer.weight, layer.bias)
    torch.testing.assert_close(found, expected)
    for ours, theirs in zip(
        torch.autograd.grad(found.sin().sum(), inputs),
        torch.autograd.grad(expected.sin().sum(), inputs),
        strict=True,
    ):
        torch.testing.assert_close(ours, theirs)


@pytest.mark.parametrize(
    ("size", "strides"),
    [((7, 7), [1, 1, 1]), ((8, 99), [1, 1, 1]), ((9, 16), [2, 1, 1]), ((35, 35), [2, 2, 2])],
)
def test_frames_are_halved_down_to_eight_pixels(size, strides):
    assert tiny_strides(size, 3) == strides
