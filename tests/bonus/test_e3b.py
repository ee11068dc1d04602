"""E3B beside NumPy's inverse."""

import numpy as np
import pytest
import torch

from episodic_curiosity.bonus.e3b import E3B, E3BConfig
from episodic_curiosity.testing.bonuses import BonusConformance


def e3b(num_envs: int = 3, size: int = 5, device: str = "cpu") -> E3B:
    config = E3BConfig(embedding_size=size)
    return E3B((6,), num_envs, num_actions=4, config=config, num_steps=11, device=device)


class TestConformance(BonusConformance):
    def make(self, num_envs: int = 3, device: str = "cpu") -> E3B:
        return e3b(num_envs, device=device)


def test_beside_numpys_inverse():
    """500 steps x 3 environments x 7 features; the last episodes are 400 steps long."""
    bonus, draw = e3b(size=7), np.random.default_rng(0)
    matrices = np.tile(0.1 * np.eye(7), (3, 1, 1))
    mixing = draw.normal(0, 1, (7, 7))  # features that depend on each other
    for time in range(500):
        embedding = draw.normal(0.3, 1, (3, 7)) @ mixing
        rows = draw.random(3) < 0.8
        opens = rows & (draw.random(3) < 0.1 * (time < 100))
        matrices[opens] = 0.1 * np.eye(7)
        expected = [
            each @ np.linalg.inv(matrix) @ each
            for each, matrix in zip(embedding, matrices, strict=True)
        ]
        matrices += rows[:, None, None] * embedding[:, :, None] * embedding[:, None]
        embedding[~rows] = np.nan
        found = bonus.rate(
            torch.from_numpy(embedding).float(), torch.from_numpy(opens), torch.from_numpy(rows)
        )
        np.testing.assert_allclose(found[rows], np.array(expected)[rows], rtol=2e-3)
        assert (found[~rows] == 0).all()
    drift = np.abs(bonus.inverted.numpy() - np.linalg.inv(matrices)).max()
    assert drift < 1e-4
    assert torch.equal(bonus.inverted, bonus.inverted.transpose(1, 2))


def test_by_hand():
    bonus, yes, no = e3b(1, size=2), torch.tensor([True]), torch.tensor([False])
    one = torch.tensor([[1.0, 0.0]])
    assert bonus.rate(one, yes, yes).item() == pytest.approx(1 / 0.1)
    assert bonus.rate(one, no, yes).item() == pytest.approx(1 / 1.1)
    assert bonus.rate(one, no, yes).item() == pytest.approx(1 / 2.1)
    assert bonus.rate(one.flip(1), no, yes).item() == pytest.approx(
        1 / 0.1
    )  # another direction
    assert bonus.rate(one, yes, yes).item() == pytest.approx(1 / 0.1)  # another episode


def test_bad_input():
    with pytest.raises(
        ValueError, match="embedding_size must be an integer of at least 1, got 0"
    ):
        E3BConfig(embedding_size=0)
    for name in ("scale", "ridge", "learning_rate"):
        with pytest.raises(ValueError, match=f"{name} must be a finite number above 0, got -1"):
            E3BConfig(**{name: -1})
