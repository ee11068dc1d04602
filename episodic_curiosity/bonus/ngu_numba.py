"""NGU's episodic bonus as one Numba kernel for the CPU; the same as `NGU.rate` in torch.

Shapes: N environments, K memory slots, D embedding, k neighbours.
"""

import math
from typing import Any

import numpy as np

from episodic_curiosity.support.numba_setup import cached

f32 = np.float32
LEAST = f32(1e-12)  # of the average distance, which divides


# Sums may be reordered, so that they are computed by vector instructions.
@cached(fastmath={"reassoc", "contract", "nsz"})
def squared_distance(slot: Any, embedding: Any) -> Any:
    total = f32(0)
    for d in range(len(embedding)):
        apart = slot[d] - embedding[d]
        total += apart * apart
    return total


@cached()
def rate(
    embeddings: Any,  # (N, K, D), the memory
    added: Any,  # (N,)
    draws: Any,  # (N,)
    distance: Any,  # (N,) moving average
    averaged: Any,  # (N,)
    embedding: Any,  # (N, D)
    opens: Any,  # (N,)
    rows: Any,  # (N,)
    k: Any,
    constants: Any,  # rate, cluster distance, epsilon, c, most similar
    paid: Any,  # (N,) written
) -> None:
    """Pays and remembers; changes all arrays of the memory and the average in place."""
    rate, cluster, epsilon, c, most = constants
    num_envs, capacity, _ = embeddings.shape
    near = np.empty(k, np.float32)  # the smallest squared distances, ascending
    for n in range(num_envs):
        if opens[n]:
            added[n] = 0
        filled = min(added[n], capacity)
        there = 0
        for slot in range(filled):
            squared = squared_distance(embeddings[n, slot], embedding[n])
            if there == k and not squared < near[k - 1]:
                continue
            place = min(there, k - 1)
            while place > 0 and near[place - 1] > squared:
                near[place] = near[place - 1]
                place -= 1
            near[place] = squared
            there = min(there + 1, k)
        if rows[n] and filled > 0:
            mean = f32(0)
            for i in range(there):
                mean += near[i]
            mean /= f32(there)
            averaged[n] += 1
            weight = max(f32(1) / f32(averaged[n]), rate)
            distance[n] += weight * (mean - distance[n])
        per_average = f32(1) / max(distance[n], LEAST)
        kernel = f32(0)
        for i in range(there):
            apart = max(near[i] * per_average - cluster, f32(0))
            kernel += epsilon / (apart + epsilon)
        similarity = f32(math.sqrt(kernel)) + c
        paid[n] = f32(0) if similarity > most else f32(1) / similarity
        if rows[n]:
            embeddings[n, added[n] % capacity] = embedding[n]
            added[n] += 1
            draws[n] += 1
