"""Sample statistics with confidence intervals: Student's for few values, else bootstrapped.

Scores of several tasks form strata, one per task, with equal weight whatever the number of
seeds; each is resampled by itself. Shapes: V values, R resamples; W values compared with.
"""

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from episodic_curiosity.support.checks import check_at_least

TAIL = (1.0 - 0.95) / 2.0  # share of resamples beyond each end of a 95 % interval
# The 97.5 % quantiles of Student's t distribution with 1 to 29 degrees of freedom.
# fmt: off
STUDENT = (
    12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3646, 2.3060, 2.2622, 2.2281,
    2.2010, 2.1788, 2.1604, 2.1448, 2.1314, 2.1199, 2.1098, 2.1009, 2.0930, 2.0860,
    2.0796, 2.0739, 2.0687, 2.0639, 2.0595, 2.0555, 2.0518, 2.0484, 2.0452,
)
# fmt: on
NUM_RESAMPLES = 10_000
PIECE = 1 << 22  # values drawn per batch, to limit the memory


class Summary(NamedTuple):
    """Summary statistics of a sample."""

    num_values: int
    mean: float
    deviation: float | None  # sample standard deviation; None for a single value
    low: float  # 95 % confidence interval of the mean
    high: float


class Estimate(NamedTuple):
    """An estimate with its 95 % confidence interval."""

    value: float
    low: float
    high: float
    num_values: int  # of the smallest sample; with 1 the interval means nothing


def summarise(values: ArrayLike, *, seed: int = 0) -> Summary:
    """Mean, standard deviation and interval of (V,) values.

    The interval is Student's for 2 to 30 values, of which a bootstrap interval is too narrow,
    and bootstrapped for more. That of a single value is the value.
    """
    sample = _checked(values)
    mean, size = float(sample.mean()), len(sample)
    if size == 1:
        return Summary(1, mean, None, mean, mean)
    deviation = float(sample.std(ddof=1))
    if size <= len(STUDENT) + 1:
        half = STUDENT[size - 2] * deviation / math.sqrt(size)
        return Summary(size, mean, deviation, mean - half, mean + half)
    return Summary(size, mean, deviation, *bootstrap_interval(sample, seed=seed))


def bootstrap_interval(
    values: ArrayLike, *, num_resamples: int = NUM_RESAMPLES, seed: int = 0
) -> tuple[float, float]:
    """The percentile-bootstrap interval of the mean of (V,) values."""
    sample = _checked(values)
    means = np.concatenate(
        [sample[drawn].mean(axis=1) for (drawn,) in _draws([len(sample)], num_resamples, seed)]
    )
    return _middle(means)


def interquartile_mean(
    strata: Sequence[ArrayLike], *, num_resamples: int = NUM_RESAMPLES, seed: int = 0
) -> Estimate:
    """The mean of the middle half of all values together; each stratum is (V,) values.

    If strata differ in size, values are first repeated to equal sizes. Then a quarter of the
    values, rounded down, is cut from each end: none of three or fewer, the best and the worst
    of five.
    """
    samples = [_checked(values) for values in strata]
    if not samples:
        raise ValueError("strata must be at least one list of values, got none")
    sizes = [len(sample) for sample in samples]
    repeats = [math.lcm(*sizes) // size for size in sizes]
    times = np.repeat(repeats, sizes)
    found = []
    for drawn in _draws(sizes, num_resamples, seed):
        picked = [sample[rows] for sample, rows in zip(samples, drawn, strict=True)]
        found.append(_middle_half(np.concatenate(picked, axis=1), times))
    value = float(_middle_half(np.concatenate(samples)[None], times)[0])
    return Estimate(value, *_middle(np.concatenate(found)), min(sizes))


def probability_of_improvement(
    ours: Sequence[ArrayLike],
    theirs: Sequence[ArrayLike],
    *,
    num_resamples: int = NUM_RESAMPLES,
    seed: int = 0,
) -> Estimate:
    """The probability that a run of ours beats one of theirs on a random task.

    One stratum per task: (V,) values of ours, (W,) of theirs. A tie counts half.
    """
    samples = [_checked(values) for values in (*ours, *theirs)]
    if not ours or len(ours) != len(theirs):
        raise ValueError(
            f"ours and theirs must be of the same tasks, got {len(ours)} and {len(theirs)}"
        )
    pairs = list(zip(samples[: len(ours)], samples[len(ours) :], strict=True))
    wins = [
        (our[:, None] > their) + 0.5 * (our[:, None] == their) for our, their in pairs
    ]  # (V, W) for each task
    found = []
    sizes = [len(sample) for sample in samples]
    for drawn in _draws(sizes, num_resamples, seed):
        chances = []
        for won, rows, columns in zip(
            wins, drawn[: len(ours)], drawn[len(ours) :], strict=True
        ):
            taken = _counts(rows) @ won  # (R, W)
            chances.append((taken * _counts(columns)).sum(axis=1) / won.size)
        found.append(np.mean(chances, axis=0))
    value = float(np.mean([won.mean() for won in wins]))
    return Estimate(value, *_middle(np.concatenate(found)), min(sizes))


def ratio_of_means(
    ours: ArrayLike, theirs: ArrayLike, *, num_resamples: int = NUM_RESAMPLES, seed: int = 0
) -> Estimate:
    """The mean of (V,) values divided by the mean of (W,) others, which must be above zero.

    The interval has no upper end if the mean of the others might be zero.
    """
    our, their = _checked(ours), _checked(theirs)
    if their.mean() <= 0.0:
        raise ValueError(f"the mean of theirs must be above 0, got {their.mean():g}")
    found = []
    for drawn in _draws([len(our), len(their)], num_resamples, seed):
        above, below = our[drawn[0]].mean(axis=1), their[drawn[1]].mean(axis=1)
        unbounded = np.full(len(above), np.inf)
        found.append(np.divide(above, below, out=unbounded, where=below > 0.0))
    ratios = np.sort(np.concatenate(found))  # not interpolated: some may be infinite
    low, high = (ratios[round(share * (num_resamples - 1))] for share in (TAIL, 1.0 - TAIL))
    value = float(our.mean() / their.mean())
    return Estimate(value, float(low), float(high), min(len(our), len(their)))


def _draws(sizes: Sequence[int], num_resamples: int, seed: int) -> Iterator[list[NDArray[Any]]]:
    """Yields batches of resamples: (R, V) indices for each stratum of V values."""
    check_at_least("num_resamples", num_resamples, 1)
    generator = np.random.default_rng(seed)
    piece = max(1, PIECE // sum(sizes))
    for start in range(0, num_resamples, piece):
        rows = min(piece, num_resamples - start)
        yield [generator.integers(size, size=(rows, size)) for size in sizes]


def _counts(drawn: NDArray[Any]) -> NDArray[Any]:
    """How often each value is in a resample, (R, V), from (R, V) indices."""
    first = np.arange(len(drawn))[:, None] * drawn.shape[1]
    counts = np.bincount((first + drawn).ravel(), minlength=drawn.size)
    return counts.reshape(drawn.shape)


def _middle_half(values: NDArray[Any], times: NDArray[Any]) -> NDArray[Any]:
    """The interquartile mean of each row, (R,), of (R, V) values repeated (V,) times."""
    order = np.argsort(values, axis=1)
    times = times[order]  # (R, V)
    last = times.cumsum(axis=1)
    total = times[0].sum()
    cut = total // 4
    kept = (np.minimum(last, total - cut) - np.maximum(last - times, cut)).clip(min=0)
    sums = (np.take_along_axis(values, order, axis=1) * kept).sum(axis=1)
    means: NDArray[Any] = sums / (total - 2 * cut)
    return means


def _middle(values: NDArray[Any]) -> tuple[float, float]:
    """The 95 % interval that leaves the same share of (R,) values out at each end."""
    low, high = np.quantile(values, (TAIL, 1.0 - TAIL))
    return float(low), float(high)


def _checked(values: ArrayLike) -> NDArray[Any]:
    sample = np.asarray(values, np.float64)
    if sample.ndim != 1 or not len(sample):
        raise ValueError(f"values must be a non-empty list, got shape {sample.shape}")
    if not np.isfinite(sample).all():
        raise ValueError("values must be finite, got NaN or infinity")
    return sample
