"""ICM: losses and bonus by hand, what it is made of, and that it learns."""

import math
from typing import NamedTuple

import pytest
import torch
from torch import Tensor, nn

from episodic_curiosity.bonus import features, icm
from episodic_curiosity.bonus.base import BonusContext
from episodic_curiosity.bonus.features import Shrunk
from episodic_curiosity.bonus.icm import ICM, ICMConfig, ICMModel
from tests.worlds.on_paper import spec


class Minibatch(NamedTuple):
    observation: Tensor
    next_observation: Tensor | None
    action: Tensor
    connected: Tensor
    frame: Tensor | None = None


def linear(weight: list[list[float]], bias: list[float]) -> nn.Linear:
    layer = nn.Linear(len(weight[0]), len(weight))
    layer.weight.data = torch.tensor(weight)
    layer.bias.data = torch.tensor(bias)
    return layer


def icm_of(num_envs: int = 3, **options) -> ICM:
    """An ICM of two numbers and three actions, unless told otherwise."""
    options = {"num_actions": 3, "observation_dtype": torch.float32} | options
    return ICM((2,), num_envs, **options)


def simple(model: ICMModel) -> None:
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
    model = ICMModel((2,), 3, (), config)
    simple(model)
    loss, parts = model.loss(Minibatch(BEFORE, AFTER, ACTION, CONNECTED))
    forward = (SURPRISES[0] + SURPRISES[1]) / 2
    inverse = (math.log(2) + math.log(4)) / 2  # -log 2/4 and -log 1/4
    assert parts["icm_forward_loss"].item() == pytest.approx(forward)
    assert parts["icm_inverse_loss"].item() == pytest.approx(inverse)
    assert loss.item() == pytest.approx(8 * (0.75 * forward + 0.25 * inverse))
    assert not any(part.requires_grad for part in parts.values())


def test_a_frame_that_is_in_both_observations_is_embedded_once(monkeypatch):
    """5 steps x 3 environments: 9 of the samples show 15 of the 18 frames, 18 times."""
    torch.manual_seed(0)
    frames = torch.randint(0, 256, (18, 3, 42, 42), dtype=torch.uint8)
    sample = torch.tensor([0, 1, 3, 4, 6, 9, 11, 13, 14])
    frame = torch.stack([sample, sample + 3], dim=1)
    num_frames = len(frame.unique())
    assert num_frames < 18
    batch = Minibatch(
        frames[sample], frames[sample + 3], torch.randint(0, 4, (9,)), torch.rand(9) < 0.8
    )
    model = ICMModel((3, 42, 42), 4, (), ICMConfig(strength=1.0))
    monkeypatch.setattr(icm, "CPU_PART", 4)
    # In bfloat16 the sums of gradients differ by more.
    monkeypatch.setattr(features, "computing_in", lambda _: torch.float32)
    counted, see = [], icm.see
    monkeypatch.setattr(icm, "see", lambda *a: counted.append(len(a[1])) or see(*a))
    results = []
    for given in (batch, batch._replace(frame=frame)):
        counted.clear()
        loss, _ = model.loss(given)
        results.append([loss, *torch.autograd.grad(loss, list(model.parameters()))])
    assert sum(counted) == num_frames
    assert max(counted) == 4
    for once, twice in zip(*results, strict=True):
        torch.testing.assert_close(once, twice, rtol=1e-4, atol=1e-6)


def test_a_minibatch_of_borders_only_has_no_loss():
    model = ICMModel((2,), 3, (), ICMConfig())
    loss, _ = model.loss(Minibatch(BEFORE, AFTER, ACTION, torch.zeros(3, dtype=torch.bool)))
    assert loss.item() == 0


@pytest.mark.parametrize("scale", [0.25, 1.0])
def test_the_bonus_by_hand(scale):
    """It is clipped to 1 after it is scaled, and zero where an episode begins."""
    icm = icm_of(config=ICMConfig(scale=scale))
    simple(icm.model)
    icm.begin(BEFORE)
    paid = icm.bonus_same_step(AFTER, ~CONNECTED, action=ACTION)
    expected = [min(scale * surprise, 1.0) for surprise in SURPRISES[:2]]
    assert paid.tolist() == [*expected, 0.0]
    # The observation before is the newest one: the third has moved from (0, 0) to (0, 1).
    paid = icm.bonus(torch.tensor([[0.0, 1.0]] * 3), action=ACTION)
    assert paid[2].item() == scale * 0.5


def test_a_row_that_is_left_out_keeps_the_observation_before():
    """The second row is left out twice: it has moved from (0, 0) to (0, 1), with action 0."""
    icm = icm_of(2, config=ICMConfig(scale=0.5))
    simple(icm.model)
    icm.begin(torch.zeros(2, 2))
    only = torch.tensor([True, False])
    for place in (3.0, 4.0):
        seen = torch.tensor([[place, 0.0], [torch.nan] * 2])
        icm.bonus(seen, action=torch.tensor([1, 0]), where=only)
    paid = icm.bonus(torch.tensor([[5.0, 0.0], [0.0, 1.0]]), action=torch.tensor([1, 0]))
    assert paid.tolist() == [0.0, 0.5 * 0.5]


def test_actions_that_are_numbers_by_hand():
    """The forward model takes the action itself, the inverse one guesses it; both within 1."""
    config = ICMConfig(ratio=0.5, strength=2.0)
    model = ICMModel((1,), 0, (2,), config)
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
    model = ICMModel((2,), 3, (), ICMConfig(ratio=ratio))
    model.loss(Minibatch(BEFORE, AFTER, ACTION, CONNECTED))[0].backward()
    assert any(weight.grad.abs().sum() > 0 for weight in model.features.parameters())
    idle = model.forward_model if ratio == 0 else model.inverse_model
    assert all((weight.grad == 0).all() for weight in idle.parameters())


def test_its_size():
    """The paper: PPO has 1.7M trainable variables, PPO + ICM 2M."""
    frames = ICMModel((3, 84, 84), 9, (), ICMConfig())
    assert sum(weight.numel() for weight in frames.parameters()) == 328_969
    grey = ICMModel((1, 50, 40), 4, (), ICMConfig())
    assert grey.features(torch.zeros(2, 1, 42, 42)).shape == (2, 288)
    vectors = ICMModel((5,), 4, (), ICMConfig())
    assert vectors.features(torch.zeros(2, 5)).shape == (2, 288)


def test_every_second_pixel_of_84_x_84_and_the_mean_of_areas_otherwise():
    frame = torch.randint(256, (2, 3, 126, 168), dtype=torch.uint8)
    shrunk = Shrunk()
    square = frame[:, :, :84, :84]
    small = shrunk(square)
    assert small.shape == (2, 3, 42, 42)
    for row, column in ((0, 0), (1, 30), (41, 41)):
        expected = square[:, :, 2 * row, 2 * column] / 255
        assert torch.equal(small[:, :, row, column], expected)
    assert torch.equal(shrunk(frame)[:, :, 5, 7], frame[:, :, 15, 28] / 255)
    assert torch.equal(shrunk(square[:, :, :42, :42]), square[:, :, :42, :42] / 255)
    # 63 rows: every row of 42 is the mean of two of them.
    odd = shrunk(frame[:, :, :63, :84])
    expected = frame[:, :, :2, :2].float().mean(dim=(2, 3)) / 255
    torch.testing.assert_close(odd[:, :, 0, 0], expected)
    assert shrunk(frame[:, :, :20, :24]).shape == (2, 3, 42, 42)


@pytest.mark.parametrize("own", [True, False], ids=["its own Adam", "PPO's"])
def test_what_is_seen_again_and_again_is_foreseen_at_last(own):
    icm = ICM(
        (4,),
        6,
        num_actions=3,
        observation_dtype=torch.float32,
        config=ICMConfig(scale=0.02),
        learning_rate=1e-3 if own else None,
        num_steps=3,
        seed=1,
    )
    generator = torch.Generator().manual_seed(0)
    before, after = torch.randn(2, 6, 4, generator=generator)
    action = torch.randint(3, (6,), generator=generator)
    assert (icm.auxiliary() is None) == own
    optimiser = torch.optim.Adam(icm.model.parameters(), lr=1e-3)
    paid, losses = [], []
    for _ in range(250):
        icm.begin(before)
        paid.append(icm.bonus(after, action=action).mean().item())
        told = icm.learn()
        if not own:
            assert told == {}
            batch = Minibatch(before, after, action, torch.ones(6, dtype=torch.bool))
            loss, told = icm.auxiliary().loss(batch)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
        losses.append(float(told["icm_inverse_loss"]))
    assert losses[0] == pytest.approx(math.log(3), abs=1e-3)  # at first it knows nothing
    assert losses[-1] < 0.1 * losses[0]
    assert 0 < paid[-1] < 0.1 * max(paid)


def test_learning_takes_each_transition_once_and_forgets_the_oldest():
    """Room for 3 steps; the first row takes 5 and the second 1, which is not overwritten."""
    icm = icm_of(2, num_steps=3)
    icm.begin(torch.zeros(2, 2))
    for time in range(1, 6):
        seen, action = torch.full((2, 2), float(time)), torch.tensor([0, 2])
        icm.bonus(seen, action=action, where=torch.tensor([True, time == 2]))
    batch = icm.recent.take()
    moves = zip(
        batch.observation[:, 0].tolist(), batch.next_observation[:, 0].tolist(), strict=True
    )
    found = sorted(zip(batch.action.tolist(), moves, strict=True))
    assert found == [(0, (2.0, 3.0)), (0, (3.0, 4.0)), (0, (4.0, 5.0)), (2, (0.0, 2.0))]
    assert icm.learn() == {}  # nothing was added since
    icm.begin(torch.zeros(2, 2))
    icm.bonus(torch.ones(2, 2), action=torch.tensor([1, 1], dtype=torch.int32))
    weights = icm.model.forward_model[0].weight.clone()
    assert set(icm.learn()) == {"icm_forward_loss", "icm_inverse_loss"}
    assert not torch.equal(icm.model.forward_model[0].weight, weights)


def test_in_a_run_it_sees_what_the_policy_does_and_ppo_trains_it():
    world = spec(observation_shape=(7,), action_shape=(2,))
    icm = ICM.for_run(ICMConfig(), world, BonusContext(seed=5))
    assert (icm.sees, icm.seen_shape, icm.num_envs) == ("observation", (7,), 3)
    assert icm.auxiliary() is icm.model
    same = ICM((7,), 3, action_shape=(2,), observation_dtype=torch.float32, seed=5)
    for one, other in zip(icm.model.parameters(), same.model.parameters(), strict=True):
        assert torch.equal(one, other)


def test_the_seed_decides_the_weights_and_no_other_generator_does():
    generator = torch.get_rng_state()
    one, same, other = (icm_of(seed=seed) for seed in (1, 1, 2))
    assert torch.equal(torch.get_rng_state(), generator)
    weights = [bonus.model.forward_model[0].weight for bonus in (one, same, other)]
    assert torch.equal(weights[0], weights[1])
    assert not torch.equal(weights[0], weights[2])


def without_recent(state: dict) -> dict:
    return {name: part for name, part in state.items() if not name.startswith("recent.")}


def test_bad_input():
    icm = icm_of()
    icm.begin(BEFORE)
    with pytest.raises(ValueError, match="needs the action that led to each step, got action="):
        icm.bonus_same_step(BEFORE, torch.tensor([True, False, True]))
    with pytest.raises(ValueError, match=r"action must have shape \(3,\), got \(3, 1\)"):
        icm.bonus(BEFORE, action=ACTION[:, None])
    with pytest.raises(ValueError, match=r"of dtype torch\.float32, got torch\.uint8"):
        icm.bonus(BEFORE.to(torch.uint8), action=ACTION)
    with pytest.raises(ValueError, match="observation must be finite, got NaN"):
        icm.bonus(BEFORE / 0, action=ACTION)
    with pytest.raises(ValueError, match="ICM needs num_actions or action_shape, got neither"):
        icm_of(num_actions=0)
    with pytest.raises(
        ValueError, match="learning_rate must be a finite number above 0, got 0"
    ):
        icm_of(learning_rate=0)
    with pytest.raises(
        ValueError, match="the bonus's state has 37 unexpected tensors, first adam"
    ):
        icm_of(learning_rate=None).load_state_dict(without_recent(icm.state_dict()))
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


def test_vectors_are_floats_and_frames_are_bytes_unless_told():
    action = torch.zeros(2, dtype=torch.int64)
    vectors = ICM((4,), 2, num_actions=3)
    vectors.begin(torch.zeros(2, 4))
    assert vectors.bonus(torch.ones(2, 4), action=action).shape == (2,)
    frames = ICM((3, 42, 42), 2, num_actions=3)
    assert frames.previous.dtype == torch.uint8
    with pytest.raises(ValueError, match="observation must be of dtype") as error:
        frames.begin(torch.zeros(2, 3, 42, 42))
    assert str(error.value) == (
        "observation must be of dtype torch.uint8, got torch.float32; for that give "
        "observation_dtype=torch.float32"
    )
    floats = ICM((3, 42, 42), 2, num_actions=3, observation_dtype=torch.float32)
    floats.begin(torch.zeros(2, 3, 42, 42))
