"""Frames as networks take them."""

import pytest
import torch
from torch.nn import functional

from episodic_curiosity.support.pixels import to_blocks, to_input


def test_bytes_as_bfloat16_are_what_rounding_the_floats_would_give():
    frames = torch.arange(256, dtype=torch.uint8).view(1, 1, 16, 16)
    assert torch.equal(to_input(frames, torch.bfloat16), to_input(frames).bfloat16())


def test_a_block_is_a_pixel_of_many_channels():
    frame = torch.arange(2 * 9 * 8).view(1, 2, 9, 8)  # the ninth row fills no block
    blocks = to_blocks(frame)
    assert blocks.shape == (1, 32, 2, 2)
    assert blocks[0, :16, 0, 1].tolist() == frame[0, 0, :4, 4:].flatten().tolist()
    assert blocks[0, 16:, 1, 0].tolist() == frame[0, 1, 4:8, :4].flatten().tolist()


@pytest.mark.parametrize("width", [20, 22])
def test_bytes_are_blocked_like_other_numbers(width):
    frames = torch.randint(0, 256, (3, 3, 13, width), dtype=torch.uint8)
    assert torch.equal(to_blocks(frames), to_blocks(frames.long()).to(torch.uint8))
    assert to_blocks(frames).is_contiguous(memory_format=torch.channels_last)


@pytest.mark.parametrize(("height", "width", "padding"), [(42, 46, 0), (44, 37, 2)])
def test_a_convolution_of_blocks_is_one_of_pixels(height, width, padding):
    frames = torch.rand(3, 3, height, width)
    weight = torch.randn(5, 3, 8, 8)
    expected = functional.conv2d(frames, weight, stride=4, padding=padding)
    by_block = weight.view(5, 3, 2, 4, 2, 4).permute(0, 1, 3, 5, 2, 4).reshape(5, 48, 2, 2)
    found = functional.conv2d(to_blocks(frames, padding), by_block)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)
