"""The paper's F: aggregates the similarities to all memory slots into one number.

Every F takes similarities (N, K), of which the first `count` (N,) in each row are valid, and
returns (N,). The similarity to an empty memory is zero. `nearest` and `minimum` do the same for
distances, which have no upper bound.
Shapes: N environments, K memory slots.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from episodic_curiosity.support.compiling import fused


@fused
def percentile_90(similarity: Tensor, count: Tensor) -> Tensor:
    """The 90th percentile, with linear interpolation as in NumPy."""
    largest = _largest(similarity, count, (similarity.shape[1] - 1) // 10 + 2)
    # In descending order, the 90th percentile of m values is at rank (m - 1) / 10.
    tenths = (count - 1).clamp(min=0)
    above = tenths // 10
    below = (above + 1).clamp(max=largest.shape[1] - 1)
    weight = (tenths % 10).to(similarity.dtype) / 10
    return torch.lerp(_at(largest, above), _at(largest, below), weight).clamp(min=0)


@fused
def tenth_largest(similarity: Tensor, count: Tensor) -> Tensor:
    """The 10th largest similarity, or the smallest if there are fewer than 10."""
    largest = _largest(similarity, count, 10)
    return _at(largest, (count - 1).clamp(0, largest.shape[1] - 1)).clamp(min=0)


@fused
def maximum(similarity: Tensor, count: Tensor) -> Tensor:
    """The largest similarity: correct in theory, prone to outliers in practice."""
    return _largest(similarity, count, 1)[:, 0].clamp(min=0)


@fused
def relative_count(similarity: Tensor, count: Tensor) -> Tensor:
    """The fraction of memory slots with a similarity above 0.5."""
    reaching = (similarity > 0.5) & _is_real(similarity, count)
    return reaching.sum(dim=1) / count.clamp(min=1)


AGGREGATES: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "percentile_90": percentile_90,
    "tenth_largest": tenth_largest,
    "max": maximum,
    "relative_count": relative_count,
}


def nearest(distance: Tensor, count: Tensor, k: int) -> Tensor:
    """The k smallest valid distances of each row, in ascending order, padded with infinity.

    Fewer than k columns if there are fewer slots.
    """
    real = distance.masked_fill(~_is_real(distance, count), torch.inf)
    return real.topk(min(k, distance.shape[1]), dim=1, largest=False).values


def minimum(distance: Tensor, count: Tensor) -> Tensor:
    """The distance to the nearest slot; zero if the memory is empty."""
    return nearest(distance, count, 1)[:, 0].masked_fill(count == 0, 0.0)


def _largest(similarity: Tensor, count: Tensor, how_many: int) -> Tensor:
    """The `how_many` largest valid values of each row, in descending order, padded with -1."""
    real = similarity.masked_fill(~_is_real(similarity, count), -1.0)
    return real.topk(min(how_many, similarity.shape[1]), dim=1).values


def _is_real(similarity: Tensor, count: Tensor) -> Tensor:
    return torch.arange(similarity.shape[1], device=count.device) < count[:, None]


def _at(values: Tensor, index: Tensor) -> Tensor:
    return values.gather(1, index[:, None]).squeeze(1)
