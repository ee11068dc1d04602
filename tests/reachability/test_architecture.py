"""Architectures: the paper's, the default, and what is refused."""

import pytest
import torch

from episodic_curiosity import FAST, PAPER, RNetwork


def test_the_paper_s_network_has_its_13_million_weights():
    r_network = RNetwork((3, 120, 160), **PAPER)
    assert sum(p.numel() for p in r_network.parameters()) == pytest.approx(13e6, rel=0.03)
    branch = r_network.branches[0]
    assert branch(torch.zeros(1, 3, 120, 160)).shape == (1, 512)
    assert RNetwork((1, 84, 84), **PAPER).embed(
        torch.zeros(1, 1, 84, 84, dtype=torch.uint8)
    ).stored.shape == (1, 512)


def test_the_default_is_the_fast_one():
    assert RNetwork((3, 84, 84)).config == RNetwork((3, 84, 84), **FAST).config
    assert RNetwork((9,)).config.embedder == "mlp"
    assert RNetwork((3, 16, 16)).config.embedder == "small"
    assert RNetwork((3, 15, 40)).config.embedder == "tiny"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"embedder": "vgg"}, "embedder must be one of resnet18, small, tiny, mlp, got 'vgg'"),
        ({"comparator": "cosine"}, "comparator must be one of mlp, dot, got 'cosine'"),
        ({"branches": "half"}, "branches must be one of shared, unshared, got 'half'"),
        ({"view_shape": (84, 84)}, r"needs a view_shape \(channels, height, width\), got \(84"),
        (
            {"embedder": "mlp"},
            r"mlp embedder needs a view_shape \(features,\), got \(3, 84, 84\)",
        ),
        (
            {"embedder": "small", "view_shape": (3, 4, 84)},
            r"at least 8 x 8 for the small embedder, got \(3, 4, 84\); the tiny one",
        ),
        ({"embedding_size": 0}, "embedding_size must be an integer of at least 1, got 0"),
        ({"embedding_size": 2.5}, r"embedding_size must be an integer .* got 2\.5"),
        ({"view_shape": 27}, "view_shape must be a tuple of sizes, got 27"),
        ({"view_shape": (3, 84.0, 84)}, r"view_shape's sizes must be an integer .* 84\.0"),
        ({"frozen_embedding": True}, "leaves nothing to train; use the mlp comparator"),
    ],
)
def test_impossible_networks(arguments, message):
    with pytest.raises(ValueError, match=message):
        RNetwork(**{"view_shape": (3, 84, 84), **arguments})
