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
    assert drift < 1e-9
    assert torch.equal(bonus.inverted, bonus.inverted.transpose(1, 2))


@pytest.mark.parametrize("length", [50.0, 1e9])
def test_long_embeddings_beside_numpys_inverse(length):
    """500 steps x 128 features of |phi| = `length`, or of the longest that is not shortened."""
    bonus, draw = e3b(2, size=128), np.random.default_rng(0)
    matrices = np.tile(0.1 * np.eye(128), (2, 1, 1))
    yes, no = torch.ones(2, dtype=torch.bool), torch.zeros(2, dtype=torch.bool)
    mixing = draw.normal(0, 1, (4, 128))  # few directions: C is near singular
    for time in range(500):
        embedding = draw.normal(0, 1, (2, 4)) @ mixing + 1e-4 * draw.normal(0, 1, (2, 128))
        embedding *= length / np.linalg.norm(embedding, axis=1, keepdims=True)
        embedding = embedding.astype(np.float32)
        found = bonus.rate(torch.from_numpy(embedding), no, yes).numpy()
        embedding = embedding.astype(np.float64) * min(1, 10**3.5 / length)  # 1e7 = 1e8 * 0.1
        expected = [
            each @ np.linalg.solve(matrix, each)
            for each, matrix in zip(embedding, matrices, strict=True)
        ]
        matrices += embedding[:, :, None] * embedding[:, None]
        assert np.isfinite(found).all(), time
        assert (found >= 0).all(), time
        np.testing.assert_allclose(found, expected, rtol=1e-3)


def test_what_cannot_fit_is_refused(monkeypatch):
    """C^-1 of 2 environments is 2 * 128 * 128 * 8 bytes; the ring is smaller."""
    monkeypatch.setattr("episodic_curiosity.support.machine.free_bytes", lambda _: 262_143)
    with pytest.raises(MemoryError, match=r"E3B of 2 environments needs .*: lower `num_envs`"):
        e3b(2, size=128)
    with pytest.raises(MemoryError, match="room for 6000 steps x 2 environments needs"):
        E3B((6,), 2, num_actions=4, num_steps=6000)


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
