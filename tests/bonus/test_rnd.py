"""RND beside a transcription in NumPy."""

import numpy as np
import pytest
import torch

import episodic_curiosity as ec
from episodic_curiosity.bonus.ec_rnd import ECRNDConfig
from episodic_curiosity.bonus.ngu import NGUConfig
from episodic_curiosity.bonus.rnd import RND, RNDConfig
from episodic_curiosity.testing.bonuses import BonusConformance
from episodic_curiosity.testing.calls import Call
from tests.bonus.steps import rollout_of


def rnd(num_envs: int = 3, **options) -> RND:
    return RND((4,), num_envs, RNDConfig(scale=2.0, gamma=0.9), **({"seed": 1} | options))


class TestConformance(BonusConformance):
    def make(self, num_envs: int = 3, device: str = "cpu") -> RND:
        bonus = rnd(num_envs, num_steps=11, device=device)
        bonus.deviation.divisor.fill_(0.5)  # it pays nothing while this is unknown
        return bonus


class TestConformanceOfFrames(TestConformance):
    def make(self, num_envs: int = 3, device: str = "cpu") -> RND:
        bonus = RND((1, 9, 11), num_envs, num_steps=11, device=device)
        bonus.deviation.divisor.fill_(0.5)
        return bonus


def test_beside_a_transcription():
    """Rollouts of 5 steps x 3 environments; whitened after the first, paid after the second."""
    bonus, generator = rnd(), torch.Generator().manual_seed(0)
    sums, past, divisor, seen = np.zeros(3), [], np.inf, []
    bonus.begin(start := torch.randn(3, 4, generator=generator))
    seen.append(start.numpy())
    for number in range(4):
        for _ in range(5):
            now = torch.randn(3, 4, generator=generator) * 3 + 1
            error = bonus.distillation(now).error.detach().numpy()
            paid = bonus.bonus(now)
            np.testing.assert_allclose(paid, 2 * error / divisor, rtol=1e-5)
            assert (paid == 0).all() == (number < 2)
            seen.append(now.numpy())
            if number:  # errors of whitened observations
                sums = 0.9 * sums + error
                past += sums.tolist()
        assert bonus.learn().keys() == {"rnd_loss"}
        everything = np.concatenate(seen)
        whitening = bonus.distillation.whitening
        np.testing.assert_allclose(whitening.mean, everything.mean(axis=0), rtol=1e-4)
        np.testing.assert_allclose(whitening.variance, everything.var(axis=0), rtol=1e-4)
        divisor = np.std(past) if past else np.inf
        assert bonus.deviation.divisor.item() == pytest.approx(divisor, rel=1e-5)


def test_a_rollout_is_learnt_as_recorded_steps_are():
    one, other = rnd(num_steps=20), rnd(num_steps=0)
    generator = torch.Generator().manual_seed(0)
    nothing, everything = torch.zeros(3, dtype=torch.bool), torch.ones(3, dtype=torch.bool)
    action = torch.zeros(3, dtype=torch.int64)
    seen = torch.randn(9, 3, 4, generator=generator)
    for now in seen[1:]:
        one.bonus_same_step(now, nothing)
    calls = [Call(now, action, nothing, everything) for now in seen]
    assert one.learn() == other.learn(rollout_of(calls))
    state = other.distillation.state_dict()
    for name, tensor in one.distillation.state_dict().items():
        assert torch.equal(tensor, state[name]), name


def test_observations_of_another_type_are_refused_before_they_change_anything():
    frames = ec.RND((3, 42, 42), 2)
    with pytest.raises(ValueError, match=r"must be of dtype torch\.uint8, got torch\.float32"):
        frames.begin(torch.rand(2, 3, 42, 42))
    assert not frames.recent.added.any()
    vectors = ec.RND((4,), 2)
    with pytest.raises(ValueError, match=r"give observation_dtype=torch\.uint8"):
        vectors.begin(torch.zeros(2, 4, dtype=torch.uint8))
    ec.RND((4,), 2, observation_dtype=torch.uint8).begin(torch.zeros(2, 4, dtype=torch.uint8))


def test_bad_input():
    with pytest.raises(ValueError, match="learn needs a rollout, or num_steps of at least 1"):
        rnd(num_steps=0).learn()
    with pytest.raises(ValueError, match="gamma must be at least 0 and below 1, got 1"):
        RNDConfig(gamma=1)
    for config in (RNDConfig, NGUConfig, ECRNDConfig):
        for share in (0, 2.0):
            with pytest.raises(ValueError, match="share must be above 0 and at most 1, got"):
                config(share=share)
    for name in ("scale", "learning_rate"):
        with pytest.raises(ValueError, match=f"{name} must be a finite number above 0, got 0"):
            RNDConfig(**{name: 0})
