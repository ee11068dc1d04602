"""Modules of the user as embedders."""

from dataclasses import asdict

import pytest
import torch
from torch import Tensor, nn

from episodic_curiosity import FitConfig, Frames, LoadError, RNetwork, fit_r_network
from episodic_curiosity.support import saving


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


@pytest.mark.parametrize("branches", ["shared", "unshared"])
def test_a_frozen_embedder_stays_as_it_was_given(branches):
    module = own_embedder().append(nn.Dropout())
    r_network = RNetwork(
        (1, 2, 5), embedder=module, comparator="mlp", branches=branches, frozen_embedding=True
    )
    views = torch.randint(256, (300, 2, 1, 2, 5), dtype=torch.uint8)
    expected = module.eval()(views[:3, 0] / 255)
    weights = [weight.clone() for weight in r_network.comparator.parameters()]
    fit_r_network(
        r_network,
        Frames(views, torch.zeros(300, 2, dtype=torch.bool)),
        FitConfig(iterations=3, batch_size=8),
    )
    changed = zip(weights, r_network.comparator.parameters(), strict=True)
    assert any(not torch.equal(before, after) for before, after in changed)
    for branch in r_network.branches:
        assert torch.equal(branch(views[:3, 0] / 255), expected)


def test_an_embedder_of_ones_own_is_given_again(tmp_path):
    RNetwork((2, 5), embedder=own_embedder()).save(tmp_path / "own")
    with pytest.raises(LoadError, match="saved with a custom embedder: give `embedder`"):
        RNetwork.load(tmp_path / "own")
    RNetwork((5,)).save(tmp_path / "ours")
    with pytest.raises(LoadError, match="saved without a custom embedder: leave out"):
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
    config = asdict(saved.config) | {"view_shape": (3, 10_000, 10_000)}
    saving.save(tmp_path / "large", "r_network", saved.state_dict(), config)
    config["embedding_size"] = None
    saving.save(tmp_path / "no size", "r_network", saved.state_dict(), config)
    module = Shifted()
    loaded = RNetwork.load(tmp_path / "large", embedder=module)
    assert loaded.view_shape == (3, 10_000, 10_000)
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
