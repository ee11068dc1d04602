"""The bonus: by hand, beside a transcription of the paper, alone and in a batch."""

import pytest
import torch
from torch import Tensor

from episodic_curiosity.bonus.curiosity import EpisodicCuriosity
from episodic_curiosity.bonus.episodic import EpisodicBonus, EpisodicConfig
from episodic_curiosity.reachability.network import Embeddings, RNetwork
from tests.bonus.transcription import AGGREGATES, OneEnvironment


class Corridor:
    """An R-network one can reason about: places are integers, reachable if 1 apart."""

    device = torch.device("cpu")
    view_shape, slot_size = (1,), 1

    def __init__(self) -> None:
        self.fitted = torch.tensor(True)
        self.held_out_accuracy = torch.tensor(0.75)

    def embed(self, place: Tensor, where: Tensor | None = None) -> Embeddings:  # noqa: ARG002
        return Embeddings(place, place)

    def compare(self, stored: Tensor, asked: Tensor) -> Tensor:
        return ((stored - asked[:, None]).abs() <= 1).float().squeeze(-1)


def at(*places: float) -> Tensor:
    return torch.tensor(places, dtype=torch.float32)[:, None]


def corridor(num_envs: int, **config) -> EpisodicBonus:
    return EpisodicBonus(Corridor(), num_envs, EpisodicConfig(alpha=1.0, **config))


def test_a_new_place_pays_and_a_known_place_costs():
    ec = corridor(num_envs=3)
    ec.begin(at(0, 0, 0))
    assert ec.bonus(at(9, 1, 0)).tolist() == [0.5, -0.5, -0.5]
    assert ec.memory.count.tolist() == [2, 1, 1]  # only the novel one was remembered


def test_an_episode_begins_with_an_empty_memory():
    ec = corridor(num_envs=2, aggregate="max")
    ec.begin(at(5, 5))
    first = torch.tensor([True, False])
    assert ec.bonus_same_step(at(5, 5), first).tolist() == [0.0, -0.5]
    assert ec.bonus(at(9, 9)).tolist() == [0.5, 0.5]
    assert ec.bonus(at(5, 5)).tolist() == [-0.5, -0.5]
    assert ec.memory.count.tolist() == [2, 2]
    ec.begin(at(5, 5), where=first)
    assert ec.memory.count.tolist() == [1, 2]
    assert ec.bonus(at(9, 9)).tolist() == [0.5, -0.5]


def test_the_last_place_of_an_episode_is_paid_where_it_is_shown():
    """Unlike in `bonus_same_step`, which sees the first place of the next one instead."""
    ec = corridor(num_envs=2, aggregate="max")
    ec.begin(at(0, 0))
    assert ec.bonus(at(9, 9)).tolist() == [0.5, 0.5]
    ec.begin(at(20, torch.nan), where=torch.tensor([True, False]))
    assert ec.bonus(at(9, 9)).tolist() == [0.5, -0.5]


def test_a_memory_emptied_in_mid_episode_begins_anew_without_pay():
    ec = corridor(num_envs=1)
    ec.begin(at(0))
    ec.memory.clear(torch.tensor([True]))
    assert ec.bonus(at(9)).tolist() == [0.0]
    assert ec.bonus(at(9)).tolist() == [-0.5]


def test_the_novelty_threshold_is_exclusive():
    ec = corridor(num_envs=1, novelty_threshold=0.5)
    ec.begin(at(0))
    assert ec.bonus(at(9)).tolist() == [0.5]
    assert ec.memory.count.tolist() == [1]


def test_nothing_is_paid_before_the_first_fit():
    ec = corridor(num_envs=1)
    ec.r_network.fitted.fill_(False)
    ec.begin(at(0))
    assert ec.bonus(at(9)).tolist() == [0.0]


def test_metrics_by_hand():
    ec = corridor(num_envs=2, memory_capacity=4)
    ec.begin(at(0, 0))
    for place in (10, 20, 30):
        ec.bonus(at(place, 0))
    assert ec.metrics() == {
        "bonus_mean": 0.0,  # 0.5 for one environment and -0.5 for the other
        "bonus_spread": 0.5,
        "memory_fill": (4 + 1) / 2 / 4,
        "memory_full": 0.5,
        "r_network_fitted": 1.0,
        "r_network_accuracy": 0.75,
    }


def schedule(num_calls: int, num_envs: int) -> tuple[Tensor, Tensor]:
    """Masks (T, N) of rows that begin and that step; each is left out for 1 to 5 calls a time.

    Episodes have 2 to 60 steps.
    """
    begins, steps = torch.zeros(2, num_calls, num_envs, dtype=torch.bool)
    for env in range(num_envs):
        left = idle = 0
        for time in range(num_calls):
            if idle:
                idle -= 1
            elif left == 0:
                begins[time, env] = True
                left = int(torch.randint(2, 61, ()))
            else:
                steps[time, env] = True
                left -= 1
                idle = int(torch.randint(1, 6, ())) if torch.rand(()) < 0.2 else 0
    return begins, steps


@pytest.mark.slow
@pytest.mark.parametrize(("comparator", "sizes"), [("mlp", (3, 13, 12)), ("dot", (5, 9, 7))])
@pytest.mark.parametrize("replacement", ["random", "fifo"])
@pytest.mark.parametrize("aggregate", AGGREGATES)
def test_the_batch_equals_the_paper_told_for_one_environment(
    aggregate, replacement, comparator, sizes
):
    """300 calls; N, K and D are unequal, so that no axis can hide."""
    num_calls, (num_envs, capacity, embedding_size) = 300, sizes
    torch.manual_seed(1)
    r_network = random_r_network(comparator, embedding_size)
    begins, steps = schedule(num_calls, num_envs)
    views = torch.randn(num_calls, num_envs, 6)
    views[~(begins | steps)] = torch.nan
    options = {"alpha": 0.7, "aggregate": aggregate, "replacement": replacement}

    def in_a_batch(beta: float, threshold: float) -> tuple[Tensor, EpisodicCuriosity]:
        batch = EpisodicCuriosity(
            r_network,
            num_envs,
            beta=beta,
            novelty_threshold=threshold,
            memory_capacity=capacity,
            seed=5,
            **options,
        )
        paid = []
        for view, opens, stepped in zip(views, begins, steps, strict=True):
            batch.begin(view, where=opens)
            paid.append(batch.bonus(view, where=stepped))
        return torch.stack(paid), batch

    everything, _ = in_a_batch(beta=1.0, threshold=-1.0)
    beta = 1.0 - everything[steps].median().item() / 0.7  # now half is novel, half is not
    found, batch = in_a_batch(beta, threshold=0.01)

    expected = torch.zeros(num_calls, num_envs)
    for env in range(num_envs):
        view = views[:, env].nan_to_num()
        episode = begins[:, env].cumsum(dim=0)
        stored, asked = torch.combinations(torch.arange(num_calls)).T
        stored, asked = torch.stack([stored, asked])[:, episode[stored] == episode[asked]]
        reachable = r_network.reachable(view[stored], view[asked]).tolist()
        pairs = zip(stored.tolist(), asked.tolist(), strict=True)
        table = dict(zip(pairs, reachable, strict=True))
        alone = OneEnvironment(
            lambda time: time,  # an observation is known by its time
            lambda stored, asked, table=table: table[stored, asked],
            beta=beta,
            threshold=0.01,
            capacity=capacity,
            seed=5,
            env=env,
            **options,
        )
        for time in range(num_calls):
            if begins[time, env]:
                alone.begin(time)
            elif steps[time, env]:
                expected[time, env] = alone.bonus(time)
        held = batch.memory.embeddings[env, : len(alone.memory)]
        stored = r_network.embed(view[alone.memory]).stored
        torch.testing.assert_close(held, stored, atol=1e-4, rtol=1e-4)
        assert batch.memory.count[env] == len(alone.memory)
        assert alone.replacements > 0
    assert 0.03 < (found > 0.01)[steps].float().mean() < 0.97  # some are stored, some are not
    torch.testing.assert_close(found, expected, atol=1e-4, rtol=0)


def random_r_network(comparator: str, embedding_size: int = 12) -> RNetwork:
    """Random weights and statistics whose similarities spread over [0, 1]."""
    r_network = RNetwork((6,), comparator=comparator, embedding_size=embedding_size)
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
