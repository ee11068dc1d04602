"""NovelD beside a loop over environments, and its novelty test by hand."""

import numpy as np
import pytest
import torch

from episodic_curiosity.bonus.noveld import NovelD, NovelDConfig
from episodic_curiosity.bonus.rnd import RNDConfig
from episodic_curiosity.testing.bonuses import BonusConformance


def noveld(num_envs: int = 3, device: str = "cpu", **changes) -> NovelD:
    config = NovelDConfig(**({"scale": 2.0, "memory_capacity": 7} | changes))
    bonus = NovelD((6,), num_envs, config, num_steps=11, seed=1, device=device)
    bonus.deviation.divisor.fill_(0.5)  # it pays nothing while this is unknown
    return bonus


class TestConformance(BonusConformance):
    def make(self, num_envs: int = 3, device: str = "cpu") -> NovelD:
        return noveld(num_envs, device)

    def alone(self, env: int) -> NovelD:
        bonus = self.make(num_envs=1)
        bonus.memory.streams.fill_(env)
        return bonus


def test_beside_a_loop():
    """60 steps x 3 environments through 9 places, more than the memory of 7 would ever need."""
    bonus, draw = noveld(memory_capacity=9), np.random.default_rng(0)
    places = torch.from_numpy(draw.normal(0, 1, (9, 6))).float()
    error, target = (part.detach().double().numpy() for part in bonus.distillation(places))
    direction = target / np.linalg.norm(target, axis=1, keepdims=True)
    visited = [set() for _ in range(3)]
    before = np.zeros(3, dtype=int)
    for time in range(60):
        now = draw.integers(9, size=3)
        opens = (draw.random(3) < 0.1) | (time == 0)
        paid = bonus.bonus_same_step(places[now], torch.from_numpy(opens))
        for env in range(3):
            if opens[env]:
                visited[env] = set()
            similar = [direction[now[env]] @ direction[place] for place in visited[env]]
            is_new = max(similar, default=0.0) < 0.95
            gain = max(error[now[env]] - 0.5 * error[before[env]], 0)
            expected = 2 * gain / 0.5 * is_new * ~opens[env]
            assert paid[env].item() == pytest.approx(expected, rel=1e-4)
            if is_new:
                visited[env].add(now[env])
        before = now


def test_the_first_visit_is_what_the_novelty_test_says():
    """Directions within the threshold are one place, whatever their lengths."""
    bonus = noveld(num_envs=2, novelty_threshold=0.2)
    target = torch.zeros(2, 512)

    def visit(cosine: float, *, opens: tuple[bool, bool] = (False, False)) -> list[bool]:
        target[:, 0], target[:, 1] = 3 * cosine, 3 * (1 - cosine**2) ** 0.5
        everywhere = torch.ones(2, dtype=torch.bool)
        return bonus.remember(target, torch.tensor(opens), everywhere).tolist()

    assert visit(1.0, opens=(True, True)) == [True, True]
    assert visit(0.9) == [False, False]
    assert visit(0.7) == [True, True]
    assert visit(0.7) == [False, False]
    assert visit(1.0, opens=(False, True)) == [False, True]
    assert bonus.memory.count.tolist() == [2, 1]


def test_a_step_to_the_better_known_pays_nothing():
    bonus = noveld(alpha=1.0)
    places = torch.randn(3, 6, generator=torch.Generator().manual_seed(0))
    error = bonus.distillation(places).error.detach()
    worst, best = places[error.argmax()].expand(3, 6), places[error.argmin()].expand(3, 6)
    bonus.begin(worst)
    assert bonus.bonus(best).tolist() == [0.0] * 3
    bonus.begin(best)
    expected = 2 * (error.max() - error.min()) / 0.5
    torch.testing.assert_close(bonus.bonus(worst), expected.expand(3))
    bonus.bonus(best)
    assert bonus.bonus(worst).tolist() == [0.0] * 3  # not new


def test_bad_input():
    with pytest.raises(ValueError, match="alpha must be a finite number, got nan"):
        NovelDConfig(alpha=float("nan"))
    with pytest.raises(ValueError, match="memory_capacity must be an integer of at least 1"):
        NovelDConfig(memory_capacity=0)
    with pytest.raises(ValueError, match="scale must be a finite number above 0, got 0"):
        NovelDConfig(scale=0)
    with pytest.raises(TypeError, match="config must be a NovelDConfig, got RNDConfig"):
        NovelD((4,), 3, RNDConfig())
    with pytest.raises(TypeError, match="unexpected keyword argument 'sed'"):
        NovelD((4,), 3, sed=1)
