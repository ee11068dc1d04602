"""What is special about the ant's world; the rest is in the conformance suite."""

import os
import sys

import pytest
import torch

from episodic_curiosity.reachability.random_play import random_play
from episodic_curiosity.reachability.replay import SnapshotReplay
from episodic_curiosity.worlds.ant.world import AntWorld
from episodic_curiosity.worlds.registry import make_world

pytestmark = pytest.mark.slow

pytest.importorskip("mujoco.batch")


def make(task: str = "no-reward", num_envs: int = 3, **options) -> AntWorld:
    return make_world(f"ant/{task}", num_envs=num_envs, seed=0, **{"view_size": None} | options)


def test_escape_circle_pays_along_a_scripted_path():
    world = make("escape-circle")
    world.reset()
    start = world._ants.positions[1, :2].clone()
    still = torch.zeros(3, 8)
    paid = []
    for distance in (3.0, 9.5, 10.2, 10.3, 9.0, 10.7, 11.7):
        # Carried there, upright; a step moves it by a few hundredths.
        world._ants.positions[1] = 0
        world._ants.positions[1, :4] = torch.tensor(
            [start[0], start[1] + distance, 0.75, 1.0], dtype=torch.float64
        )
        world._ants.velocities[1] = 0
        step = world.step(still)
        assert not step.terminated[1]
        paid.append(step.reward[1].item())
        assert step.reward[[0, 2]].tolist() == [0.0, 0.0]
    assert paid == [0.0, 0.0, 1.0, 0.0, 0.0, 1.0, 2.0]
    assert make("no-reward").reset().reward.tolist() == [0.0] * 3


def test_gentle_play_leaves_ants_on_their_feet():
    """With all the motors' strength much of what an R-network is fitted to is the sky."""
    num_steps, num_ants = 600, 64
    world = make(num_envs=num_ants, gentle_play=0.3)
    played = random_play(world, num_steps * num_ants, seed=0, progress=False)
    time, env = torch.ones(num_steps, num_ants).nonzero(as_tuple=True)
    x, y = played.views(time, env)[:, 2:4].T  # of the torso's quaternion
    upright, late, gently = x**2 + y**2 < 0.5, time > num_steps // 2, env % 2 == 1
    assert upright[late & gently].float().mean() > 0.95
    assert upright[late & ~gently].float().mean() < 0.75


@pytest.mark.parametrize(
    ("bound", "message"), [(0, "above 0, got 0"), ("a", "got 'a'"), (1.5, "at most 1")]
)
def test_gentle_play_is_a_share_of_a_motor(bound, message):
    with pytest.raises(ValueError, match=f"gentle_play must be .*{message}"):
        make(gentle_play=bound)


def test_an_ant_up_in_the_air_ends_its_episode_and_shows_where_it_was():
    world = make()
    before = world.reset()
    world._ants.positions[1, 2] = 1.2
    step = world.step(torch.zeros(3, 8))
    assert step.terminated.tolist() == step.first.tolist() == [False, True, False]
    assert not step.truncated.any()
    assert step.final_observation is not None
    assert step.final_position is not None
    assert step.final_observation[1, 0] > 1.0
    assert step.final_position[1, :2].dist(before.position[1, :2]) < 0.5
    assert step.position[1, :2].dist(before.position[1, :2]) > 0.5
    assert 0.6 < step.observation[1, 0] < 0.9


def test_a_graph_can_hold_what_redraws_ants_but_not_what_steps_them():
    world = make()
    assert not world.spec.can_capture
    assert SnapshotReplay.for_world(world, num_steps=3).can_capture


@pytest.mark.parametrize("option", ["final_frames", "stagger"])
def test_yes_or_no_is_a_bool(option):
    with pytest.raises(TypeError, match=f"{option} must be a bool, got str"):
        make(**{option: "no"})


def test_final_views_are_drawn_unless_nobody_wants_them():
    steps = []
    for final_frames in (True, False):
        world = make(final_frames=final_frames)
        world.reset()
        world._ants.positions[1, 2] = 1.2
        steps.append(world.step(torch.zeros(3, 8)))
    drawn, undrawn = steps
    assert drawn.final_view is not None
    assert drawn.final_view[1].float().std() > 0
    assert not torch.equal(drawn.final_view[1], drawn.view[1])
    assert undrawn.final_view is None
    for name, field in undrawn._asdict().items():
        if field is not None:
            assert torch.equal(field, getattr(drawn, name)), name


def test_observations_are_the_standard_27_features():
    world = make()
    step = world.reset()
    step = world.step(torch.ones(3, 8))
    positions, velocities = world._ants.positions, world._ants.velocities
    assert torch.equal(step.observation, torch.cat((positions[:, 2:], velocities), 1).float())
    assert torch.equal(step.position, positions[:, :3].float())


def test_without_a_view_size_the_view_is_the_observation():
    step = make().reset()
    assert step.view is step.observation
    drawn = make(view_size=(6, 8)).reset()
    assert drawn.view.shape == (3, 3, 6, 8)
    assert torch.equal(drawn.observation, step.observation)


def test_a_floor_that_repeats_is_redrawn_as_it_was():
    world, plain = make(view_size=(24, 32), floor_period=2), make(view_size=(24, 32))
    first = world.reset()
    step = world.step(torch.ones(3, 8))
    assert torch.equal(world.redraw(world.snapshot()), step.view)
    assert not torch.equal(plain.redraw(world.snapshot()), step.view)
    again = make(view_size=(24, 32), floor_period=2)
    again.reset()
    again.load_state(world.state())
    assert torch.equal(again.redraw(again.snapshot()), step.view)
    assert torch.equal(first.observation, plain.reset().observation)
    with pytest.raises(ValueError, match="floor_period must be an integer of at least 1"):
        make(floor_period=0)


def test_snapshots_hold_observations_too():
    world = make(view_size=(6, 8))
    world.reset()
    step = world.step(torch.ones(3, 8))
    assert torch.equal(world.redraw_observation(world.snapshot()), step.observation)
    with pytest.raises(ValueError, match=r"\(rows, 120\) of dtype uint8"):
        world.redraw(torch.zeros(2, 119, dtype=torch.uint8))


def test_splits_differ_and_staggered_clocks_do_too():
    starts = [make(split=split).reset().position for split in ("train", "test")]
    assert not torch.equal(*starts)
    world = make(num_envs=40, stagger=True, episode_steps=50)
    world.reset()
    ends = sum(world.step(torch.zeros(40, 8)).truncated.int() for _ in range(25))
    assert 10 < ends.sum() < 30


def test_a_lost_ant_ends_its_episode(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # MuJoCo leaves a log where it is
    world = make()
    world.reset()
    world._ants.velocities[2] = 1e12
    step = world.step(torch.zeros(3, 8))
    assert step.terminated.tolist() == [False, False, True]
    assert step.observation[2].abs().max() < 2  # of a new episode


def test_more_ants_than_fit_are_refused_beforehand():
    for options in ({"num_envs": 10**10, "view_size": None}, {"num_envs": 10**8}):
        with pytest.raises(
            MemoryError, match=r"a world of 10*0 ants needs .*: lower `num_envs`"
        ):
            make(**options)


def test_bad_input_is_named():
    with pytest.raises(ValueError, match="there is no task 'ant/maze'; choose one of"):
        make("maze")
    with pytest.raises(ValueError, match="ants have no option 'levels'; there are view_size"):
        make(levels=3)
    with pytest.raises(ValueError, match="split must be one of r-network, train"):
        make(split="exam")
    with pytest.raises(RuntimeError, match="call reset"):
        make().step(torch.zeros(3, 8))
    world = make()
    world.reset()
    for actions in (torch.zeros(3, 8, dtype=torch.int64), [0.0]):
        with pytest.raises(ValueError, match="actions must be a float32 tensor, got"):
            world.step(actions)
    with pytest.raises(ValueError, match="actions must be finite"):
        world.step(torch.full((3, 8), torch.nan))
    state = world.state()
    for other in (make("escape-circle"), make(floor_period=2)):
        with pytest.raises(ValueError, match="must be of a world of the same task, split"):
            other.load_state(state)
    with pytest.raises(ValueError, match="not a state of ant/no-reward: it holds"):
        make(num_envs=2).load_state(state)


def test_without_mujoco_one_sentence_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "mujoco.batch", None)
    with pytest.raises(
        ImportError, match=r"^tasks named ant/\.\.\. need MuJoCo .*\[mujoco\]'$"
    ):
        make_world("ant/no-reward", num_envs=1, seed=0)


def test_an_untrained_policy_covers_what_the_paper_says():
    """The paper's plain PPO has no reward to learn from: normal actions, 1.4 cells."""
    num_envs, each = 20, 10
    world = make("escape-circle", num_envs=num_envs)
    step = world.reset()
    generator = torch.Generator().manual_seed(0)
    visited: list[set[tuple[int, ...]]] = [set() for _ in range(num_envs)]
    coverage, lengths, reward = [], [], 0.0
    clock, ended = torch.zeros(num_envs), torch.zeros(num_envs, dtype=torch.int64)
    # The same number of every ant: those that end soonest would be the shortest.
    while (ended < each).any():
        for row, cell in enumerate(cells(step.position)):
            visited[row].add(cell)
        step = world.step(torch.randn(num_envs, 8, generator=generator))
        clock += 1
        reward += step.reward.sum().item()
        for row in step.first.nonzero().flatten().tolist():
            visited[row].add(cells(step.final_position)[row])
            if ended[row] < each:
                coverage.append(len(visited[row]))
                lengths.append(clock[row].item())
            visited[row].clear()
            clock[row] = 0
            ended[row] += 1
    mean, median = sum(coverage) / len(coverage), torch.tensor(lengths).median()
    print(f"{len(coverage)} episodes: {mean:.2f} cells, {median:.0f} steps in the median")
    assert len(coverage) == 200
    assert 1.2 < mean < 1.7
    assert 20 < median < 60
    assert reward == 0


def cells(position: torch.Tensor) -> list[tuple[int, ...]]:
    """As the Grid Oracle counts them: truncated towards zero."""
    return [tuple(cell) for cell in (position / 5).trunc().int().tolist()]


def test_a_fork_of_its_process_is_refused_instead_of_waiting_for_ever():
    world = make()
    world.reset()
    world.step(torch.zeros(3, 8))
    reads, writes = os.pipe()
    if (child := os.fork()) == 0:
        for call in (world.reset, lambda: world.step(torch.zeros(3, 8))):
            try:
                call()
            except RuntimeError as error:
                os.write(writes, f"{error};".encode())
        os._exit(0)
    os.close(writes)
    assert os.waitpid(child, 0)[1] == 0
    with os.fdopen(reads) as told:
        assert told.read().count("in the process that made it, got a fork of that;") == 2
    world.step(torch.zeros(3, 8))
