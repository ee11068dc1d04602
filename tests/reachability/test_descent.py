"""The optimiser of a fit."""

import episodic_curiosity as ec
from episodic_curiosity.reachability.descent import _adam
from examples.ring import VIEW_SHAPE


def test_convolutions_alone_are_decayed():
    r_network = ec.RNetwork(VIEW_SHAPE)
    (decayed, decay), (others, no_decay) = _adam(r_network, ec.FitConfig()).groups
    assert [weight.dim() for weight in decayed] == [4] * 6  # three in each branch
    assert (decay, no_decay) == (2e-4, 0)
    assert len(decayed) + len(others) == len(list(r_network.parameters()))
