"""Our Adam beside torch's, and what it does not import."""

import subprocess
import sys

import torch
from torch import nn

from episodic_curiosity.support.adam import FusedAdam


def test_it_computes_what_torchs_does_bit_for_bit():
    """Two groups, a rate that changes, and a parameter that sometimes has no gradient."""
    torch.manual_seed(0)
    ours = nn.ModuleList([nn.Conv2d(2, 3, 3), nn.Linear(3, 5), nn.Linear(5, 1)])
    theirs = nn.ModuleList([nn.Conv2d(2, 3, 3), nn.Linear(3, 5), nn.Linear(5, 1)])
    theirs.load_state_dict(ours.state_dict())
    rates = torch.zeros(()), torch.zeros(())
    adam = FusedAdam(
        [(ours[0].parameters(), 0.1), (ours[1:].parameters(), 0.0)], rates[0], eps=1e-5
    )
    groups = [
        {"params": theirs[0].parameters(), "weight_decay": 0.1},
        {"params": theirs[1:].parameters()},
    ]
    reference = torch.optim.Adam(groups, rates[1], eps=1e-5, fused=True)
    for number in range(7):
        frames = torch.randn(4, 2, 3, 3)
        for layers, optimiser, rate in ((ours, adam, rates[0]), (theirs, reference, rates[1])):
            rate.fill_(0.1 / (1 + number))
            optimiser.zero_grad()
            hidden = layers[1](layers[0](frames).flatten(1))
            loss = hidden if number % 3 == 1 else layers[2](hidden)
            loss.square().sum().backward()
            optimiser.step()
    for (name, weight), other in zip(ours.named_parameters(), theirs.parameters(), strict=True):
        assert torch.equal(weight, other), name
        assert adam.state[weight].keys() == reference.state[other].keys()
        for moment, tensor in adam.state[weight].items():
            assert torch.equal(tensor, reference.state[other][moment]), (name, moment)
    assert adam.state[ours[2].bias]["step"] == 5


def test_a_step_does_not_import_torchs_compiler():
    program = """
import sys
import torch
from episodic_curiosity.support.adam import FusedAdam
layer = torch.nn.Linear(2, 1)
adam = FusedAdam([(layer.parameters(), 0.0)], 0.1)
layer(torch.ones(2)).sum().backward()
adam.step()
assert "torch._dynamo" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", program], check=True)
