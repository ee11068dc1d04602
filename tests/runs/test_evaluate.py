"""Evaluation: which episodes count, and what is counted of them."""

import json

import numpy as np
import pytest
import torch
from torch import Tensor

from episodic_curiosity.agent.network import Agent
from episodic_curiosity.runs.evaluate import evaluate
from episodic_curiosity.worlds.base import Step, WorldSpec
from episodic_curiosity.worlds.registry import make_world

LENGTHS = ((1, 6, 1, 6, 1, 6), (4, 2, 4, 2, 4, 2), (3, 3, 3, 3, 3, 3))


class Schedule:
    """Environments whose episodes have these lengths; step t of an episode pays t + 1.

    The agent walks along x by one unit a step; the next episode begins at x = 100.
    """

    def __init__(self, lengths=LENGTHS, episode_steps=6, num_actions=2):
        self._lengths = lengths
        self.spec = WorldSpec(
            task="test/schedule",
            num_envs=len(lengths),
            device=torch.device("cpu"),
            observation_shape=(2,),
            observation_dtype=torch.float32,
            view_shape=(2,),
            view_dtype=torch.float32,
            num_actions=num_actions,
            action_shape=() if num_actions else (2,),
            episode_steps=episode_steps,
            has_position=True,
            oracle_cell=2.0,
        )
        self.actions: list[Tensor] = []

    def reset(self, seed: int | None = None) -> Step:
        self.seed = seed
        self._clock = [0] * self.spec.num_envs
        self._episode = [0] * self.spec.num_envs
        no = torch.zeros(self.spec.num_envs, dtype=torch.bool)
        return self._emit(torch.zeros(self.spec.num_envs), no)._replace(first=~no)

    def step(self, actions: Tensor) -> Step:
        self.actions.append(actions)
        reward, ended, last = [], [], []
        for env, lengths in enumerate(self._lengths):
            self._clock[env] += 1
            reward.append(float(self._clock[env]))
            last.append(self._place(env))
            ended.append(self._clock[env] == lengths[self._episode[env] % len(lengths)])
            if ended[-1]:
                self._clock[env] = 0
                self._episode[env] += 1
        step = self._emit(torch.tensor(reward), torch.tensor(ended))
        return step._replace(final_position=torch.tensor(last)) if any(ended) else step

    def close(self) -> None:
        pass

    def _place(self, env: int) -> list[float]:
        return [100.0 * self._episode[env] + self._clock[env], 0.0, 0.0]

    def _emit(self, reward: Tensor, ended: Tensor) -> Step:
        observation = torch.tensor([[float(clock), 1.0] for clock in self._clock])
        position = torch.tensor([self._place(env) for env in range(self.spec.num_envs)])
        no = torch.zeros_like(ended)
        return Step(observation, observation, reward, ended, ended, no, position)


@pytest.fixture
def agent() -> Agent:
    torch.manual_seed(0)
    return Agent((2,), 2)


def test_the_first_episodes_of_each_environment_count_and_no_others(agent):
    evaluation = evaluate(agent, Schedule(), num_episodes=5)  # 2 of each of 3 environments
    # (1, 6), (4, 2) and (3, 3); what is played until the last has ended does not count.
    assert evaluation.length.tolist() == [1, 4, 3, 6, 2, 3]
    assert evaluation.reward.tolist() == [1, 10, 6, 21, 3, 6]
    # Cells of 2 units, the last place included: (0, 1), (2, 3), (4); later (100, 101) ...
    assert evaluation.coverage.tolist() == [1, 3, 2, 4, 2, 2]


def test_short_episodes_are_not_favoured(agent):
    """Of the first eight episodes to end, seven are short."""
    lengths = ((1, 1, 1, 1, 1, 1), (6, 6, 6, 6, 6, 6))
    evaluation = evaluate(agent, Schedule(lengths), num_episodes=8)
    assert evaluation.length.mean() == (1 + 6) / 2


def test_as_many_as_asked_where_environments_divide_them(agent):
    assert len(evaluate(agent, Schedule(), num_episodes=6).reward) == 6
    assert len(evaluate(agent, Schedule(), num_episodes=1).reward) == 3


def test_actions_are_sampled_from_the_policy(agent):
    with torch.no_grad():
        agent.policy_head.weight.zero_()
        agent.policy_head.bias.copy_(torch.tensor([0.0, np.log(3.0)]))
    lengths = tuple((10,) for _ in range(40))
    world = Schedule(lengths, episode_steps=10)
    evaluation = evaluate(agent, world, num_episodes=120)
    assert evaluation.action_shares["1"] == pytest.approx(0.75, abs=0.04)
    assert sum(evaluation.action_shares.values()) == pytest.approx(1.0)
    taken = torch.stack(world.actions[:30]).double().mean()  # all that count, here
    assert evaluation.action_shares["1"] == pytest.approx(float(taken))
    assert evaluate(agent, world, deterministic=True).action_shares == {"0": 0.0, "1": 1.0}


def test_only_actions_that_count_are_counted(agent):
    world = Schedule(((1, 1), (6, 6)))
    evaluation = evaluate(agent, world, num_episodes=2)
    taken = torch.stack(world.actions)  # (T, 2)
    counted = torch.cat((taken[:1, 0], taken[:6, 1]))
    assert evaluation.action_shares["1"] == pytest.approx(float(counted.double().mean()))


def test_continuous_actions_are_clipped_for_the_world():
    agent = Agent((2,), 2, continuous=True)
    with torch.no_grad():
        agent.log_std.fill_(1.0)
    world = Schedule(num_actions=0)
    evaluation = evaluate(agent, world, num_episodes=3)
    taken = torch.stack(world.actions)
    assert taken.abs().max() == 1.0
    assert evaluation.action_shares == {}


def test_the_seed_decides(agent):
    world = Schedule()
    plays = []
    for seed in (5, 5, 6):
        world.actions.clear()
        evaluate(agent, world, num_episodes=20, seed=seed)
        assert world.seed == seed
        plays.append(torch.stack(world.actions))
    assert torch.equal(plays[0], plays[1])
    assert not torch.equal(plays[0], plays[2])


def test_trajectories_are_those_of_first_episodes(agent):
    places = evaluate(agent, Schedule(), num_episodes=6, trajectories=True).trajectories
    assert places.shape == (5, 3, 3)  # the longest first episode has 4 steps
    x = places[:, :, 0]
    assert np.array_equal(x[:, 1], [0, 1, 2, 3, 4])
    assert np.array_equal(x[:, 0], [0, 1, np.nan, np.nan, np.nan], equal_nan=True)
    assert np.array_equal(x[:, 2], [0, 1, 2, 3, np.nan], equal_nan=True)


def small_maze(**options):
    options = {"num_levels": 2, "observation_size": (36, 36), "maze_size": 9} | options
    return make_world("maze/no-reward", num_envs=2, seed=0, **options)


def test_coverage_of_a_scripted_path_in_a_maze():
    world = small_maze(episode_steps=60)
    agent = Agent((3, 36, 36), 9)
    with torch.no_grad():  # look left and walk, always: a circle
        agent.policy_head.bias[world.spec.action_names.index("look left + forward")] = 100.0
    evaluation = evaluate(agent, world, num_episodes=2, deterministic=True, trajectories=True)
    assert evaluation.length.tolist() == [60, 60]
    cells = np.trunc(evaluation.trajectories / world.spec.oracle_cell).astype(int)  # (61, 2, 3)
    expected = [len({tuple(cell) for cell in cells[:, env]}) for env in range(2)]
    assert evaluation.coverage.tolist() == expected
    assert min(expected) > 2
    assert evaluation.action_shares["look left + forward"] == 1.0


def test_summary_and_report(agent):
    evaluation = evaluate(agent, Schedule(), num_episodes=6)
    summary = evaluation.summary()
    assert list(summary) == ["reward", "coverage", "length"]
    assert summary["reward"].mean == pytest.approx(47 / 6)
    assert summary["reward"].low < 47 / 6 < summary["reward"].high
    plain = json.loads(json.dumps(evaluation.to_dict(), allow_nan=False))
    assert plain["episodes"]["coverage"] == [1, 3, 2, 4, 2, 2]
    assert plain["summary"]["length"]["num_values"] == 6
    report = evaluation.report().splitlines()
    assert report[0] == "test/schedule: 6 episodes, sampled actions"
    assert report[2].split()[:2] == ["reward", "7.83"]
    assert report[-1].startswith("actions: ")


def test_a_world_without_positions_has_no_coverage():
    world = make_world("gym/CartPole-v1", num_envs=2, seed=0, episode_steps=20)
    evaluation = evaluate(Agent((4,), 2), world, num_episodes=4)
    assert evaluation.coverage is None
    assert np.array_equal(evaluation.reward, evaluation.length)
    assert "coverage" not in evaluation.report()
    with pytest.raises(ValueError, match="no trajectories"):
        evaluate(Agent((4,), 2), world, trajectories=True)


def test_what_does_not_fit_is_refused(agent):
    with pytest.raises(ValueError, match=r"shape \(3,\) and 2 actions.* \(2,\) and 2 actions"):
        evaluate(Agent((3,), 2), Schedule())
    with pytest.raises(ValueError, match="3 actions"):
        evaluate(Agent((2,), 3), Schedule())
    with pytest.raises(ValueError, match="actions of 2 entries"):
        evaluate(agent, Schedule(num_actions=0))
    with pytest.raises(ValueError, match="num_episodes"):
        evaluate(agent, Schedule(), num_episodes=0)
    with pytest.raises(ValueError, match="seed"):
        evaluate(agent, Schedule(), seed=-1)


def test_a_world_whose_episodes_are_longer_than_it_says(agent):
    with pytest.raises(RuntimeError, match="more than the 2 steps"):
        evaluate(agent, Schedule(episode_steps=2), num_episodes=3)


def test_it_ends_at_the_first_look_after_all_is_played(agent, monkeypatch, capsys):
    monkeypatch.setattr("episodic_curiosity.runs.evaluate.CHECK_EVERY", 2)
    world = Schedule([[3], [3]], episode_steps=9)
    evaluation = evaluate(agent, world, num_episodes=2, progress=True)
    assert evaluation.length.tolist() == [3, 3]
    assert len(world.actions) == 4
    first, last = capsys.readouterr().err.splitlines()
    assert first.startswith("4 of 18 steps (22%)")
    assert last.startswith("8 of 8 steps (100%)")
