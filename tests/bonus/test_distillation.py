"""Whitening by hand, RND's networks, and that the predictor learns."""

import numpy as np
import pytest
import torch

from episodic_curiosity.bonus.distillation import RandomDistillation, Whitening


def distillation(shape: tuple[int, ...] = (4,), **changes) -> RandomDistillation:
    options = {"learning_rate": 1e-3, "share": 0.5, "seed": 3, "device": "cpu"}
    return RandomDistillation(shape, **(options | changes))


def test_whitening_by_hand():
    whitening = Whitening((2,), "cpu")
    inputs = torch.tensor([[1.0, 7.0], [3.0, 7.0]])
    assert torch.equal(whitening(inputs), torch.tensor([[1.0, 5.0], [3.0, 5.0]]))  # clipped
    whitening.add(inputs)
    assert whitening.mean.tolist() == [2.0, 7.0]
    assert whitening.variance.tolist() == [1.0, 0.0]
    expected = torch.tensor([[-1.0, 0.0], [5.0, -5.0]])  # a constant that changes is clipped
    found = whitening(torch.tensor([[1.0, 7.0], [99.0, 6.0]]))
    torch.testing.assert_close(found, expected)


def test_whitening_in_parts_beside_numpy():
    parts = [np.random.default_rng(0).normal(3, 2, (size, 3, 2)) for size in (7, 1, 40)]
    whitening = Whitening((3, 2), "cpu")
    for part in parts:
        whitening.add(torch.from_numpy(part).float())
    everything = np.concatenate(parts)
    np.testing.assert_allclose(whitening.mean, everything.mean(axis=0), rtol=1e-5)
    np.testing.assert_allclose(whitening.variance, everything.var(axis=0), rtol=1e-5)
    assert whitening.count == 48


def test_the_error_is_the_mean_over_outputs():
    rnd = distillation()
    observation = torch.randn(5, 4, generator=torch.Generator().manual_seed(0))
    error, target = rnd(observation)
    assert target.shape == (5, 512)
    torch.testing.assert_close(target, rnd.target(observation.clamp(-5, 5)))
    difference = (rnd.predictor(observation.clamp(-5, 5)) - target).detach().numpy()
    np.testing.assert_allclose(error.detach(), (difference**2).mean(axis=1), rtol=1e-5)


@pytest.mark.parametrize("shape", [(3, 50, 45), (1, 8, 9), (5,)])
def test_any_observation(shape):
    observation = torch.zeros(2, *shape, dtype=torch.uint8 if len(shape) == 3 else None)
    assert distillation(shape)(observation).error.shape == (2,)


def test_what_is_seen_often_is_predicted_and_the_target_stays():
    rnd = distillation()
    generator = torch.Generator().manual_seed(1)
    often, never = torch.randn(2, 64, 4, generator=generator)
    before = [weight.clone() for weight in rnd.target.parameters()]
    assert not rnd.is_ready
    first = rnd.learn(often)["rnd_loss"]
    assert rnd.is_ready
    for _ in range(40):
        last = rnd.learn(often)["rnd_loss"]
    assert last < 0.1 * first
    with torch.no_grad():
        assert rnd(often).error.mean() < 0.5 * rnd(never).error.mean()
    assert all(map(torch.equal, before, rnd.target.parameters()))


def test_nothing_is_learnt_from_nothing():
    rnd = distillation()
    assert rnd.learn(torch.zeros(0, 4)) == {}
    assert not rnd.is_ready


@pytest.mark.parametrize("share", [0, 1.5])
def test_bad_share(share):
    with pytest.raises(ValueError, match="share must be above 0 and at most 1, got"):
        distillation(share=share)
