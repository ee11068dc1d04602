"""The R-network's parts: shapes, the split first layer, and what it refuses."""

import itertools

import pytest
import torch

from benchmarks.bonus import concatenated
from episodic_curiosity import RNetwork
from episodic_curiosity.reachability.comparators import MlpComparator

SHAPES = {"resnet18": (3, 24, 32), "small": (1, 20, 28), "tiny": (2, 5, 9), "mlp": (7,)}


def randomise(module: torch.nn.Module) -> None:
    """Statistics and affine weights as training would leave them: not zeros and ones."""
    for layer in module.modules():
        if isinstance(layer, torch.nn.BatchNorm1d | torch.nn.BatchNorm2d):
            layer.running_mean.normal_(std=0.5)
            layer.running_var.uniform_(0.5, 2.0)
            torch.nn.init.uniform_(layer.weight, 0.5, 1.5)
            torch.nn.init.normal_(layer.bias, std=0.3)


@pytest.mark.parametrize(
    ("embedder", "comparator", "branches"),
    list(itertools.product(SHAPES, ("mlp", "dot"), ("shared", "unshared"))),
)
def test_comparing_with_memory_equals_judging_pairs(embedder, comparator, branches):
    """`embed` and `compare`, as the bonus uses them, against R(o_i, o_j) pair by pair."""
    torch.manual_seed(0)
    shape = SHAPES[embedder]
    r_network = RNetwork(shape, embedder=embedder, comparator=comparator, branches=branches)
    randomise(r_network)
    memories, present = torch.rand(2, 5, *shape), torch.rand(2, *shape)
    with torch.no_grad():
        stored = r_network.embed(memories.flatten(0, 1)).stored.view(2, 5, -1)
        asked = r_network.embed(present).asked
        # Log-odds, because similarities of random weights are often exactly 0 or 1.
        found = r_network.comparator.with_memory(stored, asked)
        pairs = memories.flatten(0, 1), present.repeat_interleave(5, dim=0)
        expected = r_network(*pairs).view(2, 5)
        assert torch.equal(r_network.compare(stored, asked), torch.sigmoid(found))
    torch.testing.assert_close(torch.sigmoid(expected).view(10), r_network.reachable(*pairs))
    assert stored.shape == (2, 5, r_network.slot_size)
    assert expected.std() > 0
    torch.testing.assert_close(found, expected, atol=1e-4, rtol=1e-4)


@torch.no_grad()
def test_comparing_in_bfloat16_is_close_enough():
    """As a GPU does it: for log-odds as far apart as those of a fitted network."""
    torch.manual_seed(0)
    comparator = RNetwork((6,), comparator="mlp").comparator
    randomise(comparator)
    stored, asked = torch.randn(8, 100, 512), torch.randn(8, 512)
    layers = comparator.folded_layers()
    scale = 5.0 / layers.compare(stored, asked, torch.float32).std()
    layers = layers._replace(weight=layers.weight * scale, bias=layers.bias * scale)
    exact, fast = (
        torch.sigmoid(layers.compare(stored, asked, dtype))
        for dtype in (torch.float32, torch.bfloat16)
    )
    difference = (exact - fast).abs()
    assert 0 < difference.mean() < 0.003
    assert difference.max() < 0.05


def test_comparing_in_chunks_of_environments_changes_nothing(monkeypatch):
    comparator = RNetwork((6,), comparator="mlp").comparator
    stored, asked = torch.randn(5, 400, 512), torch.randn(5, 512)  # chunks of 2, 2 and 1
    with torch.no_grad():
        found = comparator.with_memory(stored, asked)
        monkeypatch.setattr("episodic_curiosity.reachability.comparators.ROWS_PER_CHUNK", 10**6)
        expected = comparator.with_memory(stored, asked)
    assert expected.std() > 0
    torch.testing.assert_close(found, expected)


def test_the_split_comparator_equals_the_one_over_the_concatenation():
    torch.manual_seed(0)
    comparator = MlpComparator(512).eval()
    randomise(comparator)
    whole = concatenated(comparator)
    memory, present = torch.randn(6, 512), torch.randn(6, 512)
    with torch.no_grad():
        split = torch.sigmoid(comparator(comparator.stored(memory), comparator.asked(present)))
        expected = whole(torch.cat([memory, present], dim=1))[:, 1]
    assert expected.std() > 0
    torch.testing.assert_close(split, expected, atol=1e-5, rtol=1e-4)


def test_shared_branches_with_a_dot_product_cannot_tell_order():
    frames = torch.rand(2, 4, *SHAPES["small"])
    shared = RNetwork(SHAPES["small"], branches="shared")
    assert torch.equal(shared.reachable(*frames), shared.reachable(*frames.flip(0)))
    unshared = RNetwork(SHAPES["small"], branches="unshared")
    assert not torch.equal(unshared.reachable(*frames), unshared.reachable(*frames.flip(0)))


def test_the_tiny_embedder_keeps_every_cell():
    r_network = RNetwork((3, 7, 7))
    convolutions = r_network.branches[0][:-2]  # before Flatten and Linear
    assert convolutions(torch.rand(2, 3, 7, 7)).shape == (2, 64, 7, 7)
    frames = torch.randint(0, 256, (4, 3, 7, 7), dtype=torch.uint8)
    torch.testing.assert_close(
        r_network.embed(frames).asked, r_network.embed(frames / 255).asked
    )


def test_bytes_are_floats_times_255():
    r_network = RNetwork((3, 16, 16))
    frames = torch.randint(0, 256, (4, 3, 16, 16), dtype=torch.uint8)
    as_bytes, as_floats = r_network.embed(frames), r_network.embed(frames / 255)
    torch.testing.assert_close(as_bytes.stored, as_floats.stored)
    assert frames.dtype == torch.uint8


def test_a_network_in_training_mode_does_not_judge():
    r_network = RNetwork((3, 16, 16)).train()
    with pytest.raises(RuntimeError, match="in training mode: call its eval"):
        r_network.embed(torch.rand(2, 3, 16, 16))
    with pytest.raises(RuntimeError, match="in training mode: call its eval"):
        r_network.reachable(torch.rand(2, 3, 16, 16), torch.rand(2, 3, 16, 16))


def test_a_frozen_embedding_trains_the_comparator_only():
    r_network = RNetwork((3, 16, 16), comparator="mlp", frozen_embedding=True)
    r_network.train()
    r_network(torch.rand(8, 3, 16, 16), torch.rand(8, 3, 16, 16)).sum().backward()
    assert all(p.grad is None for p in r_network.branches.parameters())
    assert all(p.grad is not None for p in r_network.comparator.parameters())
    # Random weights, but the normalisation is calibrated to what is seen.
    assert r_network.branches[0][1].running_mean.abs().max() > 0


@pytest.mark.parametrize(
    ("view", "error", "message"),
    [
        (
            torch.zeros(2, 3, 16, 20),
            ValueError,
            r"shape \(2, 3, 16, 16\), got \(2, 3, 16, 20\)",
        ),
        (torch.zeros(3, 16, 16), ValueError, r"shape \(3, 3, 16, 16\), got \(3, 16, 16\)"),
        (torch.zeros(2, 3, 16, 16).long(), TypeError, "uint8 or float32, got torch.int64"),
        (torch.zeros(2, 3, 16, 16).to("meta"), ValueError, "must be on cpu, got .* on meta"),
        (torch.zeros(2, 3, 16, 16) / 0, ValueError, "finite, got NaN or infinity in row 0"),
        ([[0.0]], TypeError, "view must be a tensor, got list"),
    ],
)
def test_bad_views(view, error, message):
    with pytest.raises(error, match=message):
        RNetwork((3, 16, 16)).embed(view)
