"""ETD: its quasi-metric, InfoNCE by hand, pairs, and a loop over environments beside it."""

import itertools
import math

import numpy as np
import pytest
import torch

from episodic_curiosity.bonus import quasimetric as quasimetric_module
from episodic_curiosity.bonus.etd import ETD, ETDConfig, steps_ahead, steps_left
from episodic_curiosity.bonus.memory import EpisodicMemory
from episodic_curiosity.bonus.quasimetric import (
    all_distances,
    distance_from_memory,
    info_nce,
    quasimetric,
)
from episodic_curiosity.testing.bonuses import BonusConformance


def etd(num_envs: int = 3, device: str = "cpu", **changes) -> ETD:
    config = ETDConfig(**({"memory_capacity": 7, "embedding_size": 4} | changes))
    return ETD((6,), num_envs, config, num_steps=11, seed=1, device=device)


class TestConformance(BonusConformance):
    def make(self, num_envs: int = 3, device: str = "cpu") -> ETD:
        return etd(num_envs, device)

    def alone(self, env: int) -> ETD:
        bonus = self.make(num_envs=1)
        bonus.memory.streams.fill_(env)
        return bonus


def plain_distance(origin: np.ndarray, goal: np.ndarray) -> float:
    half = len(origin) // 2
    one_way = max(0.0, *(origin[:half] - goal[:half]))
    return one_way + math.sqrt(((origin[half:] - goal[half:]) ** 2).sum())


def test_the_quasimetric_by_hand():
    x, y = torch.tensor([1.0, 5.0, 0.0, 0.0]), torch.tensor([4.0, 3.0, 3.0, 4.0])
    assert quasimetric(x, y) == 2 + 5  # max(1 - 4, 5 - 3), and a triangle of 3, 4, 5
    assert quasimetric(y, x) == 3 + 5


def test_the_quasimetric_is_one():
    points = torch.randn(9, 10, generator=torch.Generator().manual_seed(0))
    distance = quasimetric(points[:, None], points[None])
    expected = [[plain_distance(x, y) for y in points.numpy()] for x in points.numpy()]
    np.testing.assert_allclose(distance, expected, rtol=1e-5)
    assert (distance.diagonal() == 0).all()
    assert (distance >= 0).all()
    assert not torch.allclose(distance, distance.T)
    for x, y, z in itertools.product(range(9), repeat=3):
        assert distance[x, z] <= distance[x, y] + distance[y, z] + 1e-6


def test_gradients_are_finite_where_observations_are_equal():
    points = torch.ones(3, 4, requires_grad=True)
    quasimetric(points[:, None], points[None]).sum().backward()
    assert points.grad.isfinite().all()


def test_the_kernels_compute_the_plain_formula():
    """B = 5, C = 23, D = 37, no complete vector registers; some pairs are equal, some differ
    equally in two places, and some have only one part of the distance."""
    generator = torch.Generator().manual_seed(2)
    origin, goal = (torch.randn(n, 74, generator=generator) for n in (5, 23))
    goal[3] = origin[1]
    goal[4, :37] = origin[2, :37] + 1
    goal[5, 37:] = origin[3, 37:]
    goal[6, :37] = origin[4, :37] - 0.5  # all differences are equal
    goal[7, :37] = origin[0, :37].round()
    origin[0, :37] = goal[7, :37]
    origin[0, :2] += 1  # two are
    weight = torch.randn(5, 23, generator=generator)
    found = {}
    for distances in (all_distances, lambda x, y: quasimetric(x[:, None], y[None])):
        x, y = origin.clone().requires_grad_(), goal.clone().requires_grad_()
        distance = distances(x, y)
        (distance * weight).sum().backward()
        found[distances] = distance.detach(), x.grad, y.grad
    kernels, plain = found.values()
    for ours, theirs in zip(kernels, plain, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-5)
    assert plain[0][1, 3] == 0
    assert (kernels[0][1] == 0).sum() == 1


@pytest.mark.parametrize("filled", [[0, 3, 9, 2], [9, 9, 9, 9]])
def test_the_kernel_finds_the_nearest_slot(filled, monkeypatch):
    """N = 4, K = 9, D = 5; slots that are not filled would be nearer."""
    generator = torch.Generator().manual_seed(4)
    memory, embedding = EpisodicMemory(4, 9, 10), torch.randn(4, 10, generator=generator)
    memory.embeddings.copy_(embedding[:, None])
    memory.added.copy_(torch.tensor(filled))
    for env, count in enumerate(filled):
        memory.embeddings[env, :count] = torch.randn(count, 10, generator=generator)
    expected = [
        min((plain_distance(slot, here) for slot in slots[:count].numpy()), default=0.0)
        for slots, here, count in zip(memory.embeddings, embedding.numpy(), filled, strict=True)
    ]
    np.testing.assert_allclose(distance_from_memory(memory, embedding), expected, rtol=1e-5)
    embedding[2] = torch.nan
    assert distance_from_memory(memory, embedding)[2].isnan()
    monkeypatch.setattr(quasimetric_module, "HAS_NUMBA", False)
    found = distance_from_memory(memory, embedding)
    np.testing.assert_allclose(found[[0, 1, 3]], np.array(expected)[[0, 1, 3]], rtol=1e-5)


def test_without_numba_the_same_is_learnt(monkeypatch):
    """Rows that end at different times; 11 steps x 3 environments are one batch of 8."""
    states, losses = [], []
    for has_numba in (True, False):
        monkeypatch.setattr(quasimetric_module, "HAS_NUMBA", has_numba)
        bonus, generator = etd(), torch.Generator().manual_seed(5)
        bonus.begin(torch.rand(3, 6, generator=generator))
        for _ in range(11):
            bonus.bonus(torch.rand(3, 6, generator=generator))
        losses.append(bonus.learn()["etd_loss"])
        states.append(bonus.model.state_dict())
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)
    for name, weight in states[0].items():
        torch.testing.assert_close(weight, states[1][name], rtol=1e-4, atol=1e-5)


def test_info_nce_by_hand():
    """4 x 4: each row's softmax of c(y) - d(x, y), on the diagonal."""
    distance = torch.tensor([[1.0, 2, 3, 4], [2.0, 0, 1, 5], [3.0, 3, 3, 3], [0.0, 1, 0, 2]])
    potential = torch.tensor([0.0, 1.0, -1.0, 0.5])
    losses = []
    for row in range(4):
        energies = [potential[j].item() - distance[row, j].item() for j in range(4)]
        total = sum(math.exp(energy) for energy in energies)
        losses.append(math.log(total) - energies[row])
    assert info_nce(distance, potential).item() == pytest.approx(sum(losses) / 4)


def test_beside_a_loop():
    """80 steps x 3 environments; rows are left out."""
    bonus, draw = etd(memory_capacity=100), np.random.default_rng(0)
    memories = [[], [], []]
    for time in range(80):
        embedding = draw.normal(0, 1, (3, 8))
        rows = draw.random(3) < 0.8
        opens = rows & (draw.random(3) < 0.05) | (time == 0)
        rows |= opens
        shown = np.where(rows[:, None], embedding, np.nan)
        found = bonus.rate(
            torch.from_numpy(shown).float(), torch.from_numpy(opens), torch.from_numpy(rows)
        )
        for env in rows.nonzero()[0]:
            memories[env] = [] if opens[env] else memories[env]
            distances = [plain_distance(stored, embedding[env]) for stored in memories[env]]
            expected = min(distances, default=0.0)
            assert found[env].item() == pytest.approx(expected, rel=1e-4)
            memories[env].append(embedding[env])


def test_steps_left():
    first = torch.tensor([[1, 0], [0, 0], [0, 1], [1, 0], [0, 0]]).bool()
    assert steps_left(first).tolist() == [[2, 1], [1, 0], [0, 2], [1, 1], [0, 0]]
    assert steps_left(first[:0]).shape == (0, 2)


def test_steps_ahead_are_geometric_within_the_bound():
    draw = (torch.arange(200_000) + 0.5) / 200_000
    ahead = steps_ahead(draw, torch.full((200_000,), 4), gamma=0.5)
    share = ahead.bincount(minlength=6) / 200_000
    expected = torch.tensor([0.0, 8, 4, 2, 1, 0]) / 15
    torch.testing.assert_close(share, expected, atol=1e-4, rtol=0)
    assert (steps_ahead(draw, torch.ones(200_000, dtype=torch.int64), gamma=0.99) == 1).all()


def test_distance_in_time_is_learnt():
    """On a ring of 12 places that is walked one way, the way back is the longer one."""
    places = torch.eye(12)
    config = ETDConfig(gamma=0.5, learning_rate=3e-3)
    bonus = ETD((12,), 4, config, num_steps=60, seed=0)
    at = torch.tensor([0, 3, 6, 9])
    bonus.begin(places[at])
    for _ in range(60):
        at = (at + 1) % 12
        bonus.bonus(places[at])
    told = [bonus.learn()["etd_loss"] for _ in range(20)]
    assert told[-1] < told[0] - 0.2  # equal places in a batch cannot be told apart
    with torch.no_grad():
        embedding = bonus.model.embed(places)
    ahead = [quasimetric(embedding, embedding.roll(-j, 0)).mean().item() for j in range(12)]
    assert ahead[:8] == sorted(ahead[:8])
    assert ahead[1] < 0.3 * ahead[11]  # one step back is eleven ahead


def test_bad_input():
    with pytest.raises(ValueError, match="gamma must be above 0 and below 1, got 1"):
        ETDConfig(gamma=1)
    with pytest.raises(
        ValueError, match="embedding_size must be an integer of at least 1, got 0"
    ):
        ETDConfig(embedding_size=0)
    with pytest.raises(ValueError, match="learn needs a rollout, or num_steps of at least 1"):
        ETD((6,), 3, num_steps=0).learn()
    shown = etd()
    shown.begin(torch.zeros(3, 6))
    with pytest.raises(TypeError, match=r"of dtype torch\.float32, got torch\.uint8"):
        shown.bonus(torch.zeros(3, 6, dtype=torch.uint8))
    with pytest.raises(ValueError, match=r"has 4 unexpected tensors, first recorded\.added"):
        ETD((6,), 3, etd().config, num_steps=0).load_state_dict(shown.state_dict())
