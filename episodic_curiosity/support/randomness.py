"""Random numbers that depend only on (seed, counters), not on other draws.

An environment draws the same numbers alone, in a batch of thousands and in a replayed CUDA
graph, and there is no generator state to save in checkpoints.
"""

from typing import overload

import torch
from torch import Tensor

from episodic_curiosity.support.checks import check_seed

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
    # Counters stay Python ints until they meet a tensor, which saves a dozen operations each.
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
    """random_bits(*counters, counter), given bits = random_bits(*counters)."""
    return mix(bits ^ mix(counter & MASK_32))


def later_seed(seed: int, offset: int) -> int:
    """The seed that many later; the first follows the last."""
    return (seed + offset) % 2**63


def seed_words(seed: int) -> tuple[int, int]:
    """Splits a seed of up to 63 bits into two counters."""
    seed = check_seed(seed)
    return seed & MASK_32, seed >> 32


def random_below(limit: Tensor | int, *counters: Tensor | int) -> Tensor:
    """A random integer in [0, limit), for limits below 2**31."""
    return bits_below(limit, random_bits(*counters))


def random_unit(*counters: Tensor | int) -> Tensor:
    """A random float32 in [0, 1)."""
    return bits_to_unit(random_bits(*counters))


def bits_below(limit: Tensor | int, bits: Tensor) -> Tensor:
    """Converts random bits to an integer in [0, limit)."""
    return (bits * limit) >> 32


def bits_to_unit(bits: Tensor) -> Tensor:
    """Converts random bits to a float32 in [0, 1)."""
    # A float32 holds the top 24 bits exactly: no rounding up to 1.
    return (bits >> 8).to(torch.float32) * 2.0**-24
