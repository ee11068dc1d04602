"""MazeWorld: what the conformance suite does not ask of every world."""

import pytest
import torch

from episodic_curiosity.worlds.lab.tasks import ACTION_SETS
from episodic_curiosity.worlds.maze.tasks import TASKS
from episodic_curiosity.worlds.maze.world import MazeWorld
from episodic_curiosity.worlds.registry import make_world

CORRIDOR = "********\n*P    G*\n********"


def world(task: str = "sparse", num_envs: int = 4, **options) -> MazeWorld:
    options = {"num_levels": 10, "observation_size": (12, 16), "seed": 1} | options
    return make_world(f"maze/{task}", num_envs=num_envs, **options)


def begun(task: str = "sparse", num_envs: int = 4, **options) -> MazeWorld:
    own = world(task, num_envs, **options)
    own.reset()
    return own


class TestOptions:
    def test_action_sets(self):
        assert world().spec.num_actions == 9
        assert world("no-reward-no-fire").spec.num_actions == 8
        assert world(actions="three").spec.action_names == (
            "forward",
            "look left",
            "look right",
        )
        assert world(actions="no-fire+idle").spec.num_actions == 9
        assert world(idle=True).spec.action_names[-1] == "idle"
        assert world(actions="nine+idle", idle=True).spec.num_actions == 10
        assert len(ACTION_SETS) == 6

    def test_one_size_is_drawn_once(self):
        step = world(view_size=(12, 16)).reset()
        assert step.observation is step.view
        step = world(view_size=(6, 8)).reset()
        assert step.observation.shape == (4, 3, 12, 16)
        assert step.view.shape == (4, 3, 6, 8)

    def test_a_small_maze(self):
        small = world(maze_size=9, rooms=2, episode_steps=2)
        assert small.reset().position.max() < 800
        small.step(torch.zeros(4, dtype=torch.int64))
        assert small.step(torch.zeros(4, dtype=torch.int64)).truncated.all()

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"task": "spares"}, "maze/sparse, maze/very-sparse, maze/sparse-doors"),
            ({"split": "holdout"}, "r-network, train, validation, test"),
            ({"actions": "ten"}, "nine, no-fire, three, nine.idle"),
            ({"mazesize": 9}, "maze_size"),
            ({"maze_size": 8}, "odd"),
            ({"maze_size": (9, 9, 9)}, "2 numbers"),
            ({"maze_size": 5, "rooms": 1, "room_size": 5}, "room"),
            ({"maze_size": 5, "rooms": 1, "min_goal_distance": 10}, "5 x 5"),
            ({"episode_steps": 0}, "episode_steps must be an integer of at least 1, got 0"),
            ({"episode_steps": 1.5}, r"episode_steps must be an integer .* got 1\.5"),
            ({"reward_scale": float("nan")}, "reward_scale must be a finite number, got nan"),
            ({"level_seed": -1}, "level_seed must be an integer of at least 0, got -1"),
            ({"observation_size": 84}, r"observation_size must be \(height, width\), got 84"),
            ({"observation_size": (84.0, 84)}, r"observation_size's sides .* got 84\.0"),
            ({"num_levels": 2.5}, r"num_levels must be an integer .* got 2\.5"),
            ({"device": "cuda:99"}, "device 'cuda:99' cannot be used here"),
            ({"layout": CORRIDOR, "maze_size": 9}, "cannot be combined with maze_size"),
            ({"num_envs": 0}, "num_envs"),
            ({"seed": -1}, "seed"),
            ({"num_levels": 0}, "num_levels"),
            ({"observation_size": (0, 84)}, "0"),
            (
                {"task": "dense-2", "maze_size": 9},
                "only the tasks with a goal have the options maze_size",
            ),
            ({"task": "dense-1", "layout": CORRIDOR}, "a task with a goal"),
            ({"layout": "***\n*P*\n***"}, "'G'"),
        ],
    )
    def test_impossible_requests_are_refused(self, options, message):
        with pytest.raises(ValueError, match=message):
            world(**options)

    def test_make_world_names_its_choices(self):
        with pytest.raises(ValueError, match="maze/"):
            make_world("mazes/sparse", num_envs=1, seed=0)
        with pytest.raises(ValueError, match="image-action-3"):
            make_world("maze/sparse+static", num_envs=1, seed=0)

    def test_step_before_reset(self):
        with pytest.raises(RuntimeError, match="reset"):
            world().step(torch.zeros(4, dtype=torch.int64))


class TestLevels:
    def test_splits_share_no_level(self):
        cells = [world(split=split)._levels.cells for split in ("train", "test", "r-network")]
        for i, one in enumerate(cells):
            for other in cells[i + 1 :]:
                assert not (one[:, None] == other[None]).all(2).any()

    def test_seeds_share_their_levels_but_not_their_episodes(self):
        a, b = world(seed=1), world(seed=2)
        assert torch.equal(a._levels.cells, b._levels.cells)
        assert not torch.equal(a.reset().position, b.reset().position)

    def test_a_seed_means_the_same_episodes_in_every_version(self):
        """Published results name a seed: what it draws may not change."""
        own = world("sparse-doors", num_levels=12, seed=3, episode_steps=5)
        own.reset()
        for _ in range(5):  # to the end of the first episode
            own.step(torch.zeros(4, dtype=torch.int64))
        state = own.state()
        assert state["level"].tolist() == [0, 2, 9, 4]
        assert state["wall_look"].tolist() == [15, 0, 13, 17]
        assert state["yaw"].long().tolist() == [52, 73, 52, 344]
        assert state["open_doors"].tolist() == [1261500, 949670, 4933563, 131919356]
        goals = world("sparse", num_levels=12, seed=3, episode_steps=5)
        goals.reset()
        assert goals.state()["goal"].tolist() == [21, 8, 18, 11]

    def test_a_level_of_ones_own(self):
        own = world(layout=CORRIDOR)
        step = own.reset()
        assert step.position.tolist() == [[150.0, 150.0, 25.125]] * 4
        step = own.place(torch.tensor([[450.0, 150.0]]).expand(4, 2), torch.zeros(4))
        rewards = [own.step(torch.zeros(4, dtype=torch.int64)).reward for _ in range(12)]
        assert torch.stack(rewards).sum(0).tolist() == [10.0] * 4


class TestPlace:
    def test_bodies_stand_where_they_are_put_at_rest(self):
        own = world(layout=CORRIDOR)
        own.reset()
        for _ in range(3):
            own.step(torch.zeros(4, dtype=torch.int64))
        position = torch.tensor([[150.0, 150], [250, 150], [350, 140], [450, 160]])
        step = own.place(position, torch.tensor([0.0, 90, 180, 370]))
        assert torch.equal(step.position[:, :2], position)
        assert own.scene().yaw.tolist() == [0, 90, 180, 10]
        moved = own.step(torch.full((4,), 4)).position[:, :2]
        assert torch.equal(moved, position)

    def test_walls_and_wrong_shapes_are_refused(self):
        own = world(layout=CORRIDOR)
        own.reset()
        for x, y in ((50.0, 150.0), (-20.0, 150.0), (5000.0, 150.0)):
            with pytest.raises(ValueError, match="no floor"):
                own.place(torch.tensor([[x, y]]).expand(4, 2), torch.zeros(4))
        with pytest.raises(ValueError, match="shape"):
            own.place(torch.zeros(3, 2), torch.zeros(3))


class TestClock:
    def test_staggered_starts_spread_over_the_episode(self):
        staggered = world(num_envs=400, stagger=True, episode_steps=100)
        assert staggered.reset().first.all()
        clock = staggered.state()["clock"]
        assert torch.bincount(clock // 25, minlength=4).min() > 60
        assert clock.max() < 100
        ended = sum(
            int(staggered.step(torch.zeros(400, dtype=torch.int64)).first.sum())
            for _ in range(10)
        )
        assert 20 < ended < 60

    def test_the_final_observation_is_of_the_old_episode(self):
        one = world(num_envs=3, episode_steps=2)
        longer = world(num_envs=3, episode_steps=3)
        for each in (one, longer):
            each.reset()
            each.step(torch.zeros(3, dtype=torch.int64))
        ended = one.step(torch.zeros(3, dtype=torch.int64))
        same = longer.step(torch.zeros(3, dtype=torch.int64))
        assert ended.first.all()
        assert torch.equal(ended.final_observation, same.observation)
        assert torch.equal(ended.final_position, same.position)
        assert not torch.equal(ended.observation, same.observation)

    @pytest.mark.parametrize("task", ["maze/sparse", "maze/dense-2", "maze/sparse+noise"])
    def test_final_frames_can_be_drawn_later(self, task):
        options = {
            "num_envs": 3,
            "seed": 1,
            "num_levels": 1 if "dense" in task else 5,
            "observation_size": (20, 24),
            "view_size": (12, 16),
            "episode_steps": 2,
        }
        now, later = (
            make_world(task, final_frames=drawn, **options) for drawn in (True, False)
        )
        for each in (now, later):
            each.reset()
        for number in range(4):
            actions = torch.full((3,), number)
            drawn, undrawn = now.step(actions), later.step(actions)
            assert torch.equal(drawn.view, undrawn.view)
            assert undrawn.final_observation is None
            assert undrawn.final_view is None
            if drawn.first.any():
                assert torch.equal(drawn.final_position, undrawn.final_position)
                redrawn = later.redraw_observation(undrawn.final_snapshot)
                assert torch.equal(redrawn, drawn.final_observation)
                assert torch.equal(later.redraw(undrawn.final_snapshot), drawn.final_view)


class TestState:
    def test_a_state_of_another_world_is_refused(self):
        state = begun(num_envs=4).state()
        with pytest.raises(ValueError, match=r"holds key as torch.int64 \(4,\), wanted"):
            world(num_envs=5).load_state(state)
        for other in ({"num_levels": 3}, {"level_seed": 1}, {"split": "test"}, {"rooms": 2}):
            with pytest.raises(ValueError, match="another task, options or levels"):
                world(num_envs=4, **other).load_state(state)
        del state["yaw"]
        with pytest.raises(ValueError, match="lacks 1 of the wanted tensors, first yaw"):
            world(num_envs=4).load_state(state)

    def test_snapshots_of_another_task_are_refused(self):
        with pytest.raises(ValueError, match=r"be \(rows, 143\) of dtype uint8, got \(4, 238"):
            world("sparse").redraw(begun("dense-2").snapshot())
        with pytest.raises(ValueError, match=r"be \(rows, 143\) of dtype uint8, got \(143,\)"):
            world("sparse").redraw(begun().snapshot()[0])

    def test_snapshots_that_name_what_is_not_there_are_refused(self):
        own = begun()
        snapshot = own.snapshot()
        snapshot[2, 1] = 99  # the level's second byte
        with pytest.raises(ValueError, match="must be from this world, got values"):
            own.redraw(snapshot)

    def test_nothing_is_to_be_had_before_the_first_episode(self):
        own = world()
        for ask in (own.observe, own.snapshot, own.state, own.scene, own.overhead):
            with pytest.raises(RuntimeError, match=r"call reset\(\) first"):
                ask()

    def test_a_seed_begins_the_series_anew(self):
        own, other = world(seed=5), world(seed=6)
        expected = [own.reset().view, own.reset().view]
        own.reset()
        assert torch.equal(own.reset(seed=5).view, expected[0])
        assert torch.equal(own.reset().view, expected[1])
        other.reset()
        assert torch.equal(other.reset(seed=5).view, expected[0])

    @pytest.mark.parametrize("task", TASKS)
    def test_snapshots_leave_room_for_a_television(self, task):
        assert begun(task).snapshot().shape[1] <= 256 - 8

    def test_fire_is_seen_and_redrawn(self):
        own = world(num_envs=1, layout=CORRIDOR, observation_size=(40, 40))
        own.reset()
        for _ in range(12):  # until the ring of the spawn is gone
            own.step(torch.tensor([4]))
        before = own.place(torch.tensor([[550.0, 150.0]]), torch.zeros(1)).view
        after = own.step(torch.tensor([8])).view
        assert (before.int() - after.int()).abs().max() > 50
        assert torch.equal(own.redraw(own.snapshot()), after)


def test_a_position_is_in_dmlab_units():
    assert world().reset().position[:, 2].tolist() == [25.125] * 4
    assert world("dense-2").reset().position[:, 2].tolist() == [32.125] * 4
    assert world().spec.oracle_cell == 30.0
