"""The config of a fit: the paper's numbers, and what is refused."""

import pytest

import episodic_curiosity as ec


def test_the_defaults_are_the_paper_s():
    config = ec.FitConfig()
    assert (config.learning_rate, config.batch_size, config.iterations) == (1e-4, 64, 200_000)
    assert (config.pairs.k, config.pairs.gamma) == (5, 5)


def test_epochs_count_a_pair_for_every_four_steps():
    config = ec.FitConfig(iterations=None, epochs=10, batch_size=64)
    assert config.num_iterations(num_steps=720_000) == 10 * 720_000 // 4 // 64


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"iterations": None}, "set one of iterations and epochs"),
        ({"epochs": 3}, "set one of iterations and epochs .* got 200000 and 3"),
        ({"iterations": 0}, "iterations must be an integer of at least 1, got 0"),
        ({"batch_size": 1}, "batch_size must be an integer of at least 2, got 1"),
        ({"learning_rate": 0.0}, r"learning_rate must be a finite number above 0, got 0\.0"),
        ({"held_out_share": 1.0}, r"held_out_share must be in \(0, 1\), got 1.0"),
    ],
)
def test_bad_configuration(arguments, message):
    with pytest.raises(ValueError, match=message):
        ec.FitConfig(**arguments)
