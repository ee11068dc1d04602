"""Presets: the published setting to the letter, and runs that fit a GPU or a laptop."""

import dataclasses

import pytest

from episodic_curiosity.bonus.registry import methods
from episodic_curiosity.reachability.architecture import PAPER
from episodic_curiosity.runs.learner import make_agent
from episodic_curiosity.runs.presets import PRESETS, resolve
from episodic_curiosity.worlds.registry import known_tasks, make_world


def test_paper_is_the_published_setting():
    run = resolve("maze/sparse", "ppo+ec", "paper", 20_000_000, seed=0)
    assert (run.world.num_envs, run.ppo.num_steps) == (12, 256)
    assert (run.ppo.num_minibatches, run.ppo.num_epochs) == (4, 4)
    assert (run.ppo.clip_values, run.ppo.timeouts_are_ends) == (True, True)
    assert (run.world.observation_size, run.world.view_size) == ((84, 84), (120, 160))
    assert not run.world.stagger
    assert run.r_network.architecture.items() >= PAPER.items()
    play = run.r_network.random_play
    assert (play.steps, play.fit.iterations, play.fit.batch_size) == (2_500_000, 200_000, 64)
    assert (play.fit.learning_rate, play.fit.pairs.sampler) == (1e-4, "offline")


def test_paper_refits_as_published():
    online = resolve("maze/sparse", "ppo+eco", "paper", 20_000_000, seed=0).r_network.online
    assert (online.refit_every, online.history) == (720_000, 720_000)
    assert (online.fit.epochs, online.fit.iterations) == (10, None)
    assert (online.fit.batch_size, online.fit.pairs.sampler) == (64, "online")


def test_gpu_optimises_as_published_whatever_simulates():
    for task in ("maze/sparse", "gym/CartPole-v1", "vizdoom/sparse", "ant/no-reward"):
        run, paper = (resolve(task, "ppo+ec", name, 20_000_000, 0) for name in ("gpu", "paper"))
        assert (run.world.num_envs, run.ppo.num_steps) == (96, 32)
        assert run.batch_size == paper.batch_size == 3_072
        assert run.num_updates == paper.num_updates
        assert dataclasses.replace(run.ppo, num_steps=256) == paper.ppo
        assert paper.ppo.decay_horizon == 1.1
    run = resolve("maze/sparse", "ppo+ec", "gpu", 20_000_000, seed=0)
    assert run.world.view_size is None
    assert run.world.stagger
    fit = run.r_network.random_play.fit
    assert fit.iterations * fit.batch_size == 12_288_000  # 12,800,000 in the paper
    online, published = (
        resolve("maze/sparse", "ppo+eco", name, 20_000_000, 0).r_network.online
        for name in ("gpu", "paper")
    )
    assert (online.refit_every, online.fit.epochs) == (published.refit_every, 10)


def test_turbo_has_large_minibatches_where_the_gpu_simulates():
    run = resolve("maze/sparse", "ppo+ec", "turbo", 20_000_000, seed=0)
    assert (run.world.num_envs, run.ppo.num_steps, run.batch_size) == (1024, 32, 32_768)
    assert run.batch_size // run.ppo.num_minibatches == 4096
    assert run.ppo.learning_rate == 4 * 2.5e-4
    assert not run.ppo.clip_values
    assert not run.ppo.timeouts_are_ends
    for task in ("gym/CartPole-v1", "ant/no-reward"):
        turbo, gpu = (resolve(task, "ppo", name, 10**7, 0) for name in ("turbo", "gpu"))
        assert (turbo.ppo, turbo.world) == (gpu.ppo, gpu.world)


@pytest.mark.parametrize("task", ["maze/sparse", "ant/no-reward"])
@pytest.mark.parametrize("method", ["ppo+ec", "ppo+eco"])
def test_the_comparator_is_the_paper_s_where_there_is_a_gpu_for_it(method, task):
    for preset, comparator, branches in (
        ("paper", "mlp", "shared"),
        ("gpu", "mlp", "shared"),
        ("turbo", "mlp", "shared"),
        ("cpu", "dot", "unshared"),
    ):
        r_network = resolve(task, method, preset, 10_000_000, seed=0).r_network
        assert (r_network.comparator, r_network.branches) == (comparator, branches)
        assert r_network.embedder == ("resnet18" if preset == "paper" else None)
        assert (r_network.random_play or r_network.online).fit.pairs.k == 5


@pytest.mark.parametrize(
    ("preset", "sizes"), [("paper", (12, 256, 4)), ("cpu", (16, 64, 2))], ids=["paper", "cpu"]
)
@pytest.mark.parametrize("task", ["maze/sparse", "gym/CartPole-v1", "ant/no-reward"])
def test_paper_and_cpu_have_one_batch_for_all(preset, sizes, task):
    run = resolve(task, "ppo", preset, 20_000_000, seed=0)
    assert (run.world.num_envs, run.ppo.num_steps, run.ppo.num_minibatches) == sizes


@pytest.mark.parametrize(
    ("task", "preset", "separate"),
    [
        ("gym/CartPole-v1", "paper", True),
        ("gym/CartPole-v1", "gpu", True),
        ("gym/CartPole-v1", "cpu", False),
        ("maze/sparse", "gpu", False),
    ],
)
def test_vectors_have_separate_networks_as_published(task, preset, separate):
    run = resolve(task, "ppo", preset, 20_000_000, seed=0)
    options = run.world.options("train")
    if task.startswith("maze"):
        options["num_levels"] = 2
    world = make_world(task, num_envs=2, seed=0, **options)
    assert make_agent(run, world.spec).config.separate_networks == separate
    world.close()


def test_doom_has_the_published_budget_and_colours_for_curiosity():
    play = resolve("vizdoom/sparse", "ppo+ec", "paper", 10**7, seed=0).r_network.random_play
    assert (play.steps, play.fit.iterations) == (300_000, 50_000)
    world = resolve("vizdoom/sparse", "ppo+ec", "cpu", 10**7, seed=0).world
    assert world.view_size == world.observation_size == (42, 42)


def test_random_play_is_an_eighth_of_a_run_and_never_more_than_published():
    for steps, play in ((200_000, 25_000), (20_000_000, 2_500_000), (10**9, 2_500_000)):
        run = resolve("maze/sparse", "ppo+ec", "gpu", steps, seed=0)
        assert run.random_play_steps == play


def test_an_ant_without_curiosity_draws_nothing():
    sizes = [
        resolve("ant/no-reward", method, "cpu", 200_000, seed=0).world.view_size
        for method in ("ppo+ec", "ppo+1", "ppo")
    ]
    assert sizes == [(42, 42), None, None]


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("method", methods())
@pytest.mark.parametrize("task", [*known_tasks(), "gym/CartPole-v1"])
def test_every_combination_shares_its_rollouts_out_evenly(task, method, preset):
    run = resolve(task, method, preset, PRESETS[preset].steps, seed=0)
    assert run.num_updates > 1
    assert run.batch_size % run.ppo.num_minibatches == 0
    if run.r_network and run.r_network.online:
        online = run.r_network.online
        least = online.fit.least_steps * run.world.num_envs
        assert min(online.refit_every, online.history) >= least


def test_an_unknown_preset_lists_the_choices():
    with pytest.raises(
        ValueError, match="preset must be one of paper, gpu, turbo, cpu, got 'tpu'"
    ):
        resolve("maze/sparse", "ppo", "tpu", 1000, seed=0)


@pytest.mark.parametrize("task", ["maze/sparse", "maze/sparse+noise", "gym/CartPole-v1"])
def test_a_world_can_be_made_with_the_options(task):
    run = resolve(task, "ppo", "cpu", 200_000, seed=0)
    options = run.world.options("train")
    if task.startswith("maze"):
        options["num_levels"] = 2
    world = make_world(task, num_envs=2, seed=0, **options)
    step = world.reset()
    world.close()
    if run.world.observation_size is not None:
        assert step.observation.shape == (2, 3, *run.world.observation_size)
    assert step.first.all()
