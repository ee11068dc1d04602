"""A step as a GPU compiles it, with eager kernels, against the step of a CPU."""

import dataclasses
from functools import partial

import pytest
import torch
from torch._dynamo.utils import counters

from episodic_curiosity.worlds.maze.rules.advance import advance, compile_advance, keep
from episodic_curiosity.worlds.maze.rules.levels import find_pool
from episodic_curiosity.worlds.maze.rules.rules import Rules
from episodic_curiosity.worlds.maze.rules.state import MazeState, blank_state
from episodic_curiosity.worlds.maze.tasks import TASKS
from tests.worlds.maze.rules.game import Game

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("task", ["sparse", "sparse-doors", "dense-1", "dense-2"])
def test_a_step_is_one_graph_without_waiting(task):
    """What a CUDA graph needs, seen on a CPU: nothing in a step asks for a tensor's value."""
    pool = find_pool(TASKS[task], layout=None, num_levels=4, level_seed=0, split="train")
    game = Game(TASKS[task], pool, num_envs=3)
    always = Rules(TASKS[task], game.levels, always=True)
    actions = torch.tensor([0, 8, 8])  # forward, fire, fire
    for clocks in ([898, 899, 1799], [5, 6, 7]):
        state = game.state._replace(clock=torch.tensor(clocks))
        states = [MazeState(*(field.clone() for field in state)) for _ in range(2)]
        results = [
            step(own, actions)
            for step, own in zip(
                (compile_advance(always, 3, backend="eager"), partial(advance, game.rules)),
                states,
                strict=True,
            )
        ]
        for captured, plain in zip(states[0], states[1], strict=True):
            assert torch.equal(captured, plain)
        (captured, last), (plain, expected) = results
        for field, wanted in zip(captured, plain, strict=True):
            assert torch.equal(field, wanted)
        ended = plain.terminated | plain.truncated
        assert ended.any() == (expected is not None)
        if expected is not None:
            for field, wanted in zip(last, expected, strict=True):
                assert torch.equal(field[ended], wanted[ended])


def test_a_world_with_fewer_rows_fills_up_what_is_compiled():
    task = dataclasses.replace(TASKS["sparse"], episode_steps=40)  # nobody else's
    pool = find_pool(task, layout=None, num_levels=4, level_seed=0, split="train")
    for num_envs in (5, 2):
        game = Game(task, pool, num_envs)
        always = Rules(task, game.levels, always=True)
        clock = torch.arange(38, 38 + num_envs)  # the second step ends an episode
        states = [blank_state(game.state.key.clone(), always.num_sprites) for _ in range(2)]
        for state in states:  # as a world holds it
            keep(state, game.state._replace(clock=clock))
        compiled, plain = (
            compile_advance(always, num_envs, "eager"),
            partial(advance, game.rules),
        )
        before = counters["stats"]["unique_graphs"]
        for actions in (torch.arange(num_envs), torch.full((num_envs,), 8)):
            (outcome, last), (wanted, expected) = (
                compiled(states[0], actions),
                plain(states[1], actions),
            )
            for field, value in zip((*states[0], *outcome), (*states[1], *wanted), strict=True):
                assert torch.equal(field, value)
            ended = wanted.terminated | wanted.truncated
            assert ended.any()
            for field, value in zip(last, expected, strict=True):
                assert torch.equal(field[ended], value[ended])
        assert counters["stats"]["unique_graphs"] == before + (num_envs == 5)


def test_worlds_of_a_task_may_grow_again_and_again():
    task = dataclasses.replace(TASKS["sparse"], episode_steps=41)  # nobody else's
    pool = find_pool(task, layout=None, num_levels=4, level_seed=0, split="train")
    levels = Game(task, pool).levels
    # torch gives up on a function that is compiled too often, usually the ninth time
    with torch._dynamo.config.patch(recompile_limit=1):
        for num_envs in (2, 3, 4):
            rules = Rules(task, levels, always=True)
            state = blank_state(torch.arange(num_envs), rules.num_sprites)
            keep(state, rules.new_episode(state))
            advance_all = compile_advance(rules, num_envs, "eager")
            advance_all(state, torch.zeros(num_envs, dtype=torch.int64))
            assert (state.clock == 1).all()
