"""What every bonus refuses, beyond the conformance suite."""

import pytest
import torch

import episodic_curiosity as ec

VIEW = torch.zeros(3, 4)
LEARNING = {
    "ECO": lambda: ec.EpisodicCuriosity(ec.RNetwork((4,)), 3, online=ec.OnlineConfig()),
    "RND": lambda: ec.RND((4,), 3),
    "NGU": lambda: ec.NGU((4,), 3, num_actions=2),
    "ETD": lambda: ec.ETD((4,), 3),
    "normalised": lambda: ec.NormalisedBonus(ec.NovelD((4,), 3)),
}


@pytest.mark.parametrize("name", LEARNING)
def test_learn_takes_no_view(name):
    with pytest.raises(TypeError, match="rollout must be a Rollout, got Tensor"):
        LEARNING[name]().learn(VIEW)


def test_without_first_nothing_is_begun():
    bonus = ec.RND((4,), 3)
    with pytest.raises(TypeError, match="first must be a tensor or an array, got None"):
        bonus.bonus_same_step(VIEW, None)
    assert not bonus.opened.any()


@pytest.mark.parametrize("state", [None, 5, [("opened", VIEW)]])
def test_a_state_is_a_mapping(state):
    with pytest.raises(TypeError, match="state_dict must be a Mapping, got"):
        ec.RND((4,), 3).load_state_dict(state)


@pytest.mark.parametrize(
    "make",
    [
        lambda config: ec.RND((4,), 3, config),
        lambda config: ec.NovelD((4,), 3, config),
        lambda config: ec.ETD((4,), 3, config),
        lambda config: ec.ICM((4,), 3, num_actions=2, config=config),
        lambda config: ec.NGU((4,), 3, num_actions=2, config=config),
        lambda config: ec.E3B((4,), 3, num_actions=2, config=config),
        lambda config: ec.GridOracle(3, 10, 1.0, config),
        lambda config: ec.ECRND(ec.RNetwork((4,)), 3, config),
    ],
)
def test_the_config_of_another_bonus_is_refused(make):
    with pytest.raises(TypeError, match=r"config must be an? \w+Config, got PairsConfig"):
        make(ec.PairsConfig())
