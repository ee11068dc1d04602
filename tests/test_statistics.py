"""Means, spreads and intervals, against values worked out by hand and by brute force."""

import json

import numpy as np
import pytest

from episodic_curiosity import statistics
from episodic_curiosity.statistics import bootstrap_interval, summarise


def test_mean_and_standard_deviation_by_hand():
    summary = summarise([1.0, 2.0, 3.0, 6.0])
    assert summary.num_values == 4
    assert summary.mean == 3.0
    assert summary.deviation == pytest.approx((14 / 3) ** 0.5)  # 4 + 1 + 0 + 9, over 4 - 1
    assert summary.low < summary.mean < summary.high


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
    expected = np.percentile(means, [5, 95])
    found = bootstrap_interval(values, confidence=0.9, num_resamples=200, seed=3)
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
        low, high = bootstrap_interval(sample, confidence=0.9, num_resamples=400, seed=number)
        held += low <= 5.0 <= high
    # The percentile bootstrap is a little too narrow for small samples; 0.015 is one sigma.
    assert 0.84 < held / 400 < 0.94


def test_interval_is_near_that_of_the_normal_distribution():
    sample = np.random.default_rng(1).normal(size=1000)
    error = 1.96 * sample.std(ddof=1) / 1000**0.5
    low, high = bootstrap_interval(sample)
    assert low == pytest.approx(sample.mean() - error, abs=0.1 * error)
    assert high == pytest.approx(sample.mean() + error, abs=0.1 * error)


@pytest.mark.parametrize("values", [[], [[1.0, 2.0]], 3.0])
def test_values_of_another_shape_are_refused(values):
    with pytest.raises(ValueError, match="at least one, got shape"):
        summarise(values)


def test_other_bad_input():
    with pytest.raises(ValueError, match="finite"):
        summarise([1.0, float("nan")])
    with pytest.raises(ValueError, match=r"confidence .* 1\.5"):
        bootstrap_interval([1.0], confidence=1.5)
    with pytest.raises(ValueError, match="num_resamples"):
        bootstrap_interval([1.0], num_resamples=0)
