"""Random numbers that depend on (seed, counters) alone, not on who else draws.

One environment draws the same numbers by itself, inside a batch of thousands and inside a
replayed CUDA graph, and there is no generator whose state a checkpoint could forget.
"""

import operator

import torch
from torch import Tensor

MASK_32 = 0xFFFFFFFF


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
        word = counter & MASK_32
        bits = mix(word + 0x9E3779B9 & MASK_32) if bits is None else mix(bits ^ mix(word))
    assert isinstance(bits, Tensor), "random_bits needs at least one tensor"
    return bits


def seed_words(seed: int) -> tuple[int, int]:
    """A seed of up to 63 bits as two counters."""
    if isinstance(seed, bool) or not 0 <= operator.index(seed) < 1 << 63:
        raise ValueError(f"seed must be a whole number from 0 to 2**63 - 1, got {seed!r}")
    return seed & MASK_32, seed >> 32


def random_below(limit: Tensor | int, *counters: Tensor | int) -> Tensor:
    """A random integer in [0, limit), for limits below 2**31."""
    return (random_bits(*counters) * limit) >> 32


def random_unit(*counters: Tensor | int) -> Tensor:
    """A random float32 in [0, 1)."""
    # The top 24 bits are what a float32 can hold: rounding never reaches 1.
    return (random_bits(*counters) >> 8).to(torch.float32) * 2.0**-24
