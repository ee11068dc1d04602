"""PPO: its losses by hand, one Adam for all, and an update that depends on its number alone."""

import math

import pytest
import torch
from torch import nn

from episodic_curiosity import Agent
from episodic_curiosity.agent.losses import clipped_gain, value_error
from episodic_curiosity.agent.ppo import PPO, PPOConfig
from tests.agent.playing import random_rollout, rollout_of


def make_agent(seed=0, **options):
    torch.manual_seed(seed)
    return Agent(**({"observation_shape": (4,), "num_actions": 3} | options))


def make_ppo(agent, *, num_updates=10, seed=0, auxiliary=None, **config):
    config = PPOConfig(**({"num_minibatches": 3, "num_epochs": 2} | config))
    return PPO(agent, config, num_updates=num_updates, seed=seed, auxiliary=auxiliary)


def weights_of(module):
    return torch.cat([weight.detach().flatten() for weight in module.parameters()])


class Recorder(nn.Module):
    """An auxiliary with one weight, whose gradient is `pull`; keeps the minibatches it saw."""

    def __init__(self, pull=0.0):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(()))
        self.pull = pull
        self.seen = []

    def loss(self, batch):
        self.seen.append(batch)
        return self.pull * self.weight, {"recorder_loss": self.weight.square()}


def test_the_clipped_gain_by_hand():
    ratio = torch.tensor([1.05, 1.3, 0.7, 1.3, 0.7])
    advantage = torch.tensor([2.0, 2.0, 2.0, -2.0, -2.0])
    gain = clipped_gain(ratio.log(), advantage, torch.tensor(0.1))
    # Too far in the good direction is cut, too far in the bad one is not.
    torch.testing.assert_close(gain, torch.tensor([2.1, 2.2, 1.4, -2.6, -1.8]))


def test_the_value_error_by_hand():
    value = torch.tensor([[1.05], [2.0], [0.0]])
    old, target = torch.tensor([[1.0]] * 3), torch.tensor([[3.0]] * 3)
    free = value_error(value, old, target, None)
    torch.testing.assert_close(free, torch.tensor([[1.90125], [0.5], [4.5]]))
    # Values are held to 1.05, 1.1 and 0.9: only the one that ran ahead is judged by that.
    clipped = value_error(value, old, target, torch.tensor(0.1))
    torch.testing.assert_close(clipped, torch.tensor([[1.90125], [1.805], [4.5]]))


@pytest.mark.parametrize("clip_values", [False, True])
def test_one_step_against_a_transcription(clip_values):
    """One minibatch of everything, the loss written out, torch's plain Adam."""
    agent, twin = make_agent(), make_agent()
    rollout = random_rollout(num_steps=5, num_envs=2)
    gamma, lam, epsilon = 0.9, 0.8, 0.1
    ppo = make_ppo(
        agent,
        num_minibatches=1,
        num_epochs=1,
        gamma=gamma,
        lam=lam,
        clip_values=clip_values,
        reward_scale=0.5,
        entropy_coefficient=0.01,
        max_gradient_norm=0.1,
    )
    metrics = ppo.update(rollout, number=0)

    advantage, later = torch.zeros(5, 2), torch.zeros(2)
    for t in reversed(range(5)):
        goes_on = (~rollout.first[t + 1]).float()
        follows = goes_on * rollout.value[t + 1, :, 0] + rollout.final_value[t, :, 0]
        surprise = 0.5 * rollout.reward[t] + rollout.bonus[t] + gamma * follows
        later = surprise - rollout.value[t, :, 0] + gamma * lam * goes_on * later
        advantage[t] = later
    old = rollout.value[:-1, :, 0].flatten()
    target = advantage.flatten() + old
    advantage = advantage.flatten()
    advantage = (advantage - advantage.mean()) / advantage.std(correction=0)

    output = twin(rollout.observation[:-1].flatten(0, 1))
    log_prob = output.policy.log_prob(rollout.action.flatten())
    ratio = (log_prob - rollout.log_prob.flatten()).exp()
    gain = torch.minimum(
        ratio * advantage, ratio.clamp(1 - epsilon, 1 + epsilon) * advantage
    ).mean()
    value = output.value[:, 0]
    error = (value - target) ** 2
    if clip_values:
        held = torch.clamp(value, old - epsilon, old + epsilon)
        error = torch.maximum(error, (held - target) ** 2)
    value_loss = 0.5 * error.mean()
    entropy = output.policy.entropy().mean()
    (-gain + 0.5 * value_loss - 0.01 * entropy).backward()
    norm = nn.utils.clip_grad_norm_(twin.parameters(), 0.1)
    torch.optim.Adam(twin.parameters(), 2.5e-4, eps=1e-5).step()

    torch.testing.assert_close(weights_of(agent), weights_of(twin), rtol=1e-5, atol=1e-7)
    change = ratio - 1
    explained = 1 - (target - old).var() / target.var()
    assert metrics == pytest.approx(
        {
            "policy_loss": -gain.item(),
            "value_loss": value_loss.item(),
            "entropy": entropy.item(),
            "clip_fraction": (change.abs() > epsilon).float().mean().item(),
            "approximate_kl": (change - ratio.log()).mean().item(),
            "gradient_norm": norm.item(),
            "explained_variance": explained.item(),
            "learning_rate": 2.5e-4,
        },
        rel=1e-4,
    )


def test_two_heads_learn_the_reward_and_the_bonus():
    recorder = Recorder()
    ppo = make_ppo(
        make_agent(num_values=2),
        auxiliary=recorder,
        bonus_head=True,
        bonus_gamma=0.5,
        gamma=0.25,
        lam=1.0,
        reward_scale=2.0,
        num_minibatches=1,
        num_epochs=1,
    )
    ends = torch.tensor([[True], [False], [True]])
    rollout = rollout_of(
        observation=torch.zeros(3, 1, 4),
        value=torch.zeros(3, 1, 2),
        reward=torch.tensor([[1.0], [4.0]]),
        bonus=torch.tensor([[10.0], [20.0]]),
        first=ends,
        terminated=ends[1:],
    )
    ppo.update(rollout, number=0)
    (batch,) = recorder.seen
    # 2 * 1 + 0.25 * 2 * 4 and 10 + 0.5 * 20 before the last step, 2 * 4 and 20 at it.
    assert sorted(batch.target.tolist()) == [[4.0, 20.0], [8.0, 20.0]]
    assert sorted(batch.advantage.tolist()) == [24.0, 28.0]


def test_an_auxiliary_sees_every_sample_once_an_epoch_with_what_followed():
    recorder = Recorder()
    rollout = random_rollout(num_steps=6, num_envs=4)
    numbers = torch.arange(28.0).view(7, 4, 1).expand(7, 4, 4).contiguous()
    ppo = make_ppo(make_agent(), auxiliary=recorder)
    metrics = ppo.update(rollout._replace(observation=numbers), number=0)
    assert len(recorder.seen) == 2 * 3
    orders = []
    for epoch in (recorder.seen[:3], recorder.seen[3:]):
        order = torch.cat([batch.observation[:, 0] for batch in epoch]).long()
        assert order.sort().values.tolist() == list(range(24))
        orders.append(order.tolist())
        following = torch.cat([batch.next_observation[:, 0] for batch in epoch])
        assert torch.equal(following, order + 4.0)  # one step later is 4 environments further
        frame = torch.cat([batch.frame for batch in epoch])
        assert torch.equal(frame, torch.stack([order, order + 4], dim=1))
        connected = torch.cat([batch.connected for batch in epoch])
        assert torch.equal(connected, ~rollout.first[1:].flatten()[order])
        action = torch.cat([batch.action for batch in epoch])
        assert torch.equal(action, rollout.action.flatten()[order])
    assert orders[0] != orders[1] != list(range(24))
    assert metrics["recorder_loss"] == 0.0


def test_one_gradient_clip_over_the_agent_and_its_auxiliary():
    recorder = Recorder(pull=100.0)
    ppo = make_ppo(make_agent(), auxiliary=recorder, num_minibatches=1, num_epochs=1)
    metrics = ppo.update(random_rollout(6, 4), number=0)
    # Adam's first moment after one step is a tenth of the clipped gradient.
    gradients = {name: 10 * moment for name, moment in ppo.state_dict()["exp_avg"].items()}
    norms = torch.stack([gradient.norm() for gradient in gradients.values()])
    assert norms.norm().item() == pytest.approx(0.5, rel=1e-4)
    assert gradients["auxiliary.weight"].item() == pytest.approx(0.5, rel=1e-2)
    assert metrics["gradient_norm"] == pytest.approx(100, rel=1e-2)


def test_no_auxiliary_no_next_observations(monkeypatch):
    seen = []
    ppo = make_ppo(make_agent())
    improve = ppo._improve
    monkeypatch.setattr(ppo, "_improve", lambda batch: seen.append(batch) or improve(batch))
    ppo.update(random_rollout(6, 4), number=0)
    assert seen
    assert all(batch.next_observation is None for batch in seen)


@pytest.mark.parametrize(
    ("decay", "rates", "clipped"),
    [
        ({"decay": "linear"}, [2.5e-4, 1.25e-4, 0.25e-4], [0, 1, 1]),
        # Of 1.25 times 10 updates, 12.5 are to come, then 7.5 and 3.5.
        ({"decay_horizon": 1.25}, [2.5e-4, 1.5e-4, 0.7e-4], [0, 1, 1]),
        ({"decay": "constant"}, [2.5e-4] * 3, [0, 0, 0]),
    ],
)
def test_learning_rate_and_clip_range_decay(decay, rates, clipped):
    agent = make_agent()
    rollout = random_rollout(6, 4)
    with torch.no_grad():
        policy = agent(rollout.observation[:-1].flatten(0, 1)).policy
        log_prob = policy.log_prob(rollout.action.flatten()).view(6, 4)
    rollout = rollout._replace(log_prob=log_prob - math.log(1.08))  # a ratio of 1.08
    state = {name: tensor.clone() for name, tensor in agent.state_dict().items()}
    ppo = make_ppo(agent, **decay, num_minibatches=1, num_epochs=1)
    for number, rate, fraction in zip((0, 5, 9), rates, clipped, strict=True):
        agent.load_state_dict(state)
        metrics = ppo.update(rollout, number)
        assert metrics["learning_rate"] == pytest.approx(rate)
        assert metrics["clip_fraction"] == fraction


def test_the_seed_and_the_number_of_the_update_decide():
    rollout = random_rollout(6, 4)

    def after(seed, number):
        agent = make_agent()
        make_ppo(agent, seed=seed, decay="constant").update(rollout, number)
        return weights_of(agent)

    assert torch.equal(after(seed=3, number=1), after(seed=3, number=1))
    assert not torch.equal(after(seed=3, number=1), after(seed=3, number=2))
    assert not torch.equal(after(seed=3, number=1), after(seed=4, number=1))


@pytest.mark.parametrize("observation_shape", [(4,), (3, 36, 36)])
def test_a_resumed_run_is_bit_equal(observation_shape):
    rollouts = [
        random_rollout(6, 4, observation_shape=observation_shape, seed=seed)
        for seed in range(4)
    ]
    straight = make_agent(observation_shape=observation_shape)
    recorder = Recorder(pull=1.0)
    ppo = make_ppo(straight, auxiliary=recorder)
    for number, rollout in enumerate(rollouts[:2]):
        ppo.update(rollout, number)
    # Files hold contiguous tensors, whatever their layout was here.
    moments = {
        moment: {name: tensor.clone().contiguous() for name, tensor in tensors.items()}
        for moment, tensors in ppo.state_dict().items()
    }
    weights = {name: tensor.clone() for name, tensor in straight.state_dict().items()}
    weight = recorder.weight.detach().clone()

    resumed = make_agent(seed=1, observation_shape=observation_shape)
    other = Recorder(pull=1.0)
    second = make_ppo(resumed, auxiliary=other)
    resumed.load_state_dict(weights)
    other.load_state_dict({"weight": weight})
    second.load_state_dict(moments)
    for number in (2, 3):
        assert ppo.update(rollouts[number], number) == second.update(rollouts[number], number)
    assert torch.equal(weights_of(straight), weights_of(resumed))
    assert torch.equal(recorder.weight, other.weight)


def test_a_saved_state_does_not_change_when_training_goes_on():
    ppo = make_ppo(make_agent())
    ppo.update(random_rollout(6, 4), number=0)
    state = ppo.state_dict()
    before = state["exp_avg"]["agent.value_head.weight"].clone()
    ppo.update(random_rollout(6, 4), number=1)
    assert torch.equal(state["exp_avg"]["agent.value_head.weight"], before)


def test_states_of_something_else():
    ppo = make_ppo(make_agent())
    with pytest.raises(
        ValueError, match=r"state has step, exp_avg, exp_avg_sq, got \['adam'\]"
    ):
        ppo.load_state_dict({"adam": {}})
    other = make_ppo(make_agent(num_actions=5)).state_dict()
    with pytest.raises(
        ValueError, match=r"exp_avg holds agent.policy_head.weight as .*\(5, 64"
    ):
        ppo.load_state_dict(other)
    with_auxiliary = make_ppo(make_agent(), auxiliary=Recorder()).state_dict()
    with pytest.raises(ValueError, match=r"unexpected tensors, first auxiliary\.weight"):
        ppo.load_state_dict(with_auxiliary)


def test_a_loss_that_is_not_finite_is_named():
    rollout = random_rollout(6, 4)
    rollout.value[3, 2] = torch.nan
    ppo = make_ppo(make_agent(), num_minibatches=1, normalise_advantages=False)
    with pytest.raises(
        FloatingPointError, match="the policy_loss of update 7 is nan, in minibatch 1 of 2"
    ):
        ppo.update(rollout, number=7)
    ppo = make_ppo(make_agent(), auxiliary=Recorder(pull=math.inf), num_minibatches=1)
    with pytest.raises(FloatingPointError, match=r"gradient_norm of update 0 is \w+, in"):
        ppo.update(random_rollout(6, 4), number=0)


@pytest.mark.parametrize("name", ["reward", "bonus"])
def test_a_reward_or_bonus_that_is_not_finite_is_named(name):
    rollout = random_rollout(6, 4)
    getattr(rollout, name)[4, 1] = torch.nan
    with pytest.raises(
        FloatingPointError, match=f"the {name} of update 7 is nan, in step 5 of environment 1"
    ):
        make_ppo(make_agent()).update(rollout, number=7)


def test_returns_that_are_all_the_same():
    rollout = rollout_of(value=torch.zeros(7, 4, 1), observation=torch.rand(7, 4, 4))
    assert make_ppo(make_agent()).update(rollout, number=0)["explained_variance"] == 0.0


def test_a_rollout_that_does_not_fit():
    ppo = make_ppo(make_agent())
    with pytest.raises(
        ValueError, match="5 steps of 4 environments cannot be cut into 3 equal"
    ):
        ppo.update(random_rollout(5, 4), number=0)
    with pytest.raises(ValueError, match="must have 1 heads, got 2"):
        ppo.update(random_rollout(6, 4, num_values=2), number=0)
    with pytest.raises(ValueError, match="has 10 updates, numbered from 0, got 10"):
        ppo.update(random_rollout(6, 4), number=10)


def test_an_agent_that_does_not_fit():
    with pytest.raises(
        ValueError, match="bonus_head=True needs an agent with num_values=2, got"
    ):
        make_ppo(make_agent(), bonus_head=True)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"num_steps": 0}, "num_steps must be an integer of at least 1, got 0"),
        ({"gamma": 1.5}, "gamma must be a number from 0 to 1, got 1.5"),
        ({"learning_rate": 0}, "learning_rate must be a finite number above 0, got 0"),
        ({"decay_horizon": 0.5}, "decay_horizon must be at least 1, got 0.5"),
        ({"decay": "cosine"}, "decay must be one of linear, constant, got 'cosine'"),
        ({"bonus_gamma": 0.9}, "bonus_gamma must be None without bonus_head, got 0.9"),
        ({"bonus_head": True, "bonus_gamma": -1}, "bonus_gamma must be a number from 0 to 1"),
        ({"entropy_coefficient": math.nan}, "entropy_coefficient must be a finite number"),
    ],
)
def test_impossible_settings(config, message):
    with pytest.raises(ValueError, match=message):
        PPOConfig(**config)
