"""The public face: the README's example, ECO, state, and what it refuses."""

import numpy as np
import pytest
import torch

import episodic_curiosity as ec
from examples.ring import VIEW_SHAPE, Ring

NUM_ENVS = 4
OFTEN = ec.OnlineConfig(
    refit_every=120 * NUM_ENVS,
    history=200 * NUM_ENVS,
    fit=ec.FitConfig(iterations=3, batch_size=8, pairs=ec.PairsConfig(sampler="online")),
)


def curious(seed: int = 0, **arguments) -> ec.EpisodicCuriosity:
    torch.manual_seed(0)
    r_network = ec.RNetwork(view_shape=VIEW_SHAPE)
    return ec.EpisodicCuriosity(r_network, NUM_ENVS, online=OFTEN, seed=seed, **arguments)


def run(curiosity: ec.EpisodicCuriosity, ring: Ring, times: range) -> list[torch.Tensor]:
    bonuses = []
    for time in times:
        first = torch.full((NUM_ENVS,), time % 80 == 0)
        bonuses.append(curiosity.bonus(ring.view(), first))
        curiosity.learn(ring.view(), first)
        ring.walk()
    return bonuses


def test_eco_pays_nothing_before_its_first_fit_and_something_after():
    curiosity, ring = curious(alpha=1.0), Ring(num_envs=NUM_ENVS)
    before = torch.stack(run(curiosity, ring, range(120)))  # the fit is due at step 120
    assert (before == 0).all()
    assert curiosity.metrics()["r_network_fitted"] == 1
    assert curiosity.memory.count.tolist() == [0] * NUM_ENVS  # emptied at the refit
    after = torch.stack(run(curiosity, ring, range(121, 150)))
    assert (after != 0).all()


def test_learn_reports_when_it_has_refitted():
    curiosity, ring = curious(), Ring(num_envs=NUM_ENVS)
    reports = []
    for time in range(250):
        reports.append(curiosity.learn(ring.view(), torch.full((NUM_ENVS,), time == 0)))
        ring.walk()
    assert [time for time, report in enumerate(reports) if report] == [119, 239]
    assert set(reports[119]) == {
        "r_network_accuracy",
        "r_network_training_accuracy",
        "r_network_loss",
    }
    assert curiosity.metrics()["r_network_accuracy"] == reports[239]["r_network_accuracy"]


def test_episodes_too_short_to_learn_from_are_a_warning_not_the_end():
    curiosity, ring = curious(), Ring(num_envs=NUM_ENVS)
    for time in range(119):
        curiosity.learn(ring.view(), torch.full((NUM_ENVS,), time % 9 == 0))
    with pytest.warns(RuntimeWarning, match="not refitted: no unreachable pair could be drawn"):
        curiosity.learn(ring.view(), torch.zeros(NUM_ENVS, dtype=torch.bool))
    assert curiosity.metrics()["r_network_fitted"] == 0


def test_metrics_by_hand():
    curiosity, ring = curious(alpha=1.0), Ring(num_envs=NUM_ENVS)
    curiosity.r_network.fitted.fill_(True)
    paid = torch.stack(run(curiosity, ring, range(7)))[1:]  # the first step is not paid for
    metrics = curiosity.metrics()
    assert metrics["bonus_mean"] == pytest.approx(paid.mean().item(), rel=1e-5)
    assert metrics["bonus_spread"] == pytest.approx(paid.std(correction=0).item(), rel=1e-5)
    assert metrics["memory_fill"] == curiosity.memory.count.sum().item() / NUM_ENVS / 200
    assert curiosity.metrics()["bonus_mean"] == 0  # counted since it was last asked


def test_a_loaded_state_goes_on_to_the_bit_through_a_refit(tmp_path):
    """Saved as a user would: one file that holds tensors and numbers, nothing executable."""
    one, ring = curious(seed=3, memory_capacity=6), Ring(num_envs=NUM_ENVS)
    run(one, ring, range(170))
    torch.save(one.state_dict(), tmp_path / "state.pt")
    other = curious(seed=99, memory_capacity=6)
    other.load_state_dict(torch.load(tmp_path / "state.pt", weights_only=True))
    same_ring = Ring(num_envs=NUM_ENVS)
    same_ring.place, same_ring.direction = ring.place.clone(), ring.direction.clone()
    same_ring.generator.set_state(ring.generator.get_state())
    expected, found = run(one, ring, range(170, 380)), run(other, same_ring, range(170, 380))
    assert torch.equal(torch.stack(expected), torch.stack(found))
    assert one.metrics() == other.metrics()
    assert one._online.num_fits == other._online.num_fits == 3


def test_arrays_are_welcome():
    one, other, ring = curious(), curious(), Ring(num_envs=NUM_ENVS)
    first = np.zeros(NUM_ENVS, dtype=bool)
    view = ring.view()
    expected = one.bonus(view, torch.from_numpy(first))
    assert torch.equal(other.bonus(view.numpy(), first), expected)
    assert other.learn(view.numpy(), first) == {}


def test_nothing_waits_for_the_device():
    """On the meta device there are no values: asking for one, as `.item()` does, raises."""
    for comparator in ("mlp", "dot"):
        r_network = ec.RNetwork(VIEW_SHAPE, comparator=comparator).to("meta")
        curiosity = ec.EpisodicCuriosity(r_network, NUM_ENVS)
        view = torch.empty((NUM_ENVS, *VIEW_SHAPE), dtype=torch.uint8, device="meta")
        first = torch.empty(NUM_ENVS, dtype=torch.bool, device="meta")
        assert curiosity.bonus(view, first).shape == (NUM_ENVS,)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_the_bonus_can_be_captured_in_a_cuda_graph():
    for comparator in ("mlp", "dot"):
        torch.manual_seed(0)
        r_network = ec.RNetwork(VIEW_SHAPE, comparator=comparator).to("cuda")
        r_network.fitted.fill_(True)
        eager = ec.EpisodicCuriosity(r_network, NUM_ENVS, memory_capacity=6)
        captured = ec.EpisodicCuriosity(r_network, NUM_ENVS, memory_capacity=6)
        view = torch.zeros((NUM_ENVS, *VIEW_SHAPE), dtype=torch.uint8, device="cuda")
        first = torch.zeros(NUM_ENVS, dtype=torch.bool, device="cuda")
        start = captured.state_dict()["memory"]
        start = {name: value.clone() for name, value in start.items()}
        side = torch.cuda.Stream()
        with torch.cuda.stream(side):
            captured.bonus(view, first)
        side.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            bonus = captured.bonus(view, first)
        captured.memory.load_state_dict(start)
        for time in range(60):
            view.random_(0, 256)
            first.fill_(time % 20 == 0)
            expected = eager.bonus(view, first)
            graph.replay()
            torch.testing.assert_close(bonus, expected)
        assert torch.equal(captured.memory.count, eager.memory.count)


GOOD_VIEW = torch.zeros(NUM_ENVS, *VIEW_SHAPE)
GOOD_FIRST = torch.zeros(NUM_ENVS, dtype=torch.bool)


@pytest.mark.parametrize("call", ["bonus", "learn"])
@pytest.mark.parametrize(
    ("view", "first", "error", "message"),
    [
        (GOOD_VIEW[:3], GOOD_FIRST, ValueError, r"view must have shape \(4, .* got \(3, "),
        (GOOD_VIEW[:, :1], GOOD_FIRST, ValueError, r"got \(4, 1, 16, 16\)"),
        (GOOD_VIEW, GOOD_FIRST[:3], ValueError, r"first must have shape \(4,\), got \(3,\)"),
        (
            GOOD_VIEW,
            GOOD_FIRST.long(),
            TypeError,
            r"first must be of dtype bool, got torch.int",
        ),
        (GOOD_VIEW.double(), GOOD_FIRST, TypeError, r"uint8 or float32, got torch.float64"),
        (GOOD_VIEW.to("meta"), GOOD_FIRST, ValueError, r"must be on cpu, got a tensor on meta"),
        (GOOD_VIEW / 0, GOOD_FIRST, ValueError, r"view must be finite, got NaN"),
        ("frame", GOOD_FIRST, TypeError, r"view must be a tensor, got str"),
    ],
)
def test_bad_calls_name_what_they_got_and_what_they_want(call, view, first, error, message):
    curiosity = curious()
    with pytest.raises(error, match=message):
        getattr(curiosity, call)(view, first)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"num_envs": 0}, "num_envs must be a whole number of at least 1, got 0"),
        ({"num_envs": 2.5}, r"num_envs must be a whole number of at least 1, got 2\.5"),
        ({"memory_capacity": 0}, "memory_capacity must be a whole number .* got 0"),
        ({"aggregate": "median"}, "aggregate must be one of percentile_90, .* got 'median'"),
        ({"online": {}}, "online must be an OnlineConfig, got dict"),
        (
            {"online": ec.OnlineConfig(refit_every=207)},
            "must be at least 208 for 2 environments, got 207 and 50000",
        ),
    ],
)
def test_bad_construction(arguments, message):
    with pytest.raises((ValueError, TypeError), match=message):
        ec.EpisodicCuriosity(ec.RNetwork(VIEW_SHAPE), **{"num_envs": 2, **arguments})
