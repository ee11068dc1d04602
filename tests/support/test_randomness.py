"""Counter-based random numbers."""

import torch

from episodic_curiosity.support.randomness import (
    later_seed,
    random_below,
    random_bits,
    random_unit,
)
from tests.bonus.transcription import MASK, mix


def test_bits_equal_plain_integers():
    found = random_bits(12, torch.tensor([0, 1, 2**31 - 1]), 2**32 - 1)
    for counter, bits in zip((0, 1, 2**31 - 1), found.tolist(), strict=True):
        expected = mix((12 + 0x9E3779B9) & MASK)
        expected = mix(expected ^ mix(counter))
        expected = mix(expected ^ mix(2**32 - 1))
        assert bits == expected


def test_a_later_seed_is_a_seed():
    assert later_seed(3, 4) == 7
    assert later_seed(2**63 - 1, 3) == 2


def test_the_order_of_the_counters_matters():
    one, two = torch.tensor(1), torch.tensor(2)
    assert random_bits(one, two) != random_bits(two, one)


def test_numbers_below_a_limit_are_even():
    drawn = random_below(7, 3, torch.arange(70_000))
    counts = drawn.bincount(minlength=7)
    assert len(counts) == 7
    assert (counts - 10_000).abs().max() < 400  # 4 standard deviations


def test_unit_numbers_fill_the_interval():
    drawn = random_unit(3, torch.arange(100_000))
    assert drawn.dtype == torch.float32
    assert 0.0 <= drawn.min() < 1e-3
    assert 1 - 1e-3 < drawn.max() < 1.0
    assert abs(drawn.mean() - 0.5) < 0.005
