"""Resizes frames in a worker, with Numba on one thread: the bytes of torch's resize.

Torch resizes bytes along the rows, rounds, and then along the columns; so does this. Columns
are combined as rows of the transposed frame, so that every inner loop runs over neighbouring
bytes. Imported by path (see worlds/processes/worker.py), without torch.
Shapes: frames (3, h, w), K pixels that count for a new one.

Every array that a kernel is called with costs time, so taps are one array and so is the room.
"""

from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar, cast

import numpy as np
from numba import njit
from numpy.typing import NDArray

Array = NDArray[Any]
Size = tuple[int, int]  # height, width

WORD = 8  # bytes; blocks of 8 x 8 are transposed at once
GROUP = 4  # pixels that are added at once
LARGEST_WEIGHT = 1 << 15  # torch's weights have 16 bits
PRECISION = 22  # bits of a weight here, at least as many as there
ROUND, BITS = np.uint32(1 << (PRECISION - 1)), np.uint32(PRECISION)
RED, GREEN, BLUE = np.float32(0.299), np.float32(0.587), np.float32(0.114)
HALF = np.float32(0.5)
ONE, TWO, FOUR = np.uint64(8), np.uint64(16), np.uint64(32)  # bytes, in bits
EVEN = np.uint64(0x00FF00FF00FF00FF)  # every second byte, pair and group of four
PAIRS, FOURS = np.uint64(0x0000FFFF0000FFFF), np.uint64(0x00000000FFFFFFFF)


# A cached kernel names its module, which has another name where it is imported as usual.
IS_IN_WORKER = __name__.partition(".")[0] == "engines"

Function = TypeVar("Function", bound=Callable[..., Any])


def part_of_kernel(function: Function) -> Function:
    """Compiles a function that only kernels call."""
    options = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    compiled: Function = njit(**options)(function)  # type: ignore[call-overload]
    return compiled


def kernel(function: Function) -> Function:
    """Compiles a function; not cached if no folder for that can be written."""
    compiled: Any
    try:
        compiled = njit(cache=IS_IN_WORKER)(function)
    except RuntimeError:
        compiled = njit()(function)
    return cast(Function, compiled)


def make_taps(old: int, new: int) -> Array:
    """The weights of torch's bilinear resize of bytes, with antialiasing.

    Each row, of (new, 1 + K) uint32, has the first old pixel that counts for a new one, and the
    weights of K from there on, in units of 1 / 2^PRECISION.
    """
    scale = old / new
    reach = max(scale, 1.0)  # of a new pixel, in old ones, to each side
    centre = scale * (np.arange(new) + 0.5)
    first = np.maximum((centre - reach + 0.5).astype(np.int64), 0)
    end = np.minimum((centre + reach + 0.5).astype(np.int64), old)
    count = -(-int((end - first).max()) // GROUP) * GROUP
    pixel = first[:, None] + np.arange(count)
    share = np.maximum(1.0 - np.abs((pixel - centre[:, None] + 0.5) / reach), 0.0)
    share[pixel >= end[:, None]] = 0.0
    share /= share.sum(1, keepdims=True)
    bits = 0  # as many as torch's weights have room for
    while bits < PRECISION and int(0.5 + share.max() * (2 << bits)) < LARGEST_WEIGHT:
        bits += 1
    weight = (share * (1 << bits) + 0.5).astype(np.uint32) << (PRECISION - bits)
    return np.column_stack((first, weight)).astype(np.uint32)


class Sights:
    """What policy and curiosity see of a frame: grey and colour, each of its size."""

    def __init__(self, frame: Size, observation: Size, view: Size) -> None:
        self._small = None if observation == frame else resize_to(frame, observation)
        self._colour = np.zeros((3, *observation), np.uint8)
        self._view = None if view in (frame, observation) else resize_to(frame, view)
        self._is_small = view == observation != frame

    def __call__(self, row: dict[str, Array]) -> None:
        """Fills `observation` and, if it is not the frame, `view` of a row from its `frame`."""
        frame = colour = row["frame"]
        if self._small is not None:
            colour = row["view"] if self._is_small else self._colour
            self._small(frame, colour)
        make_grey(colour, row["observation"][0])
        if self._view is not None:
            self._view(frame, row["view"])


class Resize:
    """Resizes frames of one size to another."""

    def __init__(self, old: Size, new: Size) -> None:
        """The old height and width are multiples of 8."""
        self._across, self._down = make_taps(old[1], new[1]), make_taps(old[0], new[0])
        self._padded = -(-new[1] // WORD) * WORD  # the new width, in whole words
        self._room = np.zeros(3 * old[0] * (old[1] + 2 * self._padded), np.uint8)
        self._sums = np.zeros(max(3 * old[0], self._padded), np.uint32)

    def __call__(self, frame: Array, out: Array) -> None:
        """Writes the contiguous frame, resized, into `out`."""
        _resize(frame, self._across, self._down, self._padded, self._room, self._sums, out)


@cache
def resize_to(old: Size, new: Size) -> Resize:
    """One for all games of a worker, whose working memory then stays in the core's cache."""
    return Resize(old, new)


@part_of_kernel
def _transpose(bytes_in_rows: Any, bytes_in_columns: Any) -> None:
    """Transposes (R, C) bytes into (C, R); both are multiples of 8.

    The blocks beside each other go to a band first, so that the compiler can work on several
    at once.
    """
    rows, columns = bytes_in_rows.view(np.uint64), bytes_in_columns.view(np.uint64)
    band = np.empty((WORD, rows.shape[1]), np.uint64)
    for i in range(columns.shape[1]):
        for j in range(rows.shape[1]):
            r = WORD * i
            a, b, c, d = rows[r, j], rows[r + 1, j], rows[r + 2, j], rows[r + 3, j]
            e, f, g, h = rows[r + 4, j], rows[r + 5, j], rows[r + 6, j], rows[r + 7, j]
            (a, b), (c, d) = _swapped(a, b, ONE, EVEN), _swapped(c, d, ONE, EVEN)
            (e, f), (g, h) = _swapped(e, f, ONE, EVEN), _swapped(g, h, ONE, EVEN)
            (a, c), (b, d) = _swapped(a, c, TWO, PAIRS), _swapped(b, d, TWO, PAIRS)
            (e, g), (f, h) = _swapped(e, g, TWO, PAIRS), _swapped(f, h, TWO, PAIRS)
            (a, e), (b, f) = _swapped(a, e, FOUR, FOURS), _swapped(b, f, FOUR, FOURS)
            (c, g), (d, h) = _swapped(c, g, FOUR, FOURS), _swapped(d, h, FOUR, FOURS)
            band[0, j], band[1, j], band[2, j], band[3, j] = a, b, c, d
            band[4, j], band[5, j], band[6, j], band[7, j] = e, f, g, h
        for j in range(rows.shape[1]):
            for k in range(WORD):
                columns[WORD * j + k, i] = band[k, j]


@part_of_kernel
def _swapped(low: Any, high: Any, bits: Any, mask: Any) -> Any:
    """Exchanges the upper half of `low` with the lower half of `high`."""
    return (low & mask) | ((high & mask) << bits), ((low >> bits) & mask) | (high & ~mask)


@part_of_kernel
def _combine(rows: Any, start: int, taps: Any, sums: Any, out: Any) -> None:
    """Makes rows of bytes out of some of those from `start` on."""
    last, width = len(rows) - 1, out.shape[1]
    count = taps.shape[1] - 1
    for y in range(len(out)):
        for tap in range(0, count, GROUP):
            old = start + np.int64(taps[y, 0]) + tap  # rows after the last have no weight
            a, b = rows[min(old, last)], rows[min(old + 1, last)]
            c, d = rows[min(old + 2, last)], rows[min(old + 3, last)]
            weight = taps[y, 1 + tap : 1 + tap + GROUP]
            p, q, r, s = weight[0], weight[1], weight[2], weight[3]
            if count == GROUP:
                for x in range(width):
                    out[y, x] = np.uint8(_added(ROUND, p, q, r, s, a, b, c, d, x) >> BITS)
            else:
                for x in range(width):
                    before = sums[x] if tap else ROUND
                    sums[x] = _added(before, p, q, r, s, a, b, c, d, x)
        if count != GROUP:
            for x in range(width):
                out[y, x] = np.uint8(sums[x] >> BITS)


@part_of_kernel
def _added(
    before: Any, p: Any, q: Any, r: Any, s: Any, a: Any, b: Any, c: Any, d: Any, x: Any
) -> Any:
    first = p * np.uint32(a[x]) + q * np.uint32(b[x])
    second = r * np.uint32(c[x]) + s * np.uint32(d[x])
    return np.uint32(before + first + second)  # not 64 bits, which are slow


@kernel
def _resize(
    frame: Any, across: Any, down: Any, padded: int, room: Any, sums: Any, out: Any
) -> None:
    channels, height, width = frame.shape
    rows, new_width = channels * height, len(across)
    used, more = width * rows, padded * rows
    columns = room[:used].reshape(width, rows)
    narrow_columns = room[used : used + more].reshape(padded, rows)
    narrow = room[used + more : used + 2 * more].reshape(rows, padded)
    _transpose(frame.reshape(rows, width), columns)
    _combine(columns, 0, across, sums, narrow_columns[:new_width])
    _transpose(narrow_columns, narrow)
    for channel in range(channels):
        _combine(narrow, channel * height, down, sums, out[channel])


@kernel
def make_grey(colour: Any, grey: Any) -> None:
    """Writes the luminance of a (3, h, w) frame, rounded, into (h, w)."""
    for y in range(grey.shape[0]):
        for x in range(grey.shape[1]):
            light = RED * np.float32(colour[0, y, x]) + GREEN * np.float32(colour[1, y, x])
            light += BLUE * np.float32(colour[2, y, x])
            grey[y, x] = np.uint8(light + HALF)
