"""ICM: losses and bonus by hand, what it is made of, and that it learns."""

import math
from typing import NamedTuple

import pytest
import torch
from torch import Tensor, nn

from episodic_curiosity.bonus.icm import ICM, ICMConfig, Shrunk
from tests.bonus.steps import random_steps, spec, step


class Minibatch(NamedTuple):
    observation: Tensor
    next_observation: Tensor | None
    action: Tensor
    connected: Tensor


def linear(weight: list[list[float]], bias: list[float]) -> nn.Linear:
    layer = nn.Linear(len(weight[0]), len(weight))
    layer.weight.data = torch.tensor(weight)
    layer.bias.data = torch.tensor(bias)
    return layer


def simple(model: ICM) -> None:
    """Features are the observation, (2,). The forward model knows that action 1 adds 1 to the
    first of them; the inverse one says 1 twice as often as 0 and 2, whatever it sees.
    """
    model.features = nn.Sequential(nn.Identity())
    model.forward_model = linear([[1.0, 0, 0, 1, 0], [0.0, 1, 0, 0, 0]], [0.0, 0.0])
    model.inverse_model = linear([[0.0] * 4] * 3, [0.0, math.log(2), 0.0])


# Three transitions; the last leads into another episode.
BEFORE = torch.tensor([[1.0, 2.0], [0.0, 0.0], [9.0, 9.0]])
AFTER = torch.tensor([[2.0, 4.0], [1.0, 0.0], [0.0, 0.0]])
ACTION = torch.tensor([1, 0, 2])
CONNECTED = torch.tensor([True, True, False])
SURPRISES = [0.5 * 2**2, 0.5 * 1**2, 0.5 * (9**2 + 9**2)]


def test_the_loss_by_hand():
    config = ICMConfig(ratio=0.75, strength=8.0)
    model = ICMModel(spec(observation_shape=(2,), num_actions=3), config)
    simple(model)
    loss, parts = model.loss(Minibatch(BEFORE, AFTER, ACTION, CONNECTED))
    forward = (SURPRISES[0] + SURPRISES[1]) / 2
    inverse = (math.log(2) + math.log(4)) / 2  # -log 2/4 and -log 1/4
    assert parts["icm_forward_loss"].item() == pytest.approx(forward)
    assert parts["icm_inverse_loss"].item() == pytest.approx(inverse)
    assert loss.item() == pytest.approx(8 * (0.75 * forward + 0.25 * inverse))
    assert not any(part.requires_grad for part in parts.values())


def test_a_minibatch_of_borders_only_has_no_loss():
    model = ICMModel(spec(observation_shape=(2,), num_actions=3), ICMConfig())
    loss, _ = model.loss(Minibatch(BEFORE, AFTER, ACTION, torch.zeros(3, dtype=torch.bool)))
    assert loss.item() == 0


@pytest.mark.parametrize("scale", [0.25, 1.0])
def test_the_bonus_by_hand(scale):
    """It is clipped to 1 after it is scaled, and zero where an episode begins."""
    world = spec(observation_shape=(2,), num_actions=3)
    icm = ICM(world, ICMConfig(scale=scale))
    simple(icm.model)
    assert icm.bonus(step([True] * 3, observation=BEFORE)).tolist() == [0.0] * 3
    paid = icm.bonus(step(~CONNECTED, observation=AFTER), ACTION)
    expected = [min(scale * surprise, 1.0) for surprise in SURPRISES[:2]]
    assert paid.tolist() == [*expected, 0.0]
    # The observation before is the newest one: the third has moved from (0, 0) to (0, 1).
    paid = icm.bonus(step([False] * 3, observation=torch.tensor([[0.0, 1.0]] * 3)), ACTION)
    assert paid[2].item() == scale * 0.5


def test_actions_that_are_numbers_by_hand():
    """The forward model takes the action itself, the inverse one guesses it; both within 1."""
    config = ICMConfig(ratio=0.5, strength=2.0)
    model = ICMModel(spec(observation_shape=(1,), action_shape=(2,)), config)
    model.features = nn.Sequential(nn.Identity())
    model.forward_model = linear([[1.0, 1.0, 0.0]], [0.0])  # adds the first of two numbers
    model.inverse_model = linear([[-1.0, 1.0], [0.0, 0.0]], [0.0, 0.5])
    action = torch.tensor([[3.0, -0.5]])  # the world takes it as (1, -0.5)
    batch = Minibatch(
        torch.tensor([[1.0]]), torch.tensor([[4.0]]), action, torch.tensor([True])
    )
    loss, parts = model.loss(batch)
    assert parts["icm_forward_loss"].item() == 0.5 * (1 + 1 - 4) ** 2
    assert parts["icm_inverse_loss"].item() == ((3 - 1) ** 2 + (0.5 + 0.5) ** 2) / 2
    assert loss.item() == 2 * (0.5 * 2.0 + 0.5 * 2.5)


@pytest.mark.parametrize("ratio", [0.0, 1.0])
def test_both_parts_train_the_features(ratio):
    model = ICMModel(spec(observation_shape=(2,), num_actions=3), ICMConfig(ratio=ratio))
    model.loss(Minibatch(BEFORE, AFTER, ACTION, CONNECTED))[0].backward()
    assert any(weight.grad.abs().sum() > 0 for weight in model.features.parameters())
    idle = model.forward_model if ratio == 0 else model.inverse_model
    assert all((weight.grad == 0).all() for weight in idle.parameters())


def test_its_size():
    """The paper: PPO has 1.7M trainable variables, PPO + ICM 2M."""
    frames = ICMModel(spec(observation_shape=(3, 84, 84), num_actions=9), ICMConfig())
    assert sum(weight.numel() for weight in frames.parameters()) == 328_969
    grey = ICMModel(spec(observation_shape=(1, 50, 40)), ICMConfig())
    assert grey.features(torch.zeros(2, 1, 42, 42)).shape == (2, 288)
    assert ICMModel(spec(observation_shape=(5,)), ICMConfig()).features(
        torch.zeros(2, 5)
    ).shape == (2, 288)


def test_frames_are_shrunk_to_the_mean_of_each_area():
    frame = torch.randint(256, (2, 3, 84, 126), dtype=torch.uint8)
    expected = frame.float().reshape(2, 3, 42, 2, 42, 3).mean(dim=(3, 5)) / 255
    shrunk = Shrunk()
    torch.testing.assert_close(shrunk(frame), expected)
    assert shrunk(frame[:, :, :20, :24]).shape == (2, 3, 42, 42)
    small = frame[:, :, :42, :42]
    assert torch.equal(shrunk(small), small / 255)


def test_what_is_seen_again_and_again_is_foreseen_at_last():
    world = spec(num_envs=6, observation_shape=(4,), num_actions=3)
    icm = ICM(world, ICMConfig(scale=0.02), seed=1)
    (before, _), (after, action) = random_steps(world, 2)
    batch = Minibatch(
        before.observation, after.observation, action, torch.ones(6, dtype=torch.bool)
    )
    going_on = after._replace(first=torch.zeros(6, dtype=torch.bool))
    optimiser = torch.optim.Adam(icm.model.parameters(), lr=1e-3)
    paid, losses = [], []
    for _ in range(150):
        icm.bonus(before)
        paid.append(icm.bonus(going_on, action).mean().item())
        loss, parts = icm.model.loss(batch)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(parts["icm_inverse_loss"].item())
    assert losses[0] == pytest.approx(math.log(3), abs=1e-3)  # at first it knows nothing
    assert losses[-1] < 0.1 * losses[0]
    assert 0 < paid[-1] < 0.1 * max(paid)


def test_the_seed_decides_the_weights_and_no_other_generator_does():
    world = spec()
    generator = torch.get_rng_state()
    one, same, other = (ICM(world, ICMConfig(), seed=seed) for seed in (1, 1, 2))
    assert torch.equal(torch.get_rng_state(), generator)
    weights = [bonus.model.forward_model[0].weight for bonus in (one, same, other)]
    assert torch.equal(weights[0], weights[1])
    assert not torch.equal(weights[0], weights[2])


def test_bad_input():
    icm = ICM(spec(observation_shape=(2,), num_actions=3), ICMConfig())
    with pytest.raises(ValueError, match="action must be given in mid-episode, got None"):
        icm.bonus(step([True, False, True], observation=BEFORE))
    with pytest.raises(ValueError, match=r"action must have shape \(3,\), got \(3, 1\)"):
        icm.bonus(step([False] * 3, observation=BEFORE), ACTION[:, None])
    with pytest.raises(ValueError, match=r"of dtype torch\.float32, got torch\.uint8"):
        icm.bonus(step([False] * 3, observation=BEFORE.to(torch.uint8)), ACTION)
    with pytest.raises(ValueError, match="observation must be finite, got NaN"):
        icm.bonus(step([False] * 3, observation=BEFORE / 0), ACTION)
    with pytest.raises(
        ValueError, match="ICM needs next_observation, got a minibatch without it"
    ):
        icm.model.loss(Minibatch(BEFORE, None, ACTION, CONNECTED))


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"ratio": 1.5}, r"ratio must be in \[0, 1\], got 1\.5"),
        ({"ratio": float("nan")}, "ratio must be a finite number, got nan"),
        ({"scale": 0}, "scale must be a finite number above 0, got 0"),
        ({"strength": None}, "strength must be a finite number above 0, got None"),
    ],
)
def test_bad_configuration(config, message):
    with pytest.raises(ValueError, match=message):
        ICMConfig(**config)
