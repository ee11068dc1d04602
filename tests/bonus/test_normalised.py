"""Normalisation beside a transcription in NumPy."""

import numpy as np
import pytest
import torch
from torch import Tensor

from episodic_curiosity.bonus.base import Sight
from episodic_curiosity.bonus.constant import ConstantBonus, ConstantConfig
from episodic_curiosity.bonus.normalised import NormalisedBonus


class Scripted(ConstantBonus):
    """Pays what a script says."""

    def __init__(self, script: Tensor) -> None:
        super().__init__(script.shape[1], ConstantConfig())
        self.script = iter(script)
        self.needs_views = True
        self.given: list[object] = []

    def pay(self, now: Sight) -> Tensor:
        return next(self.script) if now.stepped.any() else torch.zeros(self.num_envs)

    def learn(self, rollout: object = None) -> dict[str, float]:
        self.given.append(rollout)
        return {"told": 1.0}


def normalised(script: Tensor, gamma: float = 0.99) -> NormalisedBonus:
    bonus = NormalisedBonus(Scripted(script), gamma=gamma)
    bonus.begin(torch.zeros(script.shape[1], 1))
    return bonus


def paid_next(bonus: NormalisedBonus) -> Tensor:
    return bonus.bonus(torch.zeros(bonus.num_envs, 1))


def test_beside_a_transcription():
    """50 steps x 3 environments, the first ten unpaid; a new divisor after every 8 steps."""
    script = torch.randn(50, 3, generator=torch.Generator().manual_seed(0)) * 0.03 + 0.01
    script[:10] = 0
    script[:13, 2] = 0
    bonus = normalised(script, gamma=0.9)
    discounted, past, divisor = np.zeros(3), [], 1.0
    for time, now in enumerate(script.double().numpy()):
        paid = paid_next(bonus)
        discounted = 0.9 * discounted + now
        past += [value for value in discounted if value != 0]
        np.testing.assert_allclose(paid, now / divisor, rtol=1e-5)
        if time % 8 == 7:
            assert bonus.learn(time) == {"told": 1.0}
            divisor = np.std(past) if past else 1.0
            assert bonus.divisor.item() == pytest.approx(divisor, rel=1e-5)
            assert bonus.metrics()["bonus_divisor"] == bonus.divisor.item()
    assert len(past) == 40 + 40 + 37
    assert bonus.inner.given == [7, 15, 23, 31, 39, 47]
    assert bonus.needs_views


def test_the_scale_of_the_bonus_does_not_matter_in_the_end():
    script = torch.rand(60, 2, generator=torch.Generator().manual_seed(1))
    paid = []
    for scale in (1.0, 1000.0):
        bonus = normalised(script * scale)
        for _ in range(40):
            paid_next(bonus)
        bonus.learn()
        paid.append(paid_next(bonus))
    torch.testing.assert_close(paid[0], paid[1])


def test_a_bonus_that_never_pays_is_left_as_it_is():
    bonus = normalised(torch.zeros(5, 2))
    for _ in range(4):
        paid_next(bonus)
    bonus.learn()
    assert bonus.divisor.item() == 1
    assert paid_next(bonus).tolist() == [0.0, 0.0]


def test_rows_that_are_left_out_keep_their_sum():
    """gamma 0.5: 4, then 0.5 * 4 + 2 in the first row alone; the mean of 4, 8, 4 is 16 / 3."""
    bonus = normalised(torch.tensor([[4.0, 8.0], [2.0, 99.0]]), gamma=0.5)
    paid_next(bonus)
    bonus.bonus(torch.zeros(2, 1), where=torch.tensor([True, False]))
    assert bonus.deviation.discounted.tolist() == [4.0, 8.0]
    bonus.learn()
    spread = (2 * (4 - 16 / 3) ** 2 + (8 - 16 / 3) ** 2) / 3
    assert bonus.divisor.item() == pytest.approx(spread**0.5)


@pytest.mark.parametrize("gamma", [1.0, -0.1])
def test_a_sum_that_would_not_end(gamma):
    with pytest.raises(ValueError, match="gamma must be at least 0 and below 1, got"):
        normalised(torch.zeros(1, 2), gamma=gamma)
