"""Batches of pairs."""

from types import SimpleNamespace

import pytest
import torch

import episodic_curiosity as ec
from episodic_curiosity.reachability.batches import NoPairsError, batches_of, observations
from examples.ring import random_walk


def test_every_pass_draws_new_pairs_in_a_new_order():
    walk = random_walk(400, num_envs=1, seed=0)
    config = ec.FitConfig(iterations=1, batch_size=1000)  # a pass is one batch
    batches = batches_of(walk, config, seed=0)
    one, other = next(batches), next(batches)
    assert not torch.equal(one.first.sort().values, one.first)
    assert set(zip(one.first.tolist(), one.second.tolist(), strict=True)) != set(
        zip(other.first.tolist(), other.second.tolist(), strict=True)
    )


def test_pairs_of_other_episodes_are_looked_up_in_their_own_environment():
    """Each view tells its environment and time."""
    time, env = torch.meshgrid(torch.arange(50), torch.arange(4), indexing="ij")
    walk = ec.Frames(torch.stack([time, env], dim=2).float(), torch.zeros(50, 4).bool())
    config = ec.FitConfig(pairs=ec.PairsConfig(far_from="other_episodes"), batch_size=60)
    pairs = next(batches_of(walk, config, seed=0))
    first, second, reachable = observations(walk, pairs, torch.device("cpu"))
    assert torch.equal(first, torch.stack([pairs.first, pairs.first_env], dim=1).float())
    assert torch.equal(second, torch.stack([pairs.second, pairs.second_env], dim=1).float())
    assert torch.equal(first[:, 1] == second[:, 1], reachable.bool())


def test_a_cpu_waits_for_views_of_a_gpu():
    class OnGPU:
        def to(self, device: torch.device, *, non_blocking: bool) -> torch.Tensor:
            assert device.type == "cpu"
            assert not non_blocking
            return torch.zeros(200, 4)

    walk = SimpleNamespace(first=torch.zeros(400, 1).bool(), views=lambda *_: OnGPU())
    pairs = next(batches_of(walk, ec.FitConfig(batch_size=100), seed=0))
    first, second, _ = observations(walk, pairs, torch.device("cpu"))
    assert first.shape == second.shape == (100, 4)


def test_other_episodes_are_missing_where_there_is_one():
    walk = random_walk(400, num_envs=1, seed=0)
    config = ec.FitConfig(pairs=ec.PairsConfig(far_from="other_episodes"))
    with pytest.raises(NoPairsError, match=r"of 1 environments: .* needs two episodes"):
        next(batches_of(walk, config, seed=0))
