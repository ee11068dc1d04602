"""A run as data: what it refuses, what follows from it, and the way to JSON and back."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from episodic_curiosity.bonus.registry import methods
from episodic_curiosity.runs import presets
from episodic_curiosity.runs.config import Run
from episodic_curiosity.runs.presets import resolve
from episodic_curiosity.worlds.ant.family import AntConfig
from episodic_curiosity.worlds.maze.family import MazeConfig
from episodic_curiosity.worlds.registry import make_world


def a_run(method: str = "ppo", **changes) -> Run:
    return replace(resolve("maze/sparse", method, "cpu", 200_000, seed=3), **changes)


def of_128_steps(run: Run) -> Run:
    """The same with updates of 16 x 128 steps."""
    world, ppo = replace(run.world, num_envs=16), replace(run.ppo, num_steps=128)
    return replace(run, world=world, ppo=ppo)


def through_json(run: Run) -> dict:
    return json.loads(json.dumps(run.to_dict()))


@pytest.mark.parametrize("preset", presets.PRESETS)
@pytest.mark.parametrize("method", methods())
@pytest.mark.parametrize("task", ["maze/no-reward+noise", "gym/CartPole-v1"])
def test_a_run_comes_back_from_json_as_it_was(task, method, preset):
    run = resolve(task, method, preset, 20_000_000, seed=2**63 - 1)
    back = Run.from_dict(through_json(run))
    assert back == run
    assert back.to_dict() == run.to_dict()


def test_paths_sizes_and_lists_come_back_as_such():
    run = a_run("ppo+ec")
    play = replace(run.r_network.random_play, tasks=("maze/sparse", "maze/dense-1"))
    run = replace(
        run,
        world=replace(run.world, view_size=(60, 80), pictures=Path("a/b")),
        r_network=replace(run.r_network, source=Path("fitted"), random_play=play),
    )
    back = Run.from_dict(through_json(run))
    assert back.world.view_size == (60, 80)
    assert back.world.pictures == Path("a/b")
    assert back.r_network.source == Path("fitted")
    assert back == run


def changed(path: str, value: object) -> dict:
    """A run in plain values, with one of them changed."""
    plain = through_json(a_run("ppo+ec"))
    *folders, name = path.split(".")
    place = plain
    for folder in folders:
        place = place[folder]
    place[name] = value
    return plain


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("sed", 1, "there is no field sed; there are task, method"),
        ("ppo.lr", 1, r"there is no field ppo\.lr; there are num_steps"),
        ("ppo.gamma", "0.9", r"ppo\.gamma must be a number, got '0\.9'"),
        ("ppo.gamma", True, r"ppo\.gamma must be a number, got True"),
        ("ppo.num_steps", 1.5, r"ppo\.num_steps must be an integer, got 1\.5"),
        ("ppo.clip_values", 1, r"ppo\.clip_values must be true or false, got 1"),
        ("ppo.decay", "slow", r"ppo\.decay must be one of linear, constant, got 'slow'"),
        ("ppo.gamma", 2.0, "gamma must be"),
        ("ppo", None, r"ppo must be a JSON object, got None"),
        ("world.view_size", [84], r"world\.view_size must be a list of 2 items, got \[84\]"),
        ("world.view_size", "84", r"world\.view_size must be a list of 2 items, got '84'"),
        ("world.maze_size", "9", r"world\.maze_size must be an integer, got '9'"),
        ("world.level_seed", None, r"world\.level_seed must be an integer, got None"),
        ("r_network.source", 3, r"r_network\.source must be a string, got 3"),
        ("r_network.random_play.tasks", "a", "tasks must be a list of items, got 'a'"),
        ("task", "mars/sparse", "there is no task 'mars/sparse' .did you mean maze/sparse"),
        ("task", 7, "there is no task '7'"),
        ("method", "ppo+", "method must be one of ppo, ppo"),
        ("method", None, "method must be one of ppo, .* got 'None'"),
        ("r_network", None, "r_network must be an RNetworkOptions, got NoneType"),
        ("device", "tpu", "device must be one of auto, cpu, cuda, got 'tpu'"),
        ("seed", -1, "seed must be an integer from 0"),
        ("steps", 0, "steps must be an integer of at least 1, got 0"),
        ("ppo.num_minibatches", 7, "16 environments cannot be cut into 7 equal minibatches"),
    ],
)
def test_a_field_that_does_not_fit_is_named(path, value, message):
    with pytest.raises(ValueError, match=message):
        Run.from_dict(changed(path, value))


def test_a_missing_field_is_named():
    plain = through_json(a_run())
    del plain["ppo"]["gamma"]
    with pytest.raises(ValueError, match=r"the field ppo\.gamma is missing"):
        Run.from_dict(plain)


def test_a_bonus_of_another_method_is_refused():
    plain = through_json(a_run("ppo+icm")) | {"method": "ppo"}
    with pytest.raises(ValueError, match="bonus must be null, got"):
        Run.from_dict(plain)
    with pytest.raises(TypeError, match="bonus must be a ConstantConfig, got ICMConfig"):
        replace(a_run("ppo+icm"), method="ppo+1")


def test_an_r_network_is_fitted_before_or_online():
    before, online = a_run("ppo+ec").r_network, a_run("ppo+eco").r_network
    with pytest.raises(ValueError, match=r"ppo\+eco needs r_network\.online"):
        a_run("ppo+eco", r_network=before)
    with pytest.raises(ValueError, match=r"ppo\+ec needs r_network\.random_play"):
        a_run("ppo+ec", r_network=online)
    with pytest.raises(ValueError, match="set one of r_network"):
        replace(before, random_play=None)


def test_a_universal_r_network_is_of_one_family():
    r_network = a_run("ppo+ec").r_network
    play = replace(r_network.random_play, tasks=("maze/sparse", "gym/CartPole-v1"))
    with pytest.raises(ValueError, match="cannot be fitted to gym/CartPole-v1"):
        a_run("ppo+ec", r_network=replace(r_network, random_play=play))


def test_only_a_bonus_can_be_normalised():
    assert a_run("ppo+1", normalise_bonus=True).normalise_bonus
    with pytest.raises(ValueError, match="ppo has no bonus to normalise"):
        a_run(normalise_bonus=True)


def test_random_play_is_counted_in():
    run = of_128_steps(a_run("ppo+ec"))
    play = replace(run.r_network.random_play, steps=100_000)
    run = replace(run, r_network=replace(run.r_network, random_play=play))
    assert run.random_play_steps == 100_000
    assert run.num_updates == 100_000 // 2048
    given = replace(run, r_network=replace(run.r_network, source=Path("fitted")))
    assert given.random_play_steps == 0
    assert given.num_updates == 200_000 // 2048


@pytest.mark.parametrize(
    ("method", "message"),
    [
        ("ppo", r"2,047 steps are too few: one rollout takes 2,048 \(16 x 128\)$"),
        ("ppo+ec", r"2,047 steps are too few: .*, after 40,000 steps of random play$"),
    ],
)
def test_too_few_steps_for_one_update(method, message):
    with pytest.raises(ValueError, match=message):
        _ = of_128_steps(a_run(method, steps=2047)).num_updates


def test_a_world_is_told_what_is_set_and_staggers_in_training_only():
    world = MazeConfig(num_envs=3, observation_size=(36, 48), maze_size=9, stagger=True)
    options = {
        "observation_size": (36, 48),
        "maze_size": 9,
        "level_seed": 0,
        "final_frames": False,
    }
    assert world.options("train") == options | {"stagger": True}
    assert world.options("test") == options | {"stagger": False}


def test_nobody_looks_at_an_ant_s_final_views():
    assert AntConfig(num_envs=1).options("train")["final_frames"] is False


def test_an_ant_refuses_a_size_of_what_its_policy_feels():
    pytest.importorskip("mujoco.batch")
    assert "observation_size" not in AntConfig(num_envs=1).options("train")
    options = AntConfig(num_envs=1, observation_size=(84, 84)).options("train")
    with pytest.raises(ValueError, match="ants have no option 'observation_size'"):
        make_world("ant/no-reward", num_envs=1, seed=0, **options)


def test_a_doom_scenario_is_told_its_actions():
    given = resolve("vizdoom/deathmatch.cfg", "ppo", "cpu", 200_000, seed=0)
    world = replace(given.world, actions=("attack", "move-forward+turn-left"))
    given = replace(given, world=world)
    assert Run.from_dict(through_json(given)) == given
    assert given.world.options("train")["actions"] == ("attack", "move-forward+turn-left")


def test_the_fast_r_network_takes_the_embedder_that_views_need():
    r_network = a_run("ppo+eco").r_network
    assert r_network.with_architecture("paper").architecture["embedder"] == "resnet18"
    assert r_network.with_architecture("paper").with_architecture("fast") == r_network
    assert r_network.architecture["embedder"] is None
    with pytest.raises(ValueError, match="the R-network must be one of paper, small, fast"):
        r_network.with_architecture("large")


def test_a_run_has_a_name():
    assert a_run("ppo+eco", task="maze/sparse+noise").name == "maze-sparse_noise__ppo_eco__s3"


def test_every_method_says_what_it_is():
    for name, method in methods().items():
        assert method.name == name
        assert len(method.line.splitlines()) == 1


def test_random_play_that_is_too_brief_is_refused_before_it_begins():
    run = resolve("maze/no-reward", "ppo+ec", "turbo", 100_000, seed=0)
    with pytest.raises(ValueError, match=r"are 12 for each of 1024 .* at least 27: give more"):
        _ = run.num_updates


def test_an_option_that_was_added_later_may_be_missing():
    """Runs from before have what its default does; of other fields none is filled in."""
    plain = resolve("maze/sparse", "ppo+ec", "cpu", 1_000_000, 0).to_dict()
    pairs = plain["r_network"]["random_play"]["fit"]["pairs"]
    del pairs["far_from"]
    stored = Run.from_dict(plain).r_network.random_play.fit.pairs
    assert stored.far_from == "same_episode"
    del pairs["gamma"]
    with pytest.raises(ValueError, match=r"the field r_network.*pairs\.gamma is missing"):
        Run.from_dict(plain)
