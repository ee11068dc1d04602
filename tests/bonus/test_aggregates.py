"""F, against NumPy and by hand."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from episodic_curiosity.bonus.aggregates import AGGREGATES, minimum, nearest

SIMILARITY = torch.tensor([[0.1, 0.9, 0.4, 0.7, 0.2]])


def aggregate(name: str, count: int) -> float:
    return AGGREGATES[name](SIMILARITY, torch.tensor([count])).item()


@pytest.mark.parametrize(
    ("name", "count", "expected"),
    [
        ("max", 5, 0.9),
        ("max", 1, 0.1),
        ("tenth_largest", 5, 0.1),  # fewer than ten: the smallest
        ("tenth_largest", 2, 0.1),
        ("relative_count", 5, 0.4),  # 0.9 and 0.7 of five
        ("relative_count", 2, 0.5),
        ("percentile_90", 5, 0.82),  # 0.7 + 0.6 * (0.9 - 0.7)
        ("percentile_90", 2, 0.82),  # 0.1 + 0.9 * (0.9 - 0.1)
        ("percentile_90", 1, 0.1),
    ],
)
def test_by_hand(name, count, expected):
    assert aggregate(name, count) == pytest.approx(expected)


@pytest.mark.parametrize("name", AGGREGATES)
def test_an_empty_memory_reaches_nothing(name):
    assert aggregate(name, 0) == 0.0


@given(num_slots=st.integers(1, 60), data=st.data())
def test_percentile_and_tenth_largest_agree_with_numpy(num_slots, data):
    counts = data.draw(st.lists(st.integers(1, num_slots), min_size=3, max_size=3))
    seed = data.draw(st.integers(0, 2**31))
    similarity = np.random.default_rng(seed).random((3, num_slots), dtype=np.float32)
    for name, by_numpy in (
        ("percentile_90", lambda row: np.percentile(row, 90)),
        ("tenth_largest", lambda row: np.sort(row)[::-1][min(10, len(row)) - 1]),
    ):
        expected = [
            by_numpy(row[:count]) for row, count in zip(similarity, counts, strict=True)
        ]
        found = AGGREGATES[name](torch.tensor(similarity), torch.tensor(counts))
        np.testing.assert_allclose(found.numpy(), expected, atol=1e-6)


def test_nearest_and_minimum_by_hand():
    """Distances have no bound; what is beyond the count is not there."""
    distance = torch.tensor(
        [[700.0, 3.0, 50.0, 0.0], [9.0, 8.0, 7.0, 6.0], [1.0, 1.0, 1.0, 1.0]]
    )
    count = torch.tensor([3, 1, 0])
    infinity = float("inf")
    assert nearest(distance, count, 2).tolist() == [[3, 50], [9, infinity], [infinity] * 2]
    assert nearest(distance, count, 9).shape == (3, 4)
    assert minimum(distance, count).tolist() == [3, 9, 0]
