"""Random numbers that depend on (seed, counters) alone, not on who else draws.

One environment draws the same numbers by itself, inside a batch of thousands and inside a
replayed CUDA graph, and there is no generator whose state a checkpoint could forget.
"""

import operator
from typing import overload

import torch
from torch import Tensor

MASK_32 = 0xFFFFFFFF


@overload
def mix(bits: Tensor) -> Tensor: ...
@overload
def mix(bits: int) -> int: ...
@overload
def mix(bits: Tensor | int) -> Tensor | int: ...
def mix(bits: Tensor | int) -> Tensor | int:
    """Scrambles 32-bit integers held as int or int64 (an xor-shift-multiply hash)."""
    bits = ((bits ^ (bits >> 16)) * 0x7FEB352D) & MASK_32
    bits = ((bits ^ (bits >> 15)) * 0x846CA68B) & MASK_32
    return bits ^ (bits >> 16)


def random_bits(*counters: Tensor | int) -> Tensor:
    """32 random bits (as int64) for each element of the broadcast counters.

    At least one counter is a tensor; the order of the counters matters.
    """
    # Numbers stay Python's until they meet a tensor: a dozen small operations less for each.
    bits: Tensor | int | None = None
    for counter in counters:
        if bits is None:
            bits = mix((counter & MASK_32) + 0x9E3779B9 & MASK_32)
        else:
            bits = more_bits(bits, counter)
    assert isinstance(bits, Tensor), "random_bits needs at least one tensor"
    return bits


@overload
def more_bits(bits: Tensor, counter: Tensor | int) -> Tensor: ...
@overload
def more_bits(bits: Tensor | int, counter: Tensor | int) -> Tensor | int: ...
def more_bits(bits: Tensor | int, counter: Tensor | int) -> Tensor | int:
    """random_bits(*counters, counter), where the bits are random_bits(*counters)."""
    return mix(bits ^ mix(counter & MASK_32))


def seed_words(seed: int) -> tuple[int, int]:
    """A seed of up to 63 bits as two counters."""
    if isinstance(seed, bool) or not 0 <= operator.index(seed) < 1 << 63:
        raise ValueError(f"seed must be a whole number from 0 to 2**63 - 1, got {seed!r}")
    return seed & MASK_32, seed >> 32


def random_below(limit: Tensor | int, *counters: Tensor | int) -> Tensor:
    """A random integer in [0, limit), for limits below 2**31."""
    return bits_below(limit, random_bits(*counters))


def random_unit(*counters: Tensor | int) -> Tensor:
    """A random float32 in [0, 1)."""
    return bits_to_unit(random_bits(*counters))


def bits_below(limit: Tensor | int, bits: Tensor) -> Tensor:
    """Random bits as an integer in [0, limit)."""
    return (bits * limit) >> 32


def bits_to_unit(bits: Tensor) -> Tensor:
    """Random bits as a float32 in [0, 1)."""
    # The top 24 bits are what a float32 can hold: rounding never reaches 1.
    return (bits >> 8).to(torch.float32) * 2.0**-24
