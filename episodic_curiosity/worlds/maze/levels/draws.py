"""The random numbers of support/randomness.py in NumPy: levels are generated on the CPU."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import count
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from episodic_curiosity.support.randomness import MASK_32

T = TypeVar("T")


def mix(bits: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Scrambles 32-bit integers; a bijection."""
    with np.errstate(over="ignore"):
        bits = (bits ^ (bits >> np.uint32(16))) * np.uint32(0x7FEB352D)
        bits = (bits ^ (bits >> np.uint32(15))) * np.uint32(0x846CA68B)
    return bits ^ (bits >> np.uint32(16))


def random_bits(*counters: ArrayLike) -> NDArray[np.uint32]:
    """Returns 32 random bits per element of the broadcast counters; their order matters."""
    first, *others = (_word(counter) for counter in counters)
    with np.errstate(over="ignore"):
        bits = mix(first + np.uint32(0x9E3779B9))
    for word in others:
        bits = mix(bits ^ mix(word))
    return bits


def random_below(limit: NDArray[np.int64] | int, *counters: ArrayLike) -> NDArray[np.int64]:
    """Returns random integers in [0, limit)."""
    return (random_bits(*counters).astype(np.int64) * limit) >> 32


def random_unit(*counters: ArrayLike) -> NDArray[np.float64]:
    """Returns random floats in [0, 1), from 32 bits."""
    return random_bits(*counters).astype(np.float64) * 2.0**-32


def _word(counter: ArrayLike) -> NDArray[np.uint32]:
    if isinstance(counter, int):
        counter = counter & MASK_32
    return (np.asarray(counter) & MASK_32).astype(np.uint32)


class Dice:
    """An endless stream of random numbers for one level."""

    def __init__(self, key: int) -> None:
        self._bits = self._stream(key)

    @staticmethod
    def _stream(key: int) -> Iterator[int]:
        for block in count():
            yield from random_bits(key, block, np.arange(64)).tolist()

    def below(self, limit: int) -> int:
        return next(self._bits) * limit >> 32

    def chance(self, percent: int) -> bool:
        return self.below(100) < percent

    def pick(self, things: Sequence[T]) -> T:
        return things[self.below(len(things))]

    def shuffled(self, things: Iterable[T]) -> list[T]:
        rest = list(things)
        return [rest.pop(self.below(len(rest))) for _ in range(len(rest))]
