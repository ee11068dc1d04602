"""Means, spreads and intervals, against values worked out by hand and by brute force."""

import json

import numpy as np
import pytest

from episodic_curiosity.support import statistics
from episodic_curiosity.support.statistics import (
    STUDENT,
    bootstrap_interval,
    interquartile_mean,
    probability_of_improvement,
    ratio_of_means,
    summarise,
)


def test_mean_and_standard_deviation_by_hand():
    summary = summarise([1.0, 2.0, 3.0, 6.0])
    assert summary.num_values == 4
    assert summary.mean == 3.0
    assert summary.deviation == pytest.approx((14 / 3) ** 0.5)  # 4 + 1 + 0 + 9, over 4 - 1
    assert summary.low < summary.mean < summary.high


def test_the_interval_of_few_values_is_students():
    # The quantile for 2 degrees of freedom is 4.3027; the deviation is 2, its root of 3 below.
    summary = summarise([1.0, 3.0, 5.0])
    assert summary.low == pytest.approx(3.0 - 4.3027 * 2.0 / 3**0.5)
    assert summary.high == pytest.approx(3.0 + 4.3027 * 2.0 / 3**0.5)


@pytest.mark.parametrize("size", [2, 3, 5, 11, 30, 31])
def test_intervals_hold_the_mean_95_times_in_100(size):
    generator = np.random.default_rng(size)
    held = 0
    for number in range(400):
        summary = summarise(generator.normal(5.0, 2.0, size=size), seed=number)
        held += summary.low <= 5.0 <= summary.high
    assert held / 400 == pytest.approx(0.95, abs=0.035)  # 0.011 is one sigma


def test_the_quantiles_are_scipys():
    stats = pytest.importorskip("scipy.stats", reason="RLlib brings SciPy")
    expected = [stats.t.ppf(0.975, size) for size in range(1, len(STUDENT) + 1)]
    assert pytest.approx(expected, abs=1e-4) == STUDENT


def test_one_value_has_no_spread_and_equal_ones_no_width():
    assert summarise([2.5]) == (1, 2.5, None, 2.5, 2.5)
    assert summarise([4, 4, 4]) == (3, 4.0, 0.0, 4.0, 4.0)
    assert json.loads(json.dumps(summarise([2.5])._asdict()))["deviation"] is None


def test_interval_is_that_of_a_loop():
    values = np.array([0.0, 1.0, 1.5, 7.0, -2.0])
    generator = np.random.default_rng(3)
    means = []
    for _ in range(200):
        picked = generator.integers(5, size=5)
        means.append(sum(values[i] for i in picked) / 5)
    expected = np.percentile(means, [2.5, 97.5])
    found = bootstrap_interval(values, num_resamples=200, seed=3)
    assert found == pytest.approx(tuple(expected))


def test_interval_is_the_same_in_pieces(monkeypatch):
    values = np.random.default_rng(0).normal(size=7)
    whole = bootstrap_interval(values, num_resamples=500, seed=1)
    monkeypatch.setattr(statistics, "PIECE", 7 * 64)
    assert bootstrap_interval(values, num_resamples=500, seed=1) == whole
    assert bootstrap_interval(values, num_resamples=500, seed=2) != whole


def test_interval_holds_the_mean_about_as_often_as_it_says():
    generator = np.random.default_rng(0)
    held = 0
    for number in range(400):
        sample = generator.normal(5.0, 2.0, size=40)
        low, high = bootstrap_interval(sample, num_resamples=400, seed=number)
        held += low <= 5.0 <= high
    # The percentile bootstrap is a little too narrow for small samples; 0.011 is one sigma.
    assert 0.9 < held / 400 < 0.97


@pytest.mark.parametrize(("size", "share"), [(5, 0.84), (3, 0.73), (2, 0.51)])
def test_intervals_of_few_values_are_as_narrow_as_a_report_says(size, share):
    generator = np.random.default_rng(size)
    held = 0
    for number in range(600):
        low, high = bootstrap_interval(
            generator.normal(size=size), num_resamples=400, seed=number
        )
        held += low <= 0.0 <= high
    assert held / 600 == pytest.approx(share, abs=0.06)  # 0.02 is one sigma


def test_interval_is_near_that_of_the_normal_distribution():
    sample = np.random.default_rng(1).normal(size=1000)
    error = 1.96 * sample.std(ddof=1) / 1000**0.5
    low, high = bootstrap_interval(sample)
    assert low == pytest.approx(sample.mean() - error, abs=0.1 * error)
    assert high == pytest.approx(sample.mean() + error, abs=0.1 * error)


@pytest.mark.parametrize("values", [[], [[1.0, 2.0]], 3.0])
def test_values_of_another_shape_are_refused(values):
    with pytest.raises(ValueError, match="non-empty list, got shape"):
        summarise(values)


def test_other_bad_input():
    with pytest.raises(ValueError, match="finite"):
        summarise([1.0, float("nan")])
    with pytest.raises(ValueError, match="num_resamples"):
        bootstrap_interval([1.0], num_resamples=0)


@pytest.mark.parametrize(
    ("strata", "expected"),
    [
        ([[7.0]], 7.0),
        ([[1.0, 2.0, 9.0]], 4.0),  # of three none is cut
        ([[9.0, 1.0, 3.0, 2.0]], 2.5),  # 2 and 3 are left
        ([[0.0, 1.0, 2.0, 3.0, 100.0]], 2.0),  # 1, 2 and 3
        # One sample of eight, 0 1 2 3 10 20 30 50, of which 2 3 10 20 are left.
        ([[0.0, 1.0, 2.0, 50.0], [30.0, 10.0, 20.0, 3.0]], 8.75),
        # Two tasks weigh the same: 1 2 4 4 of the first and the second.
        ([[1.0, 2.0], [4.0]], 3.0),
        # 0 0 0 6 6 6 and 1 1 4 4 5 5, of which 1 1 4 4 5 5 are left.
        ([[0.0, 6.0], [1.0, 4.0, 5.0]], 10.0 / 3.0),
    ],
)
def test_interquartile_mean_by_hand(strata, expected):
    estimate = interquartile_mean(strata)
    assert estimate.value == expected
    assert estimate.low <= expected <= estimate.high


def test_both_aggregates_are_rliables():
    """`aggregate_iqm` and `probability_of_improvement` of rliable 1.2.0 gave these numbers."""
    strata = [
        [2.0, 8.0, 3.0, 5.0, 11.0],
        [1.0, 0.0, 4.0, 9.0, 2.5],
        [30.0, 10.0, 20.0, 3.0, -7.0],
    ]
    assert interquartile_mean(strata).value == pytest.approx(5.166666666666667)
    ours = [[2.0, 8.0, 3.0, 5.0], [1.0, 0.0, 4.0, 9.0]]
    theirs = [[3.0, 7.0, 1.0, 6.0, 2.0], [2.0, 2.0, 4.0, 1.0, 8.0]]
    assert probability_of_improvement(ours, theirs).value == pytest.approx(0.525)


def test_strata_are_resampled_each_by_itself():
    # Whatever is drawn, half of the values are 1 and half are 5: the mean cannot move.
    assert interquartile_mean([[1.0, 1.0, 1.0], [5.0, 5.0, 5.0]]) == (3.0, 3.0, 3.0, 3)
    _, low, high, _ = interquartile_mean([[1.0, 1.0, 1.0, 5.0, 5.0, 5.0]])
    assert low < 2.0 < 4.0 < high


def test_stratified_interval_is_that_of_a_loop():
    strata = [np.array([0.0, 1.0, 4.0]), np.array([2.0, 8.0, 3.0, 5.0])]
    generator = np.random.default_rng(4)
    drawn = [generator.integers(len(stratum), size=(300, len(stratum))) for stratum in strata]
    means = []
    for number in range(300):
        values = [
            stratum[i]
            for stratum, rows, times in zip(strata, drawn, (4, 3), strict=True)
            for i in rows[number]
            for _ in range(times)
        ]
        means.append(np.mean(sorted(values)[6:18]))  # 24 // 4 = 6 from each end
    found = interquartile_mean(strata, num_resamples=300, seed=4)
    assert found[1:3] == pytest.approx(tuple(np.percentile(means, [2.5, 97.5])))


@pytest.mark.parametrize(
    ("ours", "theirs", "expected"),
    [
        ([[3.0, 4.0]], [[1.0, 2.0, 2.5]], 1.0),
        ([[1.0]], [[1.0]], 0.5),  # a tie
        ([[1.0, 3.0]], [[2.0, 3.0, 0.0]], 3.5 / 6),  # 1 beats 0; 3 beats 2 and 0 and ties
        ([[3.0, 4.0], [1.0]], [[1.0], [2.0, 0.0]], 0.75),  # the mean of 1 and 1 / 2
    ],
)
def test_probability_of_improvement_by_hand(ours, theirs, expected):
    estimate = probability_of_improvement(ours, theirs)
    assert estimate.value == pytest.approx(expected)
    assert 0.0 <= estimate.low <= estimate.value <= estimate.high <= 1.0


def test_interval_of_the_probability_is_that_of_a_loop():
    ours = [np.array([1.0, 3.0, 5.0]), np.array([0.0, 2.0])]
    theirs = [np.array([2.0, 3.0]), np.array([1.0, 1.0, 2.0, -1.0])]
    generator = np.random.default_rng(7)
    drawn = [generator.integers(len(s), size=(200, len(s))) for s in (*ours, *theirs)]
    chances = []
    for number in range(200):
        of_tasks = []
        for task in range(2):
            pairs = [
                (ours[task][i], theirs[task][j])
                for i in drawn[task][number]
                for j in drawn[2 + task][number]
            ]
            of_tasks.append(np.mean([(a > b) + 0.5 * (a == b) for a, b in pairs]))
        chances.append(np.mean(of_tasks))
    found = probability_of_improvement(ours, theirs, num_resamples=200, seed=7)
    assert found[1:3] == pytest.approx(tuple(np.percentile(chances, [2.5, 97.5])))


def test_ratio_of_means_by_hand():
    assert ratio_of_means([6.0, 10.0], [2.0, 1.0, 3.0]).value == 4.0
    assert ratio_of_means([6.0], [4.0]) == (1.5, 1.5, 1.5, 1)
    # A resample of 1s alone or of 3s alone is one of four: the interval spans all ratios.
    assert ratio_of_means([6.0], [1.0, 3.0]) == (3.0, 2.0, 6.0, 1)
    # So is one of nothing but zeros: there is no upper end.
    assert ratio_of_means([6.0], [0.0, 3.0]) == (4.0, 2.0, float("inf"), 1)


def test_an_estimate_knows_its_smallest_sample():
    # Nothing can be drawn from one value but that value: a width of zero is no certainty.
    assert interquartile_mean([[1.0, 2.0, 3.0], [5.0, 6.0]]).num_values == 2
    assert probability_of_improvement([[1.0, 2.0]], [[0.0]]) == (1.0, 1.0, 1.0, 1)
    assert ratio_of_means([4.0, 4.0, 4.0], [2.0, 2.0]) == (2.0, 2.0, 2.0, 2)


def test_bad_strata():
    with pytest.raises(ValueError, match="at least one list of values, got none"):
        interquartile_mean([])
    with pytest.raises(ValueError, match="finite"):
        interquartile_mean([[1.0], [float("inf")]])
    with pytest.raises(ValueError, match="same tasks, got 2 and 1"):
        probability_of_improvement([[1.0], [2.0]], [[1.0]])
    with pytest.raises(ValueError, match="above 0, got 0"):
        ratio_of_means([1.0], [1.0, -1.0])
