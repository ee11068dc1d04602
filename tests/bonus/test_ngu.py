"""NGU beside a loop over environments, its kernel and caps by hand."""

import math

import numpy as np
import pytest
import torch

from episodic_curiosity.bonus.ngu import NGU, NGUConfig
from episodic_curiosity.testing.bonuses import BonusConformance


def ngu(num_envs: int = 3, size: int = 5, **changes) -> NGU:
    config = NGUConfig(**({"k": 4, "memory_capacity": 7, "embedding_size": size} | changes))
    return NGU((6,), num_envs, num_actions=4, config=config, num_steps=11, seed=1)


class TestConformance(BonusConformance):
    def make(self, num_envs: int = 3, device: str = "cpu") -> NGU:
        config = NGUConfig(k=3, memory_capacity=6, embedding_size=5)
        return NGU((6,), num_envs, num_actions=4, config=config, num_steps=11, device=device)


class TestConformanceOfContinuousActions(BonusConformance):
    num_actions = 0
    action_shape = (2,)

    def make(self, num_envs: int = 3, device: str = "cpu") -> NGU:
        return NGU((6,), num_envs, action_shape=(2,), num_steps=11, device=device)


class Plain:
    """One environment, as the paper's Algorithm 1 reads."""

    def __init__(self) -> None:
        self.memory, self.average, self.number = [], 0.0, 0

    def rate(self, embedding: np.ndarray, opens: bool) -> float:
        if opens:
            self.memory = []
        similarity = 1e-3
        if self.memory:
            nearest = sorted(((embedding - stored) ** 2).sum() for stored in self.memory)[:4]
            self.number += 1
            weight = max(1 / self.number, 0.01)
            self.average += weight * (np.mean(nearest) - self.average)
            apart = [max(distance / self.average - 8e-3, 0) for distance in nearest]
            similarity += math.sqrt(sum(1e-3 / (each + 1e-3) for each in apart))
        self.memory = [*self.memory, embedding][-7:]
        return 0.0 if similarity > 8 else 1 / similarity


@pytest.mark.parametrize("way", ["rate_at_once", "rate_in_torch"])
def test_beside_a_loop(way):
    """300 steps x 3 environments of places that are revisited; rows are left out."""
    bonus, plain = ngu(), [Plain() for _ in range(3)]
    draw = np.random.default_rng(0)
    places = draw.normal(2, 1, (12, 5))
    for time in range(300):
        embedding = places[draw.integers(12, size=3)] + draw.normal(0, 0.01, (3, 5))
        rows = draw.random(3) < 0.8
        opens = rows & (draw.random(3) < 0.05) | (time == 0)
        rows |= opens
        embedding[~rows] = np.nan
        found = getattr(bonus, way)(
            torch.from_numpy(embedding).float(), torch.from_numpy(opens), torch.from_numpy(rows)
        )
        for env in rows.nonzero()[0]:
            expected = plain[env].rate(embedding[env], opens[env])
            assert found[env].item() == pytest.approx(expected, rel=2e-3)


def test_the_kernel_leaves_the_state_that_torch_does():
    """70 steps x 5 environments, D = 33: more than a memory, and no whole vector registers."""
    ways = {"rate_at_once": ngu(5, 33), "rate_in_torch": ngu(5, 33)}
    generator = torch.Generator().manual_seed(3)
    for time in range(70):
        embedding = torch.randn(5, 33, generator=generator)
        rows = torch.rand(5, generator=generator) < 0.9
        opens = rows & (torch.rand(5, generator=generator) < 0.05) | (time == 0)
        rows |= opens
        paid = {way: getattr(ngu, way)(embedding, opens, rows) for way, ngu in ways.items()}
        torch.testing.assert_close(paid["rate_at_once"][rows], paid["rate_in_torch"][rows])
    ours, theirs = (bonus.state_dict() for bonus in ways.values())
    for name in ("memory.embeddings", "memory.added", "memory.draws", "averaged"):
        assert torch.equal(ours[name], theirs[name])
    torch.testing.assert_close(ours["distance"], theirs["distance"])
    assert ours["memory.added"].max() > 7


def test_a_wrong_embedding_leaves_no_trace():
    bonus, yes = ngu(), torch.ones(3, dtype=torch.bool)
    with pytest.raises(ValueError, match=r"embedding must have shape \(3, 5\)"):
        bonus.rate(torch.zeros(3, 4), ~yes, yes)
    assert bonus.memory.added.tolist() == [0, 0, 0]


def test_the_kernel_by_hand():
    bonus = ngu(num_envs=1, size=1, c=0.25, kernel_epsilon=0.5, cluster_distance=0.5)
    yes, no = torch.tensor([True]), torch.tensor([False])
    bonus.rate(torch.tensor([[0.0]]), yes, yes)
    # d^2 is 4, and so is its average: 0.5 / (1 - 0.5 + 0.5).
    found = bonus.rate(torch.tensor([[2.0]]), no, yes)
    assert found.item() == pytest.approx(1 / (math.sqrt(0.5) + 0.25))
    # d^2 are 0 and 4, their mean 2, and the average of 4 and 2 is 3; the first is the same
    # place: 0.5 / 0.5, and 0.5 / (4 / 3 - 0.5 + 0.5).
    found = bonus.rate(torch.tensor([[0.0]]), no, yes)
    assert bonus.distance.item() == pytest.approx(3)
    assert found.item() == pytest.approx(1 / (math.sqrt(1 + 0.375) + 0.25))


def test_nothing_is_paid_above_the_largest_similarity():
    yes, no = torch.tensor([True]), torch.tensor([False])
    for most, expected in ((1.5, 1 / (1 + 1e-3)), (0.9, 0.0)):
        bonus = ngu(num_envs=1, size=1, most_similar=most)
        bonus.rate(torch.tensor([[0.0]]), yes, yes)
        found = bonus.rate(torch.tensor([[0.0]]), no, yes)
        assert found.item() == pytest.approx(expected)


def test_the_lifelong_factor_by_hand():
    lifelong = ngu().lifelong
    seen = torch.randn(3, 6, generator=torch.Generator().manual_seed(0))
    everywhere = torch.ones(3, dtype=torch.bool)
    error = lifelong.distillation(seen).error.detach()
    assert lifelong.factor(seen, where=everywhere).tolist() == [1.0] * 3
    assert lifelong.past.sums[0] == 0  # nothing is whitened yet
    lifelong.mean.fill_(error.median())
    lifelong.spread.fill_(error.max() - error.median())
    expected = torch.ones(3)
    expected[error.argmax()] = 2.0
    torch.testing.assert_close(lifelong.factor(seen, where=everywhere).detach(), expected)
    lifelong.spread.fill_(1e-9)
    assert lifelong.factor(seen, where=everywhere).max() == 5  # L

    lifelong.distillation.whitening.count.fill_(1)
    lifelong.past.sums.zero_()
    lifelong.factor(seen, where=torch.tensor([True, False, True]))
    lifelong.learn(seen)
    two = error[[0, 2]].double().numpy()
    assert lifelong.mean.item() == pytest.approx(two.mean())
    assert lifelong.spread.item() == pytest.approx(two.std(), rel=1e-3)


def test_the_action_is_learnt():
    """Action a moves by a in the first coordinate: the inverse model finds out."""
    bonus = NGU((6,), 16, num_actions=3, num_steps=8, seed=0)
    generator = torch.Generator().manual_seed(0)
    place, told = torch.randn(16, 6, generator=generator), []
    bonus.begin(place)
    for _ in range(40):
        for _ in range(8):
            action = torch.randint(3, (16,), generator=generator)
            place = 0.5 * place
            place[:, 0] += action
            bonus.bonus(place, action=action)
        told.append(bonus.learn()["inverse_loss"])
    assert told[0] == pytest.approx(math.log(3), abs=0.05)
    assert told[-1] < 0.3 * told[0]


def test_bad_input():
    with pytest.raises(ValueError, match="k must be at most memory_capacity 5, got 6"):
        NGUConfig(k=6, memory_capacity=5)
    with pytest.raises(
        ValueError, match="embedding_size must be an integer of at least 1, got 0"
    ):
        NGUConfig(embedding_size=0)
    with pytest.raises(
        ValueError, match="most_lifelong must be a finite number above 1, got 1"
    ):
        NGUConfig(most_lifelong=1)
    with pytest.raises(ValueError, match="needs num_actions or action_shape, got neither"):
        NGU((6,), 3)
    bonus, seen = ngu(), torch.zeros(3, 6)
    bonus.begin(seen)
    with pytest.raises(
        ValueError, match="needs the action that led to each step, got action=None"
    ):
        bonus.bonus(seen)
    with pytest.raises(ValueError, match=r"action must have shape \(3,\), got \(3, 1\)"):
        bonus.bonus(seen, action=torch.zeros(3, 1))
    with pytest.raises(ValueError, match=r"of dtype torch\.float32, got torch\.uint8"):
        bonus.bonus(seen.to(torch.uint8), action=torch.zeros(3, dtype=torch.int64))
    with pytest.raises(TypeError, match=r"action must be of dtype torch\.int64, got torch\.f"):
        bonus.bonus(seen, action=torch.zeros(3))
    with pytest.raises(ValueError, match=r"action must be one of 0 \.\. 3, got 4 in row 0"):
        bonus.bonus(seen, action=torch.full((3,), 4))
