"""A bonus's own Adam: its minibatches, its state, and torch's Adam beside it."""

import copy

import pytest
import torch
from torch import nn

import episodic_curiosity as ec
from episodic_curiosity.bonus.etd import ETDConfig
from episodic_curiosity.bonus.own_adam import OwnAdam
from episodic_curiosity.bonus.rnd import RNDConfig


def test_four_passes_over_a_share_in_four_minibatches():
    adam = OwnAdam(layer := nn.Linear(2, 1), 1e-3, seed=0)
    seen = []

    def loss(index):
        seen.append(index.tolist())
        return layer(torch.ones(1, 2)).sum() * 0 + len(seen)

    assert adam.fit(50, loss, share=0.5) == pytest.approx((1 + 16) / 2)
    assert [len(index) for index in seen] == [6] * 16
    for start in range(0, 16, 4):  # no sample twice in a pass
        assert len(set().union(*seen[start : start + 4])) == 24
    first = seen.copy()
    seen.clear()
    adam.fit(50, loss, share=0.5)
    assert seen != first  # another order in every call
    seen.clear()
    adam.fit(50, loss, most=3)
    assert [len(index) for index in seen] == [3] * 16
    seen.clear()
    adam.fit(2, loss, share=0.1)
    assert [len(index) for index in seen] == [1] * 8
    assert adam.fit(0, loss) is None


@pytest.mark.parametrize(
    "bonus",
    [
        ec.RND((4,), 2, RNDConfig(learning_rate=1e30)),
        ec.ETD((4,), 2, ETDConfig(learning_rate=1e30)),
        ec.ICM((4,), 2, num_actions=3, learning_rate=1e30),
    ],
    ids=lambda bonus: type(bonus).__name__,
)
def test_a_bonus_that_diverges_says_so_when_it_learns(bonus):
    generator = torch.Generator().manual_seed(0)

    def play_and_learn():
        bonus.begin(torch.randn(2, 4, generator=generator))
        for _ in range(60):
            action = torch.randint(3, (2,), generator=generator)
            bonus.bonus(torch.randn(2, 4, generator=generator), action=action)
        bonus.learn()

    def learn_four_times():
        for _ in range(4):
            play_and_learn()

    with pytest.raises(FloatingPointError, match=r"the loss of the bonus became (nan|inf)"):
        learn_four_times()


def test_beside_torchs_adam_and_resumed_to_the_bit():
    torch.manual_seed(0)
    one, other, plain = (nn.Linear(3, 2) for _ in range(3))
    other.load_state_dict(one.state_dict())
    plain.load_state_dict(one.state_dict())
    data = torch.randn(16, 3)
    adam = OwnAdam(one, 1e-2, seed=4)

    def loss(network):
        return lambda index: network(data[index]).square().mean()

    adam.fit(16, loss(one))
    reference = torch.optim.Adam(plain.parameters(), 1e-2, eps=1e-5)
    generator = torch.Generator().manual_seed(4)
    for _ in range(4):
        for index in torch.randperm(16, generator=generator).split(4):
            reference.zero_grad()
            loss(plain)(index).backward()
            nn.utils.clip_grad_norm_(plain.parameters(), 0.5)
            reference.step()
    torch.testing.assert_close(one.weight, plain.weight)

    resumed = OwnAdam(other, 1e-2, seed=4)
    resumed.load_state_dict(adam.state_dict())
    other.load_state_dict(one.state_dict())
    assert adam.fit(16, loss(one)) == resumed.fit(16, loss(other))
    assert torch.equal(one.weight, other.weight)


@pytest.mark.parametrize("move", [lambda m: m.double().float(), copy.deepcopy])
def test_moments_are_saved_after_a_move(move):
    torch.manual_seed(0)
    layer = nn.Linear(2, 1)
    layer.adam = OwnAdam(layer, 1e-3, seed=0)
    layer = move(layer)
    layer.adam.fit(4, lambda index: layer(torch.ones(len(index), 2)).mean())
    state = layer.adam.state_dict()
    assert state["step_weight"] == 16
    assert (state["exp_avg_weight"] != 0).all()
    assert (state["exp_avg_sq_bias"] != 0).all()
