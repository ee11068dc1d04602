"""Converts frames to network inputs: bytes to floats, pixels to blocks of pixels.

Shapes: B frames of C channels and h x w pixels.
"""

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from episodic_curiosity.support.compiling import fused

BLOCK = 4  # pixels on a side
CPU_HAS_BFLOAT16 = bool(torch.cpu.get_capabilities().get("avx512_bf16", False))


def to_input(view: Tensor, dtype: torch.dtype = torch.float32) -> Tensor:
    """Converts bytes to floats in [0, 1]; floats keep their values."""
    if view.dim() == 4:
        # Before the conversion to floats: on a CPU 1.6 times faster than after it.
        view = view.contiguous(memory_format=torch.channels_last)
    inputs = view.to(dtype)
    return inputs.div_(255.0) if view.dtype == torch.uint8 else inputs


def to_blocks(frames: Tensor, padding: int = 0) -> Tensor:
    """Turns each block of 4 x 4 pixels into one: (B, 16 * C, h // 4, w // 4), channels last.

    A convolution with kernel 8 and stride 4 is one with kernel 2 over blocks: the same sums,
    but over 48 channels instead of 3, for which kernels are faster.
    """
    if padding:
        frames = functional.pad(frames, (padding,) * 4)
    count, channels, height, width = frames.shape
    rows, columns = height // BLOCK, width // BLOCK
    if frames.is_cpu and frames.dtype == torch.uint8 and columns:
        # The four bytes of a block's row as one int32: three times as fast.
        frames = frames[..., : columns * BLOCK]
        words = frames.contiguous().view(torch.int32)[:, :, : rows * BLOCK]
        words = words.reshape(count, channels, rows, BLOCK, columns).permute(0, 2, 4, 1, 3)
        blocks = words.contiguous().view(torch.uint8)  # (B, h / 4, w / 4, C, 16)
    else:
        whole = frames[:, :, : rows * BLOCK, : columns * BLOCK]
        blocks = whole.reshape(count, channels, rows, BLOCK, columns, BLOCK)
        blocks = blocks.permute(0, 2, 4, 1, 3, 5)  # (B, h / 4, w / 4, C, 4, 4)
    return blocks.reshape(count, rows, columns, -1).permute(0, 3, 1, 2)


def separate_blocks(frames: Tensor, padding: int = 0) -> Tensor:
    """As `to_blocks`, with channels last in the shape, too: (B, h // 4, w // 4, C, 16).

    Selecting rows of a permuted tensor would reorder it. Five dimensions are never a frame.
    """
    blocks: Tensor = to_blocks(frames, padding).permute(0, 2, 3, 1)
    return blocks.reshape(*blocks.shape[:3], -1, BLOCK**2)


def separate_blocks_to_input(blocks: Tensor, dtype: torch.dtype) -> Tensor:
    """Converts the blocks of `separate_blocks` to what `blocks_to_input` returns."""
    return to_input(blocks.flatten(3).permute(0, 3, 1, 2), dtype)


def blocks_to_input(frames: Tensor, dtype: torch.dtype, padding: int = 0) -> Tensor:
    """Converts frames to blocks of floats; on a GPU by one compiled kernel."""
    return _blocks_to_input(frames, dtype, padding)


@fused
def _blocks_to_input(frames: Tensor, dtype: torch.dtype, padding: int) -> Tensor:
    return to_input(to_blocks(frames, padding), dtype)


def computing_in(device: torch.device) -> torch.dtype:
    """The fastest dtype for convolutions on the device."""
    fast = device.type == "cuda" or (device.type == "cpu" and CPU_HAS_BFLOAT16)
    return torch.bfloat16 if fast else torch.float32


def autocast(device: torch.device, dtype: torch.dtype) -> AbstractContextManager[Any]:
    """Autocasts to the dtype without a weight cache; does nothing for float32."""
    if dtype == torch.float32:
        return nullcontext()
    # Each weight is used once: caching its bfloat16 copy would only disturb a CUDA graph.
    return torch.autocast(device.type, dtype, cache_enabled=False)
