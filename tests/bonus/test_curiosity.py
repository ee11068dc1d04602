"""The public face: the README's example, ECO, state, and what it refuses."""

import io

import numpy as np
import pytest
import torch

import episodic_curiosity as ec
from examples.ring import VIEW_SHAPE, Ring

NUM_ENVS = 4
OFTEN = ec.OnlineConfig(
    refit_every=210 * NUM_ENVS,
    history=260 * NUM_ENVS,
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
        bonuses.append(curiosity.bonus_same_step(ring.view(), first))
        curiosity.learn()
        ring.walk()
    return bonuses


def test_eco_pays_nothing_before_its_first_fit_and_something_after():
    curiosity, ring = curious(alpha=1.0), Ring(num_envs=NUM_ENVS)
    before = torch.stack(run(curiosity, ring, range(210)))  # the fit is due at step 210
    assert (before == 0).all()
    assert curiosity.metrics()["r_network_fitted"] == 1
    assert curiosity.memory.count.tolist() == [0] * NUM_ENVS  # emptied at the refit
    after = torch.stack(run(curiosity, ring, range(211, 240)))
    assert (after[0] == 0).all()  # nothing to compare with yet
    assert (after[1:] != 0).all()


def test_learn_reports_when_it_has_refitted():
    curiosity, ring = curious(), Ring(num_envs=NUM_ENVS)
    reports = []
    for time in range(430):
        curiosity.bonus_same_step(ring.view(), torch.full((NUM_ENVS,), time == 0))
        reports.append(curiosity.learn())
        ring.walk()
    assert [time for time, report in enumerate(reports) if report] == [209, 419]
    assert set(reports[209]) == {
        "r_network_accuracy",
        "r_network_training_accuracy",
        "r_network_loss",
    }
    assert curiosity.metrics()["r_network_accuracy"] == reports[419]["r_network_accuracy"]


def test_episodes_too_short_to_learn_from_are_a_warning_not_the_end():
    curiosity, ring = curious(), Ring(num_envs=NUM_ENVS)
    for time in range(210):
        assert curiosity.learn() == {}
        curiosity.bonus_same_step(ring.view(), torch.full((NUM_ENVS,), time % 9 == 0))
    with pytest.warns(RuntimeWarning, match="not refitted: no unreachable pair could be drawn"):
        assert curiosity.learn() == {}
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
    run(one, ring, range(300))
    torch.save(one.state_dict(), tmp_path / "state.pt")
    other = curious(seed=99, memory_capacity=6)
    other.load_state_dict(torch.load(tmp_path / "state.pt", weights_only=True))
    same_ring = Ring(num_envs=NUM_ENVS)
    same_ring.place, same_ring.direction = ring.place.clone(), ring.direction.clone()
    same_ring.generator.set_state(ring.generator.get_state())
    expected, found = run(one, ring, range(300, 660)), run(other, same_ring, range(300, 660))
    assert torch.equal(torch.stack(expected), torch.stack(found))
    assert one.metrics() == other.metrics()
    assert one.fitting.num_fits == other.fitting.num_fits == 3


def saved(curiosity: ec.EpisodicCuriosity) -> bytes:
    file = io.BytesIO()
    torch.save(curiosity.state_dict(), file)
    return file.getvalue()


def uneven(curiosity: ec.EpisodicCuriosity, times: range) -> tuple[list, list]:
    """Environment n takes part in every (n + 1)-th call, with episodes of 80 of its own steps.

    Returns what was paid and the reports of `learn`.
    """
    ring, paid, reports = Ring(num_cells=997, num_envs=NUM_ENVS), [], []
    pace = torch.arange(NUM_ENVS) + 1
    for time in times:
        taken, own = time % pace == 0, time // pace  # own steps so far
        view = ring.view((own * 3) % 997) / 255
        view[~taken] = torch.nan
        opens = taken & (own % 80 == 0)
        curiosity.begin(view, where=opens)
        paid.append(curiosity.bonus(view, where=taken & ~opens))
        reports.append(curiosity.learn())
    return paid, reports


def test_rows_at_different_speeds_are_counted_and_refitted_when_due():
    """Due at 840 steps: of 12 calls, 12 + 6 + 4 + 3 = 25 are steps."""
    curiosity = curious(view_dtype=torch.float32)
    _, reports = uneven(curiosity, range(850))
    counts = [sum((time // n) + 1 for n in (1, 2, 3, 4)) for time in range(850)]
    first = next(time for time, count in enumerate(counts) if count >= 840)
    second = next(time for time, count in enumerate(counts) if count >= counts[first] + 840)
    assert [time for time, report in enumerate(reports) if report] == [first, second]
    assert curiosity.metrics()["r_network_steps_since_fit"] == counts[-1] - counts[second]
    assert curiosity.fitting.recorded.added.tolist() == [850, 425, 284, 213]


def test_uneven_rows_saved_in_mid_episode_go_on_to_the_byte_through_a_refit(tmp_path):
    one = curious(seed=3, memory_capacity=6, view_dtype=torch.float32)
    uneven(one, range(333))
    torch.save(one.state_dict(), tmp_path / "state.pt")
    other = curious(seed=99, memory_capacity=6, view_dtype=torch.float32)
    other.load_state_dict(torch.load(tmp_path / "state.pt", weights_only=True))
    (expected, told), (found, also) = (uneven(each, range(333, 500)) for each in (one, other))
    assert torch.equal(torch.stack(found), torch.stack(expected))
    assert told == also
    assert sum(map(bool, told)) == 1
    assert one.metrics() == other.metrics()
    assert saved(one) == saved(other)


def test_what_is_recorded_is_what_was_shown_last_observations_included():
    """Two environments of places; the second is left out once."""
    online = ec.OnlineConfig(refit_every=416, history=416)
    curiosity = ec.EpisodicCuriosity(ec.RNetwork((1,)), 2, online=online)
    curiosity.begin(torch.tensor([[0.0], [10.0]]))
    curiosity.bonus(torch.tensor([[1.0], [11.0]]))
    only = torch.tensor([True, False])
    curiosity.bonus(torch.tensor([[2.0], [torch.nan]]), where=only)  # its episode ends
    curiosity.begin(torch.tensor([[5.0], [torch.nan]]), where=only)
    state = curiosity.recorded.state_dict()
    assert state["added"].tolist() == [4, 2]
    assert state["views"][:4, 0, 0].tolist() == [0.0, 1.0, 2.0, 5.0]
    assert state["views"][:2, 1, 0].tolist() == [10.0, 11.0]
    assert state["first"][:4, 0].tolist() == [True, False, False, True]
    assert state["first"][:2, 1].tolist() == [True, False]


def test_steps_of_a_replayed_cuda_graph_are_counted():
    """A replay repeats what was done to tensors, and nothing of Python."""
    curiosity, yes = curious(), torch.ones(NUM_ENVS, dtype=torch.bool)
    ring, start = Ring(num_envs=NUM_ENVS), curiosity.state_dict()
    curiosity.begin(ring.view())  # captured
    curiosity.load_state_dict(start)
    captured = curiosity.recorded
    for time in range(210):
        captured.add(ring.view(), yes & (time % 80 == 0), yes)
        ring.walk()
    assert curiosity.learn().keys() > {"r_network_accuracy"}
    assert curiosity.metrics()["r_network_steps_since_fit"] == 0


def test_what_was_recorded_moves_with_the_bonus():
    curiosity, ring = curious(), Ring(num_envs=NUM_ENVS)
    curiosity.begin(ring.view())
    assert curiosity.to("meta").bonus(ring.view().to("meta")).device.type == "meta"


def test_arrays_are_welcome():
    one, other, ring = curious(), curious(), Ring(num_envs=NUM_ENVS)
    view, first = ring.view(), np.zeros(NUM_ENVS, dtype=bool)
    for curiosity in (one, other):
        curiosity.r_network.fitted.fill_(True)
        curiosity.begin(view)
    expected = one.bonus_same_step(view, torch.from_numpy(first))
    assert torch.equal(other.bonus_same_step(view.numpy(), first), expected)
    only = np.array([True, False, False, True])
    expected = one.bonus(view, where=torch.from_numpy(only))
    assert (expected != 0).tolist() == only.tolist()
    assert torch.equal(other.bonus(view.numpy(), where=only), expected)
    for array in (view.numpy()[..., ::-1], (view.numpy() / 255).astype(">f4")):
        array.setflags(write=False)
        kind = torch.uint8 if array.dtype == np.uint8 else torch.float32
        assert curious(view_dtype=kind).bonus(array).shape == (NUM_ENVS,)
    doubles = view.numpy() / 255
    assert curious(view_dtype=torch.float32).bonus(doubles).dtype == torch.float32


GOOD_VIEW = torch.zeros(NUM_ENVS, *VIEW_SHAPE)
GOOD_FIRST = torch.zeros(NUM_ENVS, dtype=torch.bool)


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
        (GOOD_VIEW, [False] * 4, TypeError, "first must be a tensor or an array, got list"),
        (GOOD_VIEW.double(), GOOD_FIRST, TypeError, r"uint8 or float32, got torch.float64"),
        (GOOD_VIEW.to("meta"), GOOD_FIRST, ValueError, r"must be on cpu, got a tensor on meta"),
        (GOOD_VIEW / 0, GOOD_FIRST, ValueError, r"view must be finite, got NaN"),
        ("frame", GOOD_FIRST, TypeError, r"view must be a tensor or an array, got str"),
    ],
)
def test_bad_calls_name_what_they_got_and_what_they_want(view, first, error, message):
    curiosity = curious()
    with pytest.raises(error, match=message):
        curiosity.bonus_same_step(view, first)
    with pytest.raises(error, match=message.replace("first", "where")):
        curiosity.begin(view, where=first if isinstance(first, list) else ~first)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"num_envs": 0}, "num_envs must be an integer of at least 1, got 0"),
        ({"num_envs": 2.5}, r"num_envs must be an integer of at least 1, got 2\.5"),
        ({"num_envs": True}, "num_envs must be an integer of at least 1, got True"),
        ({"seed": 1.5}, r"seed must be an integer of at least 0, got 1\.5"),
        ({"r_network": "x"}, "r_network must be an RNetwork, got str"),
        ({"memory_capacity": 0}, "memory_capacity must be an integer .* got 0"),
        ({"aggregate": "median"}, "aggregate must be one of percentile_90, .* got 'median'"),
        ({"online": {}}, "online must be an OnlineConfig, got dict"),
        (
            {"online": ec.OnlineConfig(refit_every=415)},
            "must be at least 416 for 2 environments, got 415 and 50000",
        ),
    ],
)
def test_bad_construction(arguments, message):
    with pytest.raises((ValueError, TypeError), match=message):
        ec.EpisodicCuriosity(
            **{"r_network": ec.RNetwork(VIEW_SHAPE), "num_envs": 2, **arguments}
        )


def test_thousands_of_environments_need_no_configuration():
    online = ec.OnlineConfig.for_envs(4096)
    assert (online.refit_every, online.history) == (4096 * 208, 4096 * 208)
    curiosity = ec.EpisodicCuriosity(
        ec.RNetwork((4,)), num_envs=4096, memory_capacity=2, online=online
    )
    curiosity.begin(torch.rand(4096, 4))
    assert curiosity.bonus(torch.rand(4096, 4)).shape == (4096,)
    assert curiosity.learn() == {}


def test_an_r_network_fitted_beforehand_learns_nothing():
    curiosity = ec.EpisodicCuriosity(ec.RNetwork(VIEW_SHAPE), NUM_ENVS)
    with pytest.raises(
        ValueError, match=r"give online=OnlineConfig\(\), got an R-network that"
    ):
        curiosity.learn()


def test_a_network_that_was_moved_afterwards():
    curiosity = curious()
    curiosity.r_network.to("meta")
    with pytest.raises(
        RuntimeError, match="moved to meta after the bonus was created on cpu; move it before"
    ):
        curiosity.bonus(GOOD_VIEW)


def test_a_state_that_does_not_fit_changes_nothing():
    one, other = curious(), curious(memory_capacity=6)
    other.r_network.fitted.fill_(True)
    with pytest.raises(ValueError, match=r"state holds memory\.embeddings as .* wanted"):
        one.load_state_dict(other.state_dict())
    assert not one.r_network.fitted
    with pytest.raises(ValueError, match=r"the bonus's state lacks .* of the wanted tensors"):
        one.load_state_dict({})


def test_what_a_gpu_noticed_is_raised_once_where_one_waits_anyway():
    curiosity = curious()
    curiosity._not_finite.fill_(True)
    with pytest.raises(ValueError, match="got NaN or infinity in an earlier call"):
        curiosity.metrics()
    assert curiosity.metrics()["bonus_mean"] == 0


def test_every_refit_draws_other_pairs(monkeypatch):
    seeds = []

    def watched(*arguments, seed, **keywords):
        seeds.append(seed)
        return ec.fit_r_network(*arguments, seed=seed, **keywords)

    monkeypatch.setattr("episodic_curiosity.reachability.online.fit_r_network", watched)
    run(curious(), Ring(num_envs=NUM_ENVS), range(430))
    assert len(set(seeds)) == 2
