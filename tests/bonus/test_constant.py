"""PPO+1: what it pays, and that an early end costs."""

import pytest
import torch

from episodic_curiosity.bonus.constant import ConstantBonus, ConstantConfig


def test_every_step_pays_the_same_and_a_new_episode_nothing():
    constant = ConstantBonus(3, ConstantConfig(scale=0.25))
    constant.begin(torch.zeros(3))
    first = torch.tensor([False, True, False])
    assert constant.bonus_same_step(torch.zeros(3), first).tolist() == [0.25, 0.0, 0.25]
    assert constant.metrics() == {"bonus_mean": 0.25, "bonus_spread": 0.0}
    assert constant.bonus(torch.zeros(3), where=first).tolist() == [0.0, 0.25, 0.0]


def test_dying_early_earns_less_over_the_same_time():
    """Two environments, 12 steps: one lives through them, one dies at every third."""
    constant = ConstantBonus(2, ConstantConfig())
    earned = torch.zeros(2)
    for time in range(12):
        first = torch.tensor([time == 0, time % 3 == 0])
        earned += constant.bonus_same_step(torch.zeros(2), first)
    assert earned.tolist() == [11.0, 8.0]


@pytest.mark.parametrize("scale", [0.0, -1.0, float("inf"), "1"])
def test_bad_configuration(scale):
    with pytest.raises(ValueError, match="scale must be a finite number above 0, got"):
        ConstantConfig(scale=scale)
