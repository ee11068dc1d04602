"""The warnings of `metrics` in other people's loops: each trouble is told once."""

import warnings

import torch

import episodic_curiosity as ec
from episodic_curiosity.bonus.diagnosis import PATIENCE


def warned(curiosity: ec.EpisodicCuriosity, num_calls: int, shown) -> list[str]:
    """The warnings of so many calls of `metrics`, each after a step."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for number in range(num_calls):
            curiosity.bonus(shown(number))
            curiosity.metrics()
    return [str(warning.message) for warning in caught]


def plain(num_envs: int = 2, **options) -> ec.EpisodicCuriosity:
    """Vectors of 4 numbers, an R-network that has random weights and counts as fitted."""
    torch.manual_seed(0)
    r_network = ec.RNetwork((4,), embedding_size=8)
    r_network.fitted.fill_(True)
    r_network.held_out_accuracy.fill_(0.9)
    curiosity = ec.EpisodicCuriosity(r_network, num_envs, **options)
    curiosity.begin(torch.zeros(num_envs, 4))
    return curiosity


def anything(number: int) -> torch.Tensor:
    return 5 * torch.randn(2, 4, generator=torch.Generator().manual_seed(number))


def test_a_healthy_bonus_is_not_warned_of():
    assert warned(plain(beta=0.6), 3 * PATIENCE, anything) == []


def test_an_r_network_no_better_than_chance_is_warned_of_once():
    curiosity = plain(beta=0.6)
    curiosity.r_network.held_out_accuracy.fill_(0.52)
    (trouble,) = warned(curiosity, 3 * PATIENCE, anything)
    assert "held-out accuracy is 52%, chance is 50%: its bonus is noise" in trouble
    assert "more iterations in the FitConfig" in trouble


def test_a_bonus_that_never_varies_is_warned_of_once():
    (trouble,) = warned(plain(), 3 * PATIENCE, lambda _: torch.zeros(2, 4))
    assert "the bonus is nearly constant, with a spread of 0 against 0.03" in trouble
    assert "finds everything reachable, or nothing: check the FitConfig" in trouble


def test_memories_that_are_always_full_are_warned_of_once():
    curiosity = plain(memory_capacity=2, novelty_threshold=-1.0)
    (trouble,) = warned(curiosity, 3 * PATIENCE, anything)
    assert "memories are full 100% of the time" in trouble
    assert "try a bonus.memory_capacity above 2" in trouble


def test_a_refit_that_never_comes_is_warned_of_once_although_its_numbers_change():
    online = ec.OnlineConfig(refit_every=416, history=416)
    curiosity = plain(beta=0.6, online=online)
    assert warned(curiosity, 414, anything) == []  # 2 * 415 steps, the first ones included
    (trouble,) = warned(curiosity, 30, anything)
    assert trouble == (
        "the R-network should be refitted every 416 steps, 832 have passed: call learn()"
    )


def test_warnings_of_the_inner_bonus_pass_through_a_normalised_one():
    curiosity = plain(online=ec.OnlineConfig(refit_every=416, history=416))
    normalised = ec.NormalisedBonus(curiosity)
    troubles = warned(normalised, 420, lambda _: torch.zeros(2, 4))
    assert sum("call begin()" in trouble for trouble in troubles) == 1
    assert sum("call learn()" in trouble for trouble in troubles) == 1


def test_an_r_network_that_was_never_fitted_is_warned_of_once():
    curiosity = plain(beta=0.6)
    curiosity.r_network.fitted.fill_(False)
    troubles = warned(curiosity, 3, anything)
    assert [trouble.partition(":")[0] for trouble in troubles] == [
        "the R-network is not fitted, so the bonus is zero"
    ]
