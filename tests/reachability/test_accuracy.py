"""The accuracy of an R-network."""

import pytest
import torch

import episodic_curiosity as ec
from examples.ring import VIEW_SHAPE, random_walk


def test_accuracy_counts_near_and_far_alike():
    """A network that calls everything reachable is right half of the time."""
    r_network = ec.RNetwork(VIEW_SHAPE, comparator="mlp")
    with torch.no_grad():
        r_network.comparator.output.bias.copy_(torch.tensor([-50.0, 50.0]))
    walk = random_walk(40, num_envs=20, seed=0)  # few far pairs
    assert ec.pair_accuracy(r_network, walk) == 0.5
    with pytest.raises(RuntimeError, match="in training mode: call its eval"):
        ec.pair_accuracy(r_network.train(), walk)
