"""The R-network's parts: shapes, the split first layer, and what it refuses."""

import itertools
from dataclasses import asdict

import pytest
import torch
from torch import Tensor, nn

from benchmarks.bonus import concatenated
from episodic_curiosity import FAST, PAPER, LoadError, RNetwork
from episodic_curiosity.reachability.comparators import MlpComparator
from episodic_curiosity.support import saving

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


def own_embedder() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Flatten(), nn.Linear(2 * 5, 7), nn.BatchNorm1d(7))


@pytest.mark.parametrize("branches", ["shared", "unshared"])
@pytest.mark.parametrize("comparator", ["mlp", "dot"])
def test_any_module_can_embed(comparator, branches, tmp_path):
    module = own_embedder()
    r_network = RNetwork((2, 5), embedder=module, comparator=comparator, branches=branches)
    assert r_network.branches[0] is module
    assert r_network.config.embedding_size == 7
    view = torch.randint(256, (3, 2, 5), dtype=torch.uint8)
    embeddings = r_network.embed(view)
    with torch.no_grad():
        expected = module(view / 255)
    if comparator == "dot":
        torch.testing.assert_close(embeddings.stored, expected)
    other = {"shared": 1, "unshared": 2}[branches]
    assert len(r_network.branches) == other
    if branches == "unshared":  # its second branch has weights of its own
        one, two = (branch[1].weight for branch in r_network.branches)
        assert not torch.equal(one, two)
    r_network.save(tmp_path)
    loaded = RNetwork.load(tmp_path, embedder=own_embedder())
    assert torch.equal(loaded.embed(view).asked, embeddings.asked)


def test_an_embedder_of_ones_own_is_given_again(tmp_path):
    RNetwork((2, 5), embedder=own_embedder()).save(tmp_path / "own")
    with pytest.raises(LoadError, match="saved with an embedder of its own: give `embedder`"):
        RNetwork.load(tmp_path / "own")
    RNetwork((5,)).save(tmp_path / "ours")
    with pytest.raises(LoadError, match="saved without an embedder of its own: leave out"):
        RNetwork.load(tmp_path / "ours", embedder=own_embedder())


def test_an_embedder_that_does_not_embed():
    with pytest.raises(ValueError, match=r"must map \(2, 4, 5\) to .* got .* \(2, 4, 5\)"):
        RNetwork((4, 5), embedder=nn.Identity())


def test_an_embedder_of_another_dtype():
    with pytest.raises(ValueError, match=r"float32 \(2, embedding size\), got torch.float16"):
        RNetwork((4,), embedder=Shifted(dtype=torch.float16))


class Shifted(nn.Module):
    """Makes tensors in its forward and when it draws its weights."""

    def __init__(self, size: int = 6, dtype: torch.dtype = torch.float32) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(6))
        self.size, self.dtype, self.shapes = size, dtype, []
        self.reset_parameters()

    def reset_parameters(self) -> None:
        with torch.no_grad():
            self.weight.copy_(torch.rand(6))

    def forward(self, view: Tensor) -> Tensor:
        self.shapes.append(tuple(view.shape))
        mean = view.flatten(1).mean(1, keepdim=True) + torch.arange(6.0)
        return (mean * self.weight)[:, : self.size].to(self.dtype)


def test_loading_does_not_run_the_embedder(tmp_path):
    """A received file may claim views of any size."""
    saved = RNetwork((4,), embedder=Shifted())
    config = asdict(saved.config) | {"view_shape": (3, 30_000, 30_000)}
    saving.save(tmp_path / "large", "r_network", saved.state_dict(), config)
    config["embedding_size"] = None
    saving.save(tmp_path / "no size", "r_network", saved.state_dict(), config)
    module = Shifted()
    loaded = RNetwork.load(tmp_path / "large", embedder=module)
    assert loaded.view_shape == (3, 30_000, 30_000)
    with pytest.raises(LoadError, match="embedding_size must be"):
        RNetwork.load(tmp_path / "no size", embedder=module)
    assert module.shapes == []


def test_an_embedder_may_make_tensors(tmp_path):
    saved, view = RNetwork((4,), embedder=Shifted()), torch.rand(3, 4)
    saved.save(tmp_path)
    loaded = RNetwork.load(tmp_path, embedder=Shifted())
    assert torch.equal(loaded.embed(view).asked, saved.embed(view).asked)


def test_an_embedder_of_another_size_than_the_saved_one(tmp_path):
    RNetwork((4,), embedder=Shifted()).save(tmp_path)
    loaded = RNetwork.load(tmp_path, embedder=Shifted(size=5))
    with pytest.raises(ValueError, match=r"float32 \(3, 6\), got torch.float32 \(3, 5\)"):
        loaded.embed(torch.rand(3, 4))
