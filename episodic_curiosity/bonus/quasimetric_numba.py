"""ETD's quasi-metric as Numba kernels for the CPU; the same as `quasimetric` in torch.

They read each pair of embeddings where it is, while torch writes all their differences to
memory. Shapes: N environments, K memory slots, B and C observations, D size of each of the two
parts of an embedding.
"""

import math
from typing import Any

import numpy as np

from episodic_curiosity.support.numba_setup import cached

f32 = np.float32
# Sums and maxima may be reordered, so that they are computed by vector instructions. A maximum
# loses a NaN, and so does `nearest` if other slots have none: embeddings must be finite.
REORDERED = {"reassoc", "contract", "nsz"}


@cached(fastmath={"nnan", "nsz"})
def largest_difference(origin: Any, goal: Any) -> Any:
    largest = f32(-np.inf)
    for d in range(len(origin)):
        difference = origin[d] - goal[d]
        if difference > largest:
            largest = difference
    return largest


@cached(fastmath=REORDERED)
def squared_length(origin: Any, goal: Any) -> Any:
    total = f32(0)
    for d in range(len(origin)):
        apart = origin[d] - goal[d]
        total += apart * apart
    return total


@cached(fastmath=REORDERED)
def num_equal(origin: Any, goal: Any, difference: Any) -> Any:
    total = f32(0)
    for d in range(len(origin)):
        total += f32(1) if origin[d] - goal[d] == difference else f32(0)
    return total


@cached()
def compare_all(
    origin: Any,  # (B, 2 * D)
    goal: Any,  # (C, 2 * D)
    largest: Any,  # (B, C) written: max over i of f_i(x) - f_i(y)
    equal: Any,  # (B, C) written: how many i have this difference
    length: Any,  # (B, C) written: |g(x) - g(y)|
) -> None:
    """Compares each of B observations with each of C."""
    size = origin.shape[1] // 2
    for i in range(len(origin)):
        f_x, g_x = origin[i, :size], origin[i, size:]
        for j in range(len(goal)):
            f_y, g_y = goal[j, :size], goal[j, size:]
            largest[i, j] = largest_difference(f_x, f_y)
            equal[i, j] = num_equal(f_x, f_y, largest[i, j])
            length[i, j] = math.sqrt(squared_length(g_x, g_y))


@cached(fastmath=REORDERED)
def sum_where_equal(weight: Any, here: Any, there: Any, difference: Any) -> Any:
    total = f32(0)
    for j in range(len(there)):
        total += weight[j] if here - there[j] == difference[j] else f32(0)
    return total


@cached(fastmath=REORDERED)
def sum_of_differences(weight: Any, here: Any, there: Any) -> Any:
    total = f32(0)
    for j in range(len(there)):
        total += weight[j] * (here - there[j])
    return total


@cached()
def differentiate(
    origin: Any,  # (B, 2 * D)
    goal: Any,  # (2 * D, C), transposed
    largest: Any,  # (B, C)
    one_way: Any,  # (B, C) weights of the largest differences
    both_ways: Any,  # (B, C) weights of g(x) - g(y)
    gradient: Any,  # (B, 2 * D) written
) -> None:
    """Sums the gradients of the distances from each of B observations to C others."""
    size = origin.shape[1] // 2
    for i in range(len(origin)):
        for d in range(size):
            here = origin[i, d]
            gradient[i, d] = sum_where_equal(one_way[i], here, goal[d], largest[i])
        for d in range(size, 2 * size):
            gradient[i, d] = sum_of_differences(both_ways[i], origin[i, d], goal[d])


@cached()
def nearest(
    slots: Any,  # (N, K, 2 * D), the memory
    count: Any,  # (N,) filled slots
    embedding: Any,  # (N, 2 * D)
    distance: Any,  # (N,) written: from the nearest slot, 0 if all are empty
) -> None:
    """Compares each environment's embedding with its memory."""
    size = embedding.shape[1] // 2
    for n in range(len(embedding)):
        f_y, g_y = embedding[n, :size], embedding[n, size:]
        least = f32(np.inf)
        for k in range(count[n]):
            squared = squared_length(slots[n, k, size:], g_y)
            if squared >= least * least:
                continue  # too far without the other part
            largest = largest_difference(slots[n, k, :size], f_y)
            whole = max(largest, f32(0)) + f32(math.sqrt(squared))
            least = least if whole >= least else whole
        distance[n] = least if count[n] > 0 else f32(0)
