"""What a sample says about where it came from: mean, spread, and how sure the mean is.

Shapes: V values, R resamples.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from episodic_curiosity.checks import check_at_least

CONFIDENCE = 0.95
NUM_RESAMPLES = 10_000
PIECE = 1 << 22  # values drawn at once, so that a large sample needs no more memory


class Summary(NamedTuple):
    """A sample in short."""

    num_values: int
    mean: float
    deviation: float | None  # sample standard deviation; a single value has none
    low: float  # the interval that holds the true mean with 95 % confidence
    high: float


def summarise(values: ArrayLike, *, seed: int = 0) -> Summary:
    """Mean, standard deviation and bootstrap interval of (V,) values."""
    sample = _checked(values)
    low, high = bootstrap_interval(sample, seed=seed)
    deviation = float(sample.std(ddof=1)) if len(sample) > 1 else None
    return Summary(len(sample), float(sample.mean()), deviation, low, high)


def bootstrap_interval(
    values: ArrayLike,
    *,
    confidence: float = CONFIDENCE,
    num_resamples: int = NUM_RESAMPLES,
    seed: int = 0,
) -> tuple[float, float]:
    """The percentile-bootstrap interval of the mean of (V,) values."""
    sample = _checked(values)
    check_at_least("num_resamples", num_resamples, 1)
    if not 0.0 < confidence < 1.0:
        raise ValueError(f"confidence must lie between 0 and 1, got {confidence!r}")
    generator = np.random.default_rng(seed)
    means = np.empty(num_resamples)  # (R,)
    piece = max(1, PIECE // len(sample))
    for start in range(0, num_resamples, piece):
        rows = min(piece, num_resamples - start)
        drawn = generator.integers(len(sample), size=(rows, len(sample)))
        means[start : start + rows] = sample[drawn].mean(axis=1)
    tail = (1.0 - confidence) / 2.0
    low, high = np.quantile(means, (tail, 1.0 - tail))
    return float(low), float(high)


def _checked(values: ArrayLike) -> NDArray[Any]:
    sample = np.asarray(values, np.float64)
    if sample.ndim != 1 or not len(sample):
        raise ValueError(f"values must be a list of at least one, got shape {sample.shape}")
    if not np.isfinite(sample).all():
        raise ValueError("values must be finite, got NaN or infinity")
    return sample
