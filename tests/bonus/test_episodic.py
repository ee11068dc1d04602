"""The bonus: by hand, beside a transcription of the paper, alone and in a batch."""

import pytest
import torch
from torch import Tensor

from episodic_curiosity.bonus.episodic import EpisodicBonus, EpisodicConfig
from episodic_curiosity.bonus.memory import EpisodicMemory
from episodic_curiosity.reachability.network import Embeddings, RNetwork
from episodic_curiosity.worlds.base import Step
from tests.bonus.transcription import AGGREGATES, OneEnvironment


class Corridor:
    """An R-network one can reason about: places are integers, reachable if 1 apart."""

    fitted = torch.tensor(True)
    held_out_accuracy = torch.tensor(0.75)

    def embed(self, place: Tensor) -> Embeddings:
        embedding = place[:, None].float()
        return Embeddings(embedding, embedding)

    def compare(self, stored: Tensor, asked: Tensor) -> Tensor:
        return ((stored - asked[:, None]).abs() <= 1).float().squeeze(-1)


def step(view, first) -> Step:
    view, first = torch.as_tensor(view), torch.as_tensor(first)
    nothing = torch.zeros_like(first)
    return Step(view, view, torch.zeros(len(first)), first, nothing, nothing)


def corridor(num_envs: int, **config) -> EpisodicBonus:
    config = EpisodicConfig(alpha=1.0, **config)
    memory = EpisodicMemory(num_envs, config.memory_capacity, 1, replacement=config.replacement)
    return EpisodicBonus(Corridor(), memory, config)


def test_a_new_place_pays_and_a_known_place_costs():
    ec = corridor(num_envs=3)
    assert ec.bonus(step([0, 0, 0], [True] * 3)).tolist() == [0.0, 0.0, 0.0]
    assert ec.bonus(step([9, 1, 0], [False] * 3)).tolist() == [0.5, -0.5, -0.5]
    assert ec.memory.count.tolist() == [2, 1, 1]  # only the novel one was remembered


def test_an_episode_begins_with_an_empty_memory():
    ec = corridor(num_envs=2, aggregate="max")
    ec.bonus(step([5, 5], [True, True]))
    assert ec.bonus(step([5, 5], [True, False])).tolist() == [0.0, -0.5]
    assert ec.bonus(step([9, 9], [False, False])).tolist() == [0.5, 0.5]
    assert ec.bonus(step([5, 5], [False, False])).tolist() == [-0.5, -0.5]
    assert ec.memory.count.tolist() == [2, 2]


def test_a_memory_emptied_in_mid_episode_begins_anew_without_pay():
    ec = corridor(num_envs=1)
    ec.bonus(step([0], [True]))
    ec.memory.clear(torch.tensor([True]))
    assert ec.bonus(step([9], [False])).tolist() == [0.0]
    assert ec.bonus(step([9], [False])).tolist() == [-0.5]


def test_the_novelty_threshold_is_exclusive():
    ec = corridor(num_envs=1, novelty_threshold=0.5)
    ec.bonus(step([0], [True]))
    assert ec.bonus(step([9], [False])).tolist() == [0.5]
    assert ec.memory.count.tolist() == [1]


def test_nothing_is_paid_before_the_first_fit():
    ec = corridor(num_envs=1)
    ec.r_network.fitted = torch.tensor(False)
    ec.bonus(step([0], [True]))
    assert ec.bonus(step([9], [False])).tolist() == [0.0]


def test_metrics_by_hand():
    ec = corridor(num_envs=2, memory_capacity=4)
    for places in ([0, 0], [10, 0], [20, 0], [30, 0]):
        ec.bonus(step(places, [places == [0, 0]] * 2))
    assert ec.metrics() == {
        "bonus_mean": 0.0,  # 0.5 for one environment and -0.5 for the other
        "bonus_spread": 0.5,
        "memory_fill": (4 + 1) / 2 / 4,
        "memory_full": 0.5,
        "r_network_accuracy": 0.75,
    }


@pytest.mark.slow
@pytest.mark.parametrize("comparator", ["mlp", "dot"])
@pytest.mark.parametrize("replacement", ["random", "fifo"])
@pytest.mark.parametrize("aggregate", AGGREGATES)
def test_the_batch_equals_the_paper_told_for_one_environment(
    aggregate, replacement, comparator
):
    """200 steps x 3 environments, 13 slots, embeddings of 12: unequal, so no axis can hide."""
    num_steps, num_envs, capacity = 200, 3, 13
    torch.manual_seed(1)
    r_network = random_r_network(comparator)
    views = torch.randn(num_steps, num_envs, 6)
    first = torch.rand(num_steps, num_envs) < 0.02  # episodes end at different times
    first[0] = True

    def in_a_batch(beta: float, threshold: float) -> tuple[Tensor, EpisodicMemory]:
        config = EpisodicConfig(
            alpha=0.7,
            beta=beta,
            novelty_threshold=threshold,
            aggregate=aggregate,
            memory_capacity=capacity,
            replacement=replacement,
        )
        memory = EpisodicMemory(
            num_envs, capacity, r_network.slot_size, replacement=replacement, seed=5
        )
        batch = EpisodicBonus(r_network, memory, config)
        bonuses = [batch.bonus(step(v, f)) for v, f in zip(views, first, strict=True)]
        return torch.stack(bonuses), memory

    everything, _ = in_a_batch(beta=1.0, threshold=-1.0)
    beta = 1.0 - everything.median().item() / 0.7  # now half is novel, half is not
    found, memory = in_a_batch(beta, threshold=0.01)

    alone = [
        OneEnvironment(
            lambda view: view,
            lambda stored, asked: r_network.reachable(stored[None], asked[None]).item(),
            alpha=0.7,
            beta=beta,
            threshold=0.01,
            f=aggregate,
            capacity=capacity,
            replacement=replacement,
            seed=5,
            env=env,
        )
        for env in range(num_envs)
    ]
    expected = torch.tensor(
        [
            [one.bonus(view, f.item()) for one, view, f in zip(alone, *now, strict=True)]
            for now in zip(views, first, strict=True)
        ]
    )
    assert memory.count.tolist() == [len(one.memory) for one in alone]
    assert all(one.replacements > 0 for one in alone)
    assert 0.03 < (found > 0.01).float().mean() < 0.97  # some are stored and some are not
    torch.testing.assert_close(found, expected, atol=1e-4, rtol=0)


@pytest.mark.parametrize("comparator", ["mlp", "dot"])
def test_a_batch_of_one_equals_a_batch_of_many(comparator):
    num_envs, capacity = 5, 6
    torch.manual_seed(2)
    r_network = random_r_network(comparator)

    def make(num_envs):
        memory = EpisodicMemory(num_envs, capacity, r_network.slot_size, seed=3)
        return EpisodicBonus(r_network, memory, EpisodicConfig(memory_capacity=capacity))

    many = make(num_envs)
    ones = [make(1) for _ in range(num_envs)]
    for env, one in enumerate(ones):
        one.memory.streams.fill_(env)
    for time in range(60):
        view = torch.randn(num_envs, 6)
        first = (torch.rand(num_envs) < 0.05) | (time == 0)
        together = many.bonus(step(view, first))
        apart = [
            one.bonus(step(view[e : e + 1], first[e : e + 1])) for e, one in enumerate(ones)
        ]
        torch.testing.assert_close(torch.cat(apart), together, atol=1e-6, rtol=0)
    assert torch.equal(torch.cat([one.memory.count for one in ones]), many.memory.count)


def random_r_network(comparator: str) -> RNetwork:
    """Random weights and statistics whose similarities spread over [0, 1]."""
    r_network = RNetwork((6,), comparator=comparator, embedding_size=12)
    with torch.no_grad():
        for name, buffer in r_network.named_buffers():
            if name.endswith("running_mean"):
                buffer.normal_(std=0.3)
            elif name.endswith("running_var"):
                buffer.uniform_(0.5, 1.5)
        some, others = torch.randn(500, 6), torch.randn(500, 6)
        spread = r_network(some, others).std()
        if comparator == "mlp":
            output = r_network.comparator.output
            output.weight /= spread
            output.bias[1] -= r_network(some, others).mean()
        else:
            for branch in r_network.branches:
                branch[-1].weight /= spread.sqrt()
                branch[-1].bias /= spread.sqrt()
    r_network.fitted.fill_(True)
    return r_network


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"aggregate": "mean"}, "aggregate must be one of percentile_90, .*, got 'mean'"),
        ({"memory_capacity": 0}, "memory_capacity must be an integer .* got 0"),
        ({"alpha": -1.0}, r"alpha must be a finite number above 0, got -1\.0"),
        ({"alpha": float("nan")}, "alpha must be a finite number above 0, got nan"),
        ({"alpha": "0.03"}, r"alpha must be a finite number above 0, got '0\.03'"),
        ({"beta": None}, "beta must be a finite number, got None"),
        (
            {"novelty_threshold": float("nan")},
            "novelty_threshold must be a finite number, got nan",
        ),
        ({"replacement": "lifo"}, "replacement must be one of random, fifo, got 'lifo'"),
    ],
)
def test_bad_configuration(config, message):
    with pytest.raises(ValueError, match=message):
        EpisodicConfig(**config)
