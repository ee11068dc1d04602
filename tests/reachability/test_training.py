"""Fitting: reproducible, honest about what is held out, clear about what cannot be done."""

import io
import sys

import pytest
import torch

import episodic_curiosity as ec
from episodic_curiosity.reachability import training
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
    walk = random_walk(200, num_envs=3, seed=0)
    one, again, other = new_network(), new_network(), new_network()
    reports = [ec.fit(one, walk, QUICK, seed=1), ec.fit(again, walk, QUICK, seed=1)]
    ec.fit(other, walk, QUICK, seed=2)
    assert reports[0] == reports[1]
    assert same(one, again)
    assert not same(one, other)


def test_fitting_marks_the_network_and_leaves_it_ready_for_use():
    r_network = new_network()
    assert not r_network.fitted
    report = ec.fit(r_network, random_walk(200, num_envs=3, seed=0), QUICK)
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
    measure = training._accuracy

    def accuracy(*arguments, **keywords):
        nonlocal measuring
        measuring = True
        return measure(*arguments, **keywords)

    monkeypatch.setattr(training, "_accuracy", accuracy)
    config = ec.FitConfig(iterations=30, batch_size=8, held_out_share=0.1)
    ec.fit(new_network(), Watched(walk.all_views, walk.first), config)
    assert max(seen["training"]) < 900 <= min(seen["held out"])


def test_epochs_count_a_pair_for_every_four_steps():
    config = ec.FitConfig(iterations=None, epochs=10, batch_size=64)
    assert config.num_iterations(num_steps=720_000) == 10 * 720_000 // 4 // 64


def test_accuracy_counts_near_and_far_alike():
    """A network that calls everything reachable is right half of the time."""
    r_network = new_network(comparator="mlp")
    with torch.no_grad():
        r_network.comparator.layers[-1].bias.copy_(torch.tensor([-50.0, 50.0]))
    walk = random_walk(40, num_envs=20, seed=0)  # few far pairs
    assert training.accuracy(r_network, walk) == 0.5


def test_convolutions_alone_are_decayed():
    r_network = new_network()
    decayed, others = training._adam(r_network, ec.FitConfig()).param_groups
    assert [w.dim() for w in decayed["params"]] == [4] * 6  # three in each branch
    assert decayed["weight_decay"] == 2e-4
    assert others["weight_decay"] == 0
    total = len(decayed["params"]) + len(others["params"])
    assert total == len(list(r_network.parameters()))


def test_a_loss_that_is_not_a_number_is_an_error():
    walk = random_walk(200, num_envs=3, seed=0)
    with pytest.raises(FloatingPointError, match="loss became nan: lower the learning rate"):
        ec.fit(new_network(), walk, ec.FitConfig(iterations=20, learning_rate=1e30))


def test_too_little_experience_is_refused_with_a_sentence():
    with pytest.raises(ValueError, match=r"wants at least 104 steps of every .* got 100"):
        ec.fit(new_network(), random_walk(100, num_envs=3, seed=0), QUICK)
    walk = random_walk(200, num_envs=3, seed=0)
    walk.first[::10] = True
    with pytest.raises(
        ValueError, match=r"no unreachable pair .* longest episode has 10 steps"
    ):
        ec.fit(new_network(), walk, QUICK)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"iterations": None}, "set one of iterations and epochs"),
        ({"epochs": 3}, "set one of iterations and epochs .* got 200000 and 3"),
        ({"iterations": 0}, "iterations must be a whole number of at least 1, got 0"),
        ({"batch_size": 1}, "batch_size must be a whole number of at least 2, got 1"),
        ({"held_out_share": 1.0}, r"held_out_share must be in \(0, 1\), got 1.0"),
    ],
)
def test_bad_configuration(arguments, message):
    with pytest.raises(ValueError, match=message):
        ec.FitConfig(**arguments)


@pytest.mark.parametrize("watched", [True, False])
def test_a_progress_bar_only_where_a_person_is_watching(watched, monkeypatch):
    class Stderr(io.StringIO):
        def isatty(self) -> bool:
            return watched

    stderr = Stderr()
    monkeypatch.setattr(sys, "stderr", stderr)
    ec.fit(new_network(), random_walk(200, num_envs=3, seed=0), QUICK)
    assert ("fitting the R-network" in stderr.getvalue()) == watched
