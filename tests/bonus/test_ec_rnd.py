"""EC times RND's factor, beside EC alone."""

import pytest
import torch

from episodic_curiosity.bonus.ec_rnd import ECRND, ECRNDConfig
from episodic_curiosity.bonus.episodic import EpisodicBonus, EpisodicConfig
from episodic_curiosity.reachability.network import RNetwork
from episodic_curiosity.testing.bonuses import BonusConformance
from episodic_curiosity.testing.calls import play


def r_network(device: str = "cpu", *, fitted: bool = True) -> RNetwork:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(2)
        network = RNetwork((6,), comparator="dot", branches="unshared", embedding_size=5)
    network.fitted.fill_(fitted)
    network.held_out_accuracy.fill_(0.9)
    return network.to(device)


class TestConformance(BonusConformance):
    # So that this untrained R-network pays above and below zero.
    config = ECRNDConfig(beta=0.503, memory_capacity=6)

    def make(self, num_envs: int = 3, device: str = "cpu") -> ECRND:
        return ECRND(r_network(device), num_envs, self.config, num_steps=11, seed=3)

    def alone(self, env: int) -> ECRND:
        bonus = self.make(num_envs=1)
        bonus.memory.streams.fill_(env)
        return bonus


def test_it_is_ecs_bonus_times_the_factor_where_that_is_above_zero():
    suite = TestConformance()
    plain = EpisodicBonus(r_network(), 3, EpisodicConfig(beta=0.503, memory_capacity=6), seed=3)
    bonus, calls = suite.make(), suite.calls()
    for part in (calls[:20], calls[20:40]):  # whitened, then measured
        assert torch.equal(play(bonus, part), play(plain, part))
        bonus.learn()
    raised, lowered = 0, 0
    for call in calls[40:]:
        lifelong = bonus.lifelong
        stored = bonus.r_network.embed(call.seen, where=call.opens | call.steps).stored
        error = lifelong.distillation(stored).error
        factor = (1 + (error - lifelong.mean) / lifelong.spread).clamp(1, 5).detach()
        expected, paid = play(plain, [call])[0], play(bonus, [call])[0]
        times = torch.where(expected > 0, expected * factor, expected)
        torch.testing.assert_close(paid[call.steps], times[call.steps])
        raised += int((paid > expected).sum())
        lowered += int((paid < 0).sum())
    assert raised > 2
    assert lowered > 2


def test_nothing_is_learnt_before_the_r_network_is_fitted():
    bonus = ECRND(r_network(fitted=False), 3)
    for _ in range(3):
        bonus.bonus_same_step(torch.randn(3, 6), torch.zeros(3, dtype=torch.bool))
    assert bonus.learn() == {}
    assert not bonus.lifelong.distillation.is_ready


def test_bad_input():
    with pytest.raises(ValueError, match="most_lifelong must be a finite number above 1"):
        ECRNDConfig(most_lifelong=0.5)
    with pytest.raises(ValueError, match="alpha must be a finite number above 0, got 0"):
        ECRNDConfig(alpha=0)
    with pytest.raises(ValueError, match="num_steps must be an integer of at least 1, got 0"):
        ECRND(r_network(), 3, num_steps=0)
