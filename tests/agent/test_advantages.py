"""Generalised advantages: by hand, and against a sum over one environment at a time."""

import pytest
import torch

from episodic_curiosity.agent.advantages import advantages
from tests.agent.playing import random_rollout, rollout_of


def column(values):
    """(T,) numbers as (T, 1, 1): one environment, one head."""
    return torch.tensor(values)[:, None, None]


def one_environment(*, first, terminated, final_value=(0.0, 0.0, 0.0)):
    return rollout_of(
        value=column([1.0, 2.0, 3.0, 4.0]),
        first=torch.tensor(first)[:, None],
        terminated=torch.tensor(terminated)[:, None],
        final_value=column(final_value),
    )


REWARD = (10.0, 20.0, 30.0)
DISCOUNTS = {"gamma": 0.5, "lam": 0.5}  # gamma * lam = 0.25


@pytest.mark.parametrize(
    ("ending", "expected"),
    [
        # Surprises: 10 + 1 - 1 = 10, 20 + 1.5 - 2 = 19.5, 30 + 2 - 3 = 29.
        (
            {"first": [True, False, False, False], "terminated": [False] * 3},
            (16.6875, 26.75, 29),
        ),
        # The second action ends the task: its surprise is 20 - 2 and nothing comes after.
        (
            {"first": [True, False, True, False], "terminated": [False, True, False]},
            (14.5, 18, 29),
        ),
        # The clock ends the episode at a state worth 8: 20 + 4 - 2.
        (
            {
                "first": [True, False, True, False],
                "terminated": [False] * 3,
                "final_value": (0.0, 8.0, 0.0),
            },
            (15.5, 22, 29),
        ),
        # The last action of the rollout ends the task: 30 - 3.
        (
            {"first": [True, False, False, True], "terminated": [False, False, True]},
            (16.5625, 26.25, 27),
        ),
    ],
    ids=["no end", "terminated", "truncated", "terminated at the rollout's end"],
)
def test_by_hand(ending, expected):
    result = advantages(one_environment(**ending), column(REWARD), **DISCOUNTS)
    assert result.flatten().tolist() == list(expected)


def test_a_time_out_can_count_as_an_end():
    rollout = one_environment(
        first=[True, False, True, False], terminated=[False] * 3, final_value=(0.0, 8.0, 0.0)
    )
    result = advantages(rollout, column(REWARD), **DISCOUNTS, timeouts_are_ends=True)
    assert result.flatten().tolist() == [14.5, 18.0, 29.0]


def test_a_value_where_the_task_ended_is_not_used():
    rollout = one_environment(
        first=[True, False, True, False],
        terminated=[False, True, False],
        final_value=(0.0, 8.0, 0.0),
    )
    result = advantages(rollout, column(REWARD), **DISCOUNTS)
    assert result.flatten().tolist() == [14.5, 18.0, 29.0]


def slowly(rollout, reward, env, head, gamma, lam, timeouts_are_ends):
    """The definition: discounted sums of surprises up to the end of the episode."""
    surprises = []
    for t in range(rollout.num_steps):
        follows = rollout.value[t + 1, env, head]
        if rollout.terminated[t, env]:
            follows = 0.0
        elif rollout.first[t + 1, env]:
            follows = 0.0 if timeouts_are_ends else rollout.final_value[t, env, head]
        surprises.append(reward[t, env, head] + gamma * follows - rollout.value[t, env, head])
    result = []
    for t in range(rollout.num_steps):
        total, weight = 0.0, 1.0
        for later in range(t, rollout.num_steps):
            total += weight * surprises[later]
            weight *= gamma * lam
            if rollout.first[later + 1, env]:
                break
        result.append(float(total))
    return result


@pytest.mark.parametrize("timeouts_are_ends", [False, True])
def test_a_batch_against_one_at_a_time(timeouts_are_ends):
    rollout = random_rollout(num_steps=13, num_envs=5, num_values=2)
    assert rollout.terminated.any()
    assert rollout.truncated.any()
    reward = torch.stack([rollout.reward, rollout.bonus], dim=2)
    gammas = (0.9, 0.6)
    result = advantages(
        rollout,
        reward,
        gamma=torch.tensor(gammas),
        lam=0.8,
        timeouts_are_ends=timeouts_are_ends,
    )
    assert result.shape == (13, 5, 2)
    for env in range(5):
        for head, gamma in enumerate(gammas):
            expected = slowly(rollout, reward, env, head, gamma, 0.8, timeouts_are_ends)
            torch.testing.assert_close(result[:, env, head], torch.tensor(expected))
