"""Does it learn? On a ring of coloured cells, where 97% is possible at k = gamma = 5."""

import functools
import time

import pytest
import torch

import episodic_curiosity as ec
from examples.ring import VIEW_SHAPE, Ring, random_walk

pytestmark = pytest.mark.slow

ARCHITECTURES = {
    "paper comparator": {"comparator": "mlp", "branches": "shared"},
    "un-shared dot": {"comparator": "dot", "branches": "unshared"},
    "shared dot": {"comparator": "dot", "branches": "shared"},
}


@functools.cache
def fitted(architecture: str) -> tuple[ec.RNetwork, ec.FitReport, float]:
    torch.manual_seed(0)
    r_network = ec.RNetwork(VIEW_SHAPE, embedder="small", **ARCHITECTURES[architecture])
    start = time.process_time()
    report = ec.fit_r_network(
        r_network,
        random_walk(2_000, num_envs=16, seed=0),
        # Twice the default learning rate needs fewer steps for the same accuracy.
        ec.FitConfig(
            iterations=1_000 if architecture == "paper comparator" else 2_000,
            learning_rate=2e-4,
        ),
        held_out=random_walk(1_000, num_envs=16, seed=1),
    )
    seconds = time.process_time() - start
    print(f"{architecture}: {report.held_out_accuracy:.1%} held-out, {seconds:.0f} s")
    return r_network, report, seconds


@pytest.mark.parametrize("architecture", ["paper comparator", "un-shared dot"])
def test_near_is_told_from_far(architecture):
    _, report, seconds = fitted(architecture)
    assert report.held_out_accuracy >= 0.93
    assert seconds < 2 * 120  # of processor time: two minutes of two cores


def test_shared_branches_with_a_dot_product_fail():
    _, report, _ = fitted("shared dot")
    assert report.held_out_accuracy < 0.85


@pytest.mark.parametrize("architecture", ["paper comparator", "un-shared dot"])
@pytest.mark.parametrize("aggregate", ["percentile_90", "max", "relative_count"])
def test_a_place_never_visited_pays_more_than_one_just_visited(architecture, aggregate):
    r_network, _, _ = fitted(architecture)
    ring = Ring(num_envs=32)
    first = torch.zeros(32, dtype=torch.bool)

    def bonus_after_a_walk(place: torch.Tensor) -> float:
        curiosity = ec.EpisodicCuriosity(r_network, 32, alpha=1.0, aggregate=aggregate)
        start = torch.arange(32) * 9
        for moved in range(12):
            curiosity.bonus_same_step(ring.view(start + moved), first | (moved == 0))
        return curiosity.bonus(ring.view(start + place)).mean().item()

    known = bonus_after_a_walk(torch.tensor(11))
    unknown = bonus_after_a_walk(torch.tensor(150))
    assert unknown > known + 0.3
    assert unknown > 0 > known


def test_a_random_embedding_still_learns_something():
    torch.manual_seed(0)
    r_network = ec.RNetwork(VIEW_SHAPE, comparator="mlp", frozen_embedding=True)
    frozen = [p.clone() for p in r_network.branches.parameters()]
    report = ec.fit_r_network(
        r_network,
        random_walk(2_000, num_envs=16, seed=0),
        ec.FitConfig(iterations=500),
        held_out=random_walk(1_000, num_envs=16, seed=1),
    )
    assert report.held_out_accuracy > 0.7
    assert all(
        torch.equal(a, b) for a, b in zip(frozen, r_network.branches.parameters(), strict=True)
    )
