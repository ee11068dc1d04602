"""Fitting: reproducible, honest about what is held out, clear about what cannot be done."""

import io
import sys

import pytest
import torch

import episodic_curiosity as ec
from episodic_curiosity.reachability import training
from episodic_curiosity.reachability.batches import NoPairsError, batches_of
from examples.ring import VIEW_SHAPE, random_walk

QUICK = ec.FitConfig(iterations=3, batch_size=8)


def new_network(seed: int = 0, **arguments) -> ec.RNetwork:
    torch.manual_seed(seed)
    return ec.RNetwork(VIEW_SHAPE, **arguments)


def weights(r_network: ec.RNetwork) -> list[torch.Tensor]:
    return list(r_network.state_dict().values())


def same(one: ec.RNetwork, other: ec.RNetwork) -> bool:
    return all(torch.equal(a, b) for a, b in zip(weights(one), weights(other), strict=True))


def test_the_same_seed_gives_the_same_weights():
    walk = random_walk(300, num_envs=3, seed=0)
    one, again, other = new_network(), new_network(), new_network()
    reports = [
        ec.fit_r_network(one, walk, QUICK, seed=1),
        ec.fit_r_network(again, walk, QUICK, seed=1),
    ]
    ec.fit_r_network(other, walk, QUICK, seed=2)
    assert reports[0] == reports[1]
    assert same(one, again)
    assert not same(one, other)


def test_fitting_marks_the_network_and_leaves_it_ready_for_use():
    r_network = new_network()
    assert not r_network.fitted
    report = ec.fit_r_network(r_network, random_walk(300, num_envs=3, seed=0), QUICK)
    assert r_network.fitted
    assert not r_network.training
    assert report.iterations == 3
    assert 0 <= report.accuracy <= 1


def test_the_newest_steps_are_held_out_of_training(monkeypatch):
    seen: dict[str, list[int]] = {"training": [], "held out": []}
    walk = random_walk(1_000, num_envs=2, seed=0)

    class Watched(ec.Frames):
        def views(self, time, env):
            which = "held out" if measuring else "training"
            seen[which] += time.tolist()
            return super().views(time, env)

    measuring = False
    measure = training.accuracy_on

    def accuracy(*arguments, **keywords):
        nonlocal measuring
        measuring = True
        return measure(*arguments, **keywords)

    monkeypatch.setattr(training, "accuracy_on", accuracy)
    config = ec.FitConfig(iterations=30, batch_size=8, held_out_share=0.2)
    ec.fit_r_network(new_network(), Watched(walk.all_views, walk.first), config)
    assert max(seen["training"]) < 800 <= min(seen["held out"])


def test_a_loss_that_is_not_a_number_is_an_error_and_leaves_the_weights_from_before():
    walk = random_walk(300, num_envs=3, seed=0)
    r_network = new_network()
    ec.fit_r_network(r_network, walk, QUICK)
    before = [weight.clone() for weight in weights(r_network)]
    with pytest.raises(FloatingPointError, match="loss became nan: lower the learning rate"):
        ec.fit_r_network(r_network, walk, ec.FitConfig(iterations=20, learning_rate=1e30))
    assert all(torch.equal(a, b) for a, b in zip(before, weights(r_network), strict=True))
    assert not r_network.training


def test_a_fit_that_runs_out_of_pairs_leaves_the_weights_from_before(monkeypatch):
    walk = random_walk(300, num_envs=3, seed=0)
    r_network = new_network()
    ec.fit_r_network(r_network, walk, QUICK)
    before = [weight.clone() for weight in weights(r_network)]

    def two_batches(*arguments):
        found = batches_of(*arguments)
        yield next(found)
        yield next(found)
        raise NoPairsError("no pairs")

    monkeypatch.setattr(training, "batches_of", two_batches)
    with pytest.raises(NoPairsError):
        ec.fit_r_network(r_network, walk, QUICK)
    assert all(torch.equal(a, b) for a, b in zip(before, weights(r_network), strict=True))


def test_an_interrupted_fit_leaves_the_network_ready_for_use():
    class Interrupted(ec.Frames):
        calls = 0

        def views(self, time, env):
            Interrupted.calls += 1
            if Interrupted.calls == 4:
                raise KeyboardInterrupt
            return super().views(time, env)

    walk = random_walk(300, num_envs=3, seed=0)
    r_network = new_network()
    with pytest.raises(KeyboardInterrupt):
        ec.fit_r_network(r_network, Interrupted(walk.all_views, walk.first), QUICK)
    assert not r_network.training
    assert not r_network.fitted


@pytest.mark.parametrize(
    ("views", "error", "message"),
    [
        (torch.zeros(300, 2, 3, 20, 20), ValueError, r"shape \(1, 3, 16, 16\), got \(1, 3, 20"),
        (torch.zeros(300, 2, 16, 16, 3), ValueError, r"got \(1, 16, 16, 3\)"),
        (torch.zeros(300, 2, 3, 16, 16).long(), TypeError, "uint8 or float32, got torch.int64"),
        ("frames", TypeError, "views must be a tensor or an array, got str"),
    ],
)
def test_bad_experience(views, error, message):
    with pytest.raises(error, match=message):
        ec.fit_r_network(
            new_network(), ec.Frames(views, torch.zeros(300, 2, dtype=torch.bool)), QUICK
        )


def test_other_things_than_experience_and_configuration():
    walk = random_walk(300, num_envs=3, seed=0)
    with pytest.raises(TypeError, match=r"experience must be like Frames.* got Tensor"):
        ec.fit_r_network(new_network(), walk.all_views, QUICK)
    with pytest.raises(TypeError, match="config must be a FitConfig, got int"):
        ec.fit_r_network(new_network(), walk, 20_000)


def test_arrays_are_welcome():
    walk = random_walk(300, num_envs=3, seed=0)
    one, other = new_network(), new_network()
    ec.fit_r_network(one, walk, QUICK)
    ec.fit_r_network(other, ec.Frames(walk.all_views.numpy(), walk.first.numpy()), QUICK)
    assert same(one, other)


def test_short_episodes_are_held_out_whole():
    """Of 40-step episodes the held-out steps hold far pairs, wherever the borders fall."""
    for offset in range(0, 40, 7):
        walk = random_walk(226, num_envs=1, seed=0)
        walk.first[offset::40] = True
        assert ec.fit_r_network(new_network(), walk, QUICK).iterations == 3


def test_too_little_experience_is_refused_with_a_sentence():
    with pytest.raises(ValueError, match=r"needs at least 208 steps of every .* got 207"):
        ec.fit_r_network(new_network(), random_walk(207, num_envs=3, seed=0), QUICK)
    walk = random_walk(300, num_envs=3, seed=0)
    walk.first[::10] = True
    with pytest.raises(
        ValueError, match=r"no unreachable pair .* from 104 steps of 3 .* has 10 steps, k = 5"
    ) as refusal:
        ec.fit_r_network(new_network(), walk, QUICK)
    assert "need more than 26; lower gamma" in str(refusal.value)
    walk.first[:] = True
    with pytest.raises(ValueError, match=r"no reachable pair .* need more than 1$"):
        ec.fit_r_network(new_network(), walk, QUICK)


@pytest.mark.parametrize("watched", [True, False])
def test_a_progress_bar_only_where_a_person_is_watching(watched, monkeypatch):
    class Stderr(io.StringIO):
        def isatty(self) -> bool:
            return watched

    stderr = Stderr()
    monkeypatch.setattr(sys, "stderr", stderr)
    ec.fit_r_network(new_network(), random_walk(300, num_envs=3, seed=0), QUICK)
    assert ("fitting the R-network" in stderr.getvalue()) == watched
