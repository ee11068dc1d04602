"""The single-file PPO: it runs, with curiosity and without its lines."""

import re
from pathlib import Path

import pytest
import torch

from examples import cleanrl_ppo
from examples.cleanrl_ppo import Args, estimate_advantages, train

MARK = "  # curiosity\n"
SHORT = {"total_steps": 1_280, "num_envs": 4, "num_steps": 64}


@pytest.fixture(scope="module")
def lines():
    return Path(cleanrl_ppo.__file__).read_text().splitlines(keepends=True)


@pytest.mark.slow
def test_it_refits_and_reports(capsys):
    """An episode of MountainCar has 200 steps of reward -1 unless the goal is found."""
    returns = train(Args(**SHORT, refit_every=4 * 208))
    assert returns[-1] == -200
    assert re.search(
        r"1,280 steps: return -200.0, bonus -?0.0\d*[1-9]", capsys.readouterr().out
    )


@pytest.mark.slow
def test_without_the_marked_lines_it_is_plain_ppo(lines):
    assert sum(line.endswith(MARK) for line in lines) == 10
    source = "".join(line for line in lines if not line.endswith(MARK))
    assert "episodic_curiosity" not in source
    names = {"__name__": "plain"}
    exec(compile(source, "plain", "exec"), names)
    assert names["train"](names["Args"](**SHORT))[-1] == -200


def test_advantages_by_hand():
    """Two steps, of which the first ends an episode in the second environment."""
    rewards = torch.tensor([[1.0, 2.0], [4.0, 8.0]])
    values = torch.tensor([[0.5, 0.25], [2.0, 1.0]])
    dones = torch.tensor([[0.0, 1.0], [0.0, 0.0]])
    next_value = torch.tensor([3.0, 5.0])
    found = estimate_advantages(
        rewards, values, dones, next_value, Args(gamma=0.5, gae_lambda=0.5)
    )
    last = [4 + 0.5 * 3 - 2, 8 + 0.5 * 5 - 1]
    assert found.tolist() == [[1 + 0.5 * 2 - 0.5 + 0.25 * last[0], 2 - 0.25], last]
