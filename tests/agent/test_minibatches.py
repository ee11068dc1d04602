"""A collector fills one rollout again and again: PPO learns from each of its contents."""

import weakref

import torch

from episodic_curiosity.agent import minibatches
from episodic_curiosity.agent.network import Agent
from episodic_curiosity.support.cuda_graphs import Captured
from tests.agent.playing import random_rollout
from tests.agent.test_ppo import Recorder, make_agent, make_ppo, weights_of
from tests.support import fake_graphs


def learn(num_updates, *, same_tensors):
    """The weights and metrics of every update, from rollouts of the same contents."""
    agent = make_agent()
    ppo = make_ppo(agent)
    held = random_rollout(6, 4, seed=99)
    seen = []
    for number in range(num_updates):
        rollout = random_rollout(6, 4, seed=number)
        if same_tensors:
            for room, content in zip(held, rollout, strict=True):
                if content is not None:
                    room.copy_(content)
            rollout = held
        metrics = ppo.update(rollout, number)
        seen.append((weights_of(agent), metrics))
    return seen


def assert_equal(ours, theirs):
    for (weights, metrics), (other_weights, other_metrics) in zip(ours, theirs, strict=True):
        assert torch.equal(weights, other_weights)
        assert metrics == other_metrics


def test_a_rollout_that_is_filled_again_is_learnt_from_anew():
    assert_equal(learn(4, same_tensors=True), learn(4, same_tensors=False))


def test_frames_of_the_last_update_are_freed_before_others_are_prepared(monkeypatch):
    """A CPU's memory never has two copies of a rollout's frames as blocks."""
    agent = Agent((3, 36, 36), 3)
    ppo = make_ppo(agent)
    prepare, prepared, alive = agent.prepare, [], []

    def watched(observation):
        alive.append([ref() is not None for ref in prepared])
        blocks = prepare(observation)
        prepared.append(weakref.ref(blocks))
        return blocks

    monkeypatch.setattr(agent, "prepare", watched)
    rollout = random_rollout(6, 4, seed=0)
    frames = torch.zeros(7, 4, 3, 36, 36, dtype=torch.uint8)
    rollout = rollout._replace(observation=frames)
    for number in range(3):
        ppo.update(rollout, number)
    assert alive == [[], [False], [False, False]]


def test_a_captured_minibatch_learns_what_an_eager_one_does(monkeypatch):
    eager = learn(4, same_tensors=True)
    fake_graphs.install(monkeypatch)
    cpu = torch.device("cpu")
    monkeypatch.setattr(minibatches, "Captured", lambda function, _: Captured(function, cpu))
    assert_equal(learn(4, same_tensors=True), eager)


def test_observations_that_are_the_inputs_are_gathered_once(monkeypatch):
    """Vectors, and frames on a GPU: `prepare` returns them as they are."""
    gathered, select = [], minibatches._select
    monkeypatch.setattr(
        minibatches, "_select", lambda *given: gathered.append(given[0]) or select(*given)
    )
    ppo = make_ppo(make_agent(), auxiliary=Recorder())
    ppo.update(random_rollout(6, 4, seed=0), 0)
    assert gathered
    for parts in gathered:
        assert len({part.data_ptr() for part in parts}) == len(parts) == 9
    batch = ppo.auxiliary.seen[0]
    assert batch.inputs is batch.observation
