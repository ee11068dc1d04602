"""DMLabWorld over a stand-in with the real module's API: tasks, frames and clocks."""

import logging
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from episodic_curiosity.agent.network import Agent
from episodic_curiosity.bonus.nothing import NoBonus
from episodic_curiosity.runs.evaluate import evaluate
from episodic_curiosity.show.film.config import FilmConfig
from episodic_curiosity.show.film.watch import film, open_scenery
from episodic_curiosity.worlds.as_gymnasium import WorldEnv, WorldVectorEnv
from episodic_curiosity.worlds.base import SPLITS
from episodic_curiosity.worlds.dmlab import world as module
from episodic_curiosity.worlds.dmlab.far_starts import path_lengths
from episodic_curiosity.worlds.dmlab.levels import DMLAB_30, HELD_OUT, MIXER_SEEDS, find_level
from episodic_curiosity.worlds.lab.tasks import ACTION_SETS
from episodic_curiosity.worlds.maze.tasks import TASKS
from episodic_curiosity.worlds.registry import make_world
from tests.worlds.dmlab.builds import STANDIN
from tests.worlds.dmlab.small import SMALL, act
from tests.worlds.dmlab.walking import Walker


@pytest.mark.parametrize("task", TASKS)
def test_tasks_are_those_of_our_mazes(task):
    level, maze = find_level(task), TASKS[task]
    assert level.path.startswith("contributed/dmlab30/")
    assert level.episode_steps == maze.episode_steps
    assert level.reward_scale == maze.reward_scale
    assert level.actions == maze.actions
    assert level.min_goal_distance == maze.min_goal_distance


def test_levels_by_their_own_names():
    assert len(set(DMLAB_30)) == 30
    assert (
        find_level("natlab_fixed_large_map").path
        == "contributed/dmlab30/natlab_fixed_large_map"
    )
    assert (
        find_level("psychlab_visual_search").episode_steps == 4500
    )  # 300 s: nobody's is longer
    assert find_level("lt_chasm").path == "lt_chasm"
    assert find_level("tests/empty_room_test").path == "tests/empty_room_test"
    for name in HELD_OUT:
        assert find_level(name).settings == {"allowHoldOutLevels": "true"}


def test_what_is_seen(make):
    world = make("sparse")
    step = world.reset()
    assert world.spec.view_shape == (3, 120, 160)
    assert world.spec.observation_shape == (3, 84, 84)
    assert world.spec.action_names == ACTION_SETS["nine"]
    assert world.spec.episode_steps == 1800
    assert world.spec.oracle_cell == 30.0
    assert not world.spec.can_restore
    assert np.array_equal(world.picture(1), step.view[1].permute(1, 2, 0).numpy())
    # Each small pixel is the mean of 160/84 x 120/84 of the large ones.
    means = [frames.float().mean((2, 3)) for frames in (step.observation, step.view)]
    assert (means[0] - means[1]).abs().max() < 1.0
    corner = step.view[0, 2, :2, :2].float()
    shares = torch.outer(torch.tensor([1.0, 3 / 7]), torch.tensor([1.0, 19 / 21]))
    expected = (corner * shares).sum() / shares.sum()
    assert abs(expected - step.observation[0, 2, 0, 0]) <= 0.51


@pytest.mark.parametrize(("task", "count"), [("no-reward-no-fire", 8), ("dense-1", 9)])
def test_actions_of_a_task(make, task, count):
    assert make(task).spec.num_actions == count


def test_actions_do_what_their_names_say(make):
    world = make(num_envs=1, actions="nine+idle", **SMALL)
    before = world.reset()
    heading = world.heading()
    left = world.step(act(world, "look left"))
    assert torch.allclose((world.heading() - heading) % 360.0, torch.tensor(8.448), atol=1e-3)
    assert torch.equal(left.position, before.position)
    world.step(act(world, "look right"))
    assert torch.allclose(world.heading(), heading, atol=1e-3)
    ahead = torch.deg2rad(world.heading())
    forward = world.step(act(world, "forward")).position - before.position
    moved = torch.tensor([torch.cos(ahead), torch.sin(ahead), 0.0]) * 20.48
    assert torch.allclose(forward[0], moved, atol=1e-2)
    assert torch.equal(world.step(act(world, "idle")).position, forward + before.position)
    back = world.step(act(world, "back")).position
    assert torch.allclose(back, before.position, atol=1e-2)
    aside = world.step(act(world, "strafe left")).position - back
    expected = torch.tensor([-torch.sin(ahead), torch.cos(ahead), 0.0]) * 20.48
    assert torch.allclose(aside[0], expected, atol=1e-2)


def test_a_respawn_at_the_goal_is_no_end(make):
    """Lab's frame number falls; only the place changes."""
    world = make("sparse", num_envs=1, **SMALL)
    step = world.reset()
    walker = Walker(world.layout(), step.position[0])
    paid = []
    while len(paid) < 2:
        before = step.position
        step = world.step(walker.act(step.position[0], float(world.heading()), world))
        assert not step.first.any()
        assert not (step.terminated | step.truncated).any()
        if step.reward.item():
            paid.append(step.reward.item())
            step = world.step(act(world, "look left"))
            assert (step.position - before)[0, :2].norm() > 30.0
            walker = Walker(world.layout(), step.position[0], goal=walker.goal)
    assert paid == [10.0, 10.0]


def test_reaching_the_goal_of_dense_1_is_the_end(make):
    world = make("dense-1", num_envs=1, **SMALL)
    step = world.reset()
    assert world.layout() == ""
    with pytest.raises(ValueError, match="dmlab/dense-1 has no maze to draw from above"):
        world.overhead()
    sight = make_world("dmlab/sparse", num_envs=1, seed=1, **SMALL)  # the same maze, told
    sight.reset()
    walker = Walker(sight.layout(), step.position[0])
    sight.close()
    total = 0.0
    while not step.terminated.any():
        step = world.step(walker.act(step.position[0], float(world.heading()), world))
        assert not step.truncated.any()
        total += step.reward.item()
    assert total == 50.0
    assert step.final_view is not None


def test_nothing_is_paid_without_reward(make):
    world = make("no-reward", num_envs=1, **SMALL)
    step = world.reset()
    walker = Walker(world.layout(), step.position[0])
    for _ in range(300):
        before = step.position
        step = world.step(walker.act(step.position[0], float(world.heading()), world))
        assert step.reward.item() == 0.0
        if (step.position - before)[0, :2].norm() > 30.0:
            return  # the goal was reached all the same
    pytest.fail("nobody arrived")


def test_the_clock_of_a_level_truncates(make):
    """After its last frame Lab gives no observation: the one before is the final one."""
    world = make("sparse", num_envs=2, **SMALL)
    step = world.reset()
    for number in range(1, 1801):
        before, step = step, world.step(act(world))
        assert step.truncated.all() == (number == 1800)
        assert not step.terminated.any()
    assert torch.equal(step.final_view, before.view)
    assert not torch.equal(step.view, before.view)


def test_a_level_of_unknown_length_is_truncated_by_its_own_clock(make):
    world = make("psychlab_visual_search", num_envs=1, **SMALL)
    world.reset()
    for number in range(1, 901):  # 60 s in the stand-in
        step = world.step(act(world))
        assert step.truncated.any() == (number == 900)


def test_splits_have_disjoint_seeds(make):
    assert len(set(MIXER_SEEDS.values())) == 4
    assert set(MIXER_SEEDS) == set(SPLITS)
    layouts = set()
    for split in SPLITS:
        world = make(num_envs=2, split=split, **SMALL)
        world.reset()
        layouts |= {world.layout(env) for env in range(2)}
    assert len(layouts) == 8


def test_from_above(make):
    world = make(num_envs=1, **SMALL)
    step = world.reset()
    layout = world.layout().splitlines()
    picture = world.overhead(pixels_per_cell=10, agent=None)
    assert picture.shape == (130, 130, 3)
    for row, line in enumerate(layout):
        for column, character in enumerate(line):
            middle = picture[10 * row + 5, 10 * column + 5].tolist()
            assert (middle == [58, 84, 56]) == (character == "*")
    x, y, _ = step.position[0].tolist()
    assert layout[12 - int(y // 100)][int(x // 100)] == "P"
    assert not np.array_equal(world.overhead(pixels_per_cell=10), picture)


def test_very_sparse_on_a_patched_build(make, build, caplog):
    build.tell(patched=True)
    world = make("very-sparse", num_envs=1, **SMALL)
    for _ in range(3):
        step = world.reset()
        start = step.position[0]
        walker = Walker(world.layout(), start)
        while not step.reward.item():
            before = step.position[0]
            step = world.step(walker.act(before, float(world.heading()), world))
        # One step before it was paid for, the goal was in the same cell or in the next one.
        way = path_lengths(walker.rows, walker.cell(before))
        assert way[walker.cell(start)] >= 9
    assert not caplog.records


def test_very_sparse_on_a_build_without_the_patch(make, build, caplog):
    with pytest.raises(ValueError, match="lacks the authors' minGoalDistance and cannot play"):
        make("very-sparse", redraw_starts=True)
    build.tell(properties=True)
    with pytest.raises(ValueError, match=r"needs: build it with .* or draw starts .*redraw"):
        make("very-sparse")
    with caplog.at_level(logging.WARNING):
        world = make("very-sparse", num_envs=2, redraw_starts=True, episode_steps=40, **SMALL)
    assert "starts are drawn from the layout instead" in caplog.text
    for _ in range(3):
        step = world.reset()
        for env in range(2):
            walker = Walker(world.layout(env), step.position[env])
            assert world.layout(env).count("G") == 1
            assert len(walker.way) >= 10
    # The same after a goal: Lab has no other start to draw.
    walker = Walker(world.layout(0), step.position[0])
    assert all(walker.distance(start) >= 10 for start in walker.places("P"))


def test_levels_are_kept_in_a_folder(make, tmp_path):
    cache = tmp_path / "levels"
    for _ in range(2):
        world = make(num_envs=3, level_cache=cache, episode_steps=2, **SMALL)
        world.reset()
        world.step(act(world))
        world.step(act(world))
        assert len(list(cache.glob("*.pk3"))) == 6
        assert {path.suffix for path in cache.iterdir()} == {".pk3", ""}


def levels_in(folder: Path) -> int:
    return len(list(folder.glob("*.pk3")))


def test_an_evaluation_compiles_only_the_levels_that_it_plays(make, tmp_path):
    for num_episodes, task in ((3, "sparse"), (7, "sparse"), (3, "no-reward+noise-action")):
        cache = tmp_path / f"{task} {num_episodes}"
        world = make(task, num_envs=3, level_cache=cache, episode_steps=4, **SMALL)
        agent = Agent(world.spec.observation_shape, world.spec.num_actions)
        evaluation = evaluate(agent, world, num_episodes=num_episodes)
        assert levels_in(cache) == len(evaluation.length)
        assert (evaluation.length == 4).all()


def test_a_film_compiles_only_the_levels_that_it_shows(build, tmp_path):  # noqa: ARG001
    pytest.importorskip("PIL")
    cache = tmp_path / "levels"
    with open_scenery(
        "dmlab/sparse", 24, seed=0, level_cache=cache, episode_steps=4, **SMALL
    ) as scenery:
        spec = scenery.world.spec
        agent, config = Agent(spec.observation_shape, spec.num_actions), FilmConfig(episodes=2)
        bonus = NoBonus(1, None, spec.device)
        film(("dmlab/sparse", ""), agent, bonus, scenery, tmp_path / "film.gif", config)
    assert levels_in(cache) == 2


def test_an_environment_compiles_the_next_level_at_its_reset(build, tmp_path):  # noqa: ARG001
    options = {"episode_steps": 2, **SMALL}
    env = WorldEnv("dmlab/sparse", level_cache=tmp_path, **options)
    batch = WorldVectorEnv("dmlab/sparse", num_envs=1, **options)
    (one, _), (many, _) = env.reset(seed=5), batch.reset(seed=5)
    for number in (1, 2, 3):
        assert np.array_equal(one, many[0])
        for _ in range(2):
            one, *_ = env.step(0)
            many, *_, infos = batch.step(np.array([0]))
        assert np.array_equal(one, infos["final_obs"][0])
        assert levels_in(tmp_path) == number
        one, _ = env.reset()
    env.close()
    batch.close()


def test_an_old_build_is_played_without_a_temporary_folder(make, build, tmp_path):
    build.tell(old=True)
    world = make(num_envs=1, level_cache=tmp_path / "levels", **SMALL)
    assert world.reset().first.all()


def test_a_level_cache_must_be_a_folder(make, tmp_path):
    file = tmp_path / "levels"
    file.write_text("no folder")
    for wrong in (file, file / "below"):
        with pytest.raises(ValueError, match=f"level_cache must be a folder, got '{wrong}'"):
            make(level_cache=wrong)


def test_only_what_a_level_lists_is_observed(make, build):
    build.tell(lacks=["DEBUG.MAZE.LAYOUT", "FRAMES_REMAINING_AT_60"])
    world = make("sparse", num_envs=1, **SMALL)
    world.reset()
    assert world.layout() == ""
    assert not world.step(act(world)).first.any()
    build.tell(lacks=["DEBUG.POS.ROT"])
    with pytest.raises(ChildProcessError, match=r"large does not provide DEBUG.POS.ROT"):
        make("sparse", num_envs=1, **SMALL).reset()


def test_a_layout_may_be_too_large_or_no_maze_of_ours(make, build):
    build.tell(layout="*" * 5000)
    with pytest.raises(ChildProcessError, match="must have at most 4096 bytes, got 5000"):
        make(num_envs=1, **SMALL).reset()
    build.tell(layout="****\n*P \n****\n")
    world = make(num_envs=1, **SMALL)
    world.reset()
    with pytest.raises(
        ValueError, match="the maze of dmlab/sparse cannot be drawn from above: line 2"
    ):
        world.overhead()


def test_first_episodes_are_staggered_over_the_level_s_own_length(make):
    """900 steps in the stand-in, which this package takes for 4500."""
    world = make("psychlab_visual_search", num_envs=4, stagger=True, **SMALL)
    world.reset()
    left = 4500 - world._clock
    assert (left <= 900).all()
    assert len(set(left.tolist())) == 4
    for _ in range(int(left.min())):
        step = world.step(act(world))
    assert torch.equal(step.truncated, torch.from_numpy(left == left.min()))


@pytest.mark.parametrize(("num_envs", "patience"), [(2, 300.0), (12, 300.0), (64, 1280.0)])
def test_the_more_levels_a_core_compiles_the_longer_is_waited(monkeypatch, num_envs, patience):
    monkeypatch.setattr(module.os, "sched_getaffinity", lambda _: {0, 1})
    assert module._patience(num_envs) == patience


@pytest.mark.parametrize("programme", ["noise", "image-action-3"])
def test_a_television_in_it(build, programme):  # noqa: ARG001
    world = make_world(f"dmlab/sparse+{programme}", num_envs=2, seed=1)
    step = world.reset()
    assert not step.view[:, :, 60:, 80:].any()
    assert world.spec.action_names[-1] == ("fire" if programme == "noise" else "switch")
    step = world.step(torch.full((2,), world.spec.num_actions - 1))
    assert step.view[:, :, 60:, 80:].any()
    assert step.observation[:, :, 42:, 42:].any()
    world.close()


@pytest.mark.parametrize(
    ("task", "options", "match"),
    [
        ("sparse", {"frame_size": (90, 120)}, r"multiples of 4, got \(90, 120\)"),
        ("sparse", {"actions": "ten"}, "actions must be one of nine, .* got 'ten'"),
        ("sparse", {"split": "all"}, "split must be one of"),
        ("sparse", {"renderer": "gpu"}, "renderer must be one of software, hardware"),
        ("sparse", {"episode_steps": 0}, "episode_steps must be"),
        ("sparse", {"view_size": 84}, "view_size must be"),
        ("sparse", {"pictures": "a/b"}, "dmlab/sparse has no television that could show"),
        ("", {}, r"there is no task .dmlab/.; choose one of .* dmlab/\.\.\.,"),
    ],
)
def test_what_is_refused(make, task, options, match):
    with pytest.raises(ValueError, match=match):
        make(task, **options)


def test_a_level_that_is_not_there_says_so(make):
    world = make("explore_nothing", num_envs=1, **SMALL)
    with pytest.raises(ChildProcessError, match=r"Invalid levelName flag .*explore_nothing"):
        world.reset()


def test_without_the_module():
    assert str(STANDIN) not in sys.path
    with pytest.raises(
        ImportError, match=r"docs/dmlab.md explains how .* maze/\.\.\. runs the same"
    ):
        make_world("dmlab/sparse", num_envs=1, seed=0)


def test_workers_do_without_torch(make):
    world = make(num_envs=1, **SMALL)
    world.reset()
    (pid,) = world.workers.pids
    assert "libtorch" not in Path(f"/proc/{pid}/maps").read_text()
