"""Rewards, respawns, doors, shots and endings, played by hand."""

import dataclasses

import numpy as np
import pytest
import torch

from episodic_curiosity.support.randomness import random_bits
from episodic_curiosity.worlds.lab.elements import CellKind, Sprite
from episodic_curiosity.worlds.maze.levels.layouts import MazeLayout
from episodic_curiosity.worlds.maze.levels.pool import make_pool, pool_from_text, room_pool
from episodic_curiosity.worlds.maze.render.scene import Side
from episodic_curiosity.worlds.maze.rules import objects
from episodic_curiosity.worlds.maze.rules.state import NEVER, NO_KEY
from episodic_curiosity.worlds.maze.tasks import TASKS
from tests.worlds.maze.rules.game import Game, cells_of, puzzle, steps_between

HALL = "\n".join(["*******", "*    P*", "*     *", "*  G  *", "*     *", "*P    *", "*******"])
GOAL = (350.0, 350.0)
CORRIDOR = "********\n*P    G*\n********"


def hall(task: str = "sparse", num_envs: int = 1) -> Game:
    return Game(TASKS[task], pool_from_text(HALL, doors=False), num_envs)


class TestGoal:
    @pytest.mark.parametrize(
        ("dx", "dy", "reward"),
        [
            (-50, 0, 10),
            (-50.5, 0, 0),
            (44, 0, 10),
            (44.5, 0, 0),
            (0, 36, 10),
            (0, -36, 10),
            (0, 36.5, 0),
            (0, -36.5, 0),
            (-49, 35, 10),
        ],
    )
    def test_the_pick_up_box(self, dx, dy, reward):
        assert hall().reward_at(GOAL[0] + dx, GOAL[1] + dy) == reward

    def test_a_body_that_only_passes_through_the_box_touches(self):
        game = hall()
        game.place(GOAL[0] + 38, GOAL[1], yaw=0.0)  # inside for one frame of four
        game.state = game.state._replace(velocity=torch.tensor([[320.0, 0.0]]))
        assert game.play("forward").reward.tolist() == [10.0]

    def test_a_goal_respawns_the_body_and_nothing_ends(self):
        game = hall(num_envs=5)
        goal = game.state.sprite_position.clone()
        game.place(*GOAL)
        for _ in range(3):
            game.play("fire")
            game.place(*GOAL)
        before = game.state
        outcome = game.play()
        assert outcome.reward.tolist() == [10.0] * 5
        assert not outcome.terminated.any()
        assert not outcome.truncated.any()
        after = game.state
        corners = {(150.0, 150.0), (550.0, 550.0)}
        assert {tuple(place) for place in after.position.tolist()} <= corners
        assert (after.velocity == 0).all()
        assert (after.yaw != before.yaw).all()
        assert after.ammo.tolist() == [100] * 5
        assert torch.equal(after.clock, before.clock + 1)
        assert torch.equal(after.spawned_at, after.clock)
        assert torch.equal(after.level, before.level)
        assert torch.equal(after.sprite_position, goal)

    def test_both_corners_and_all_yaws_are_drawn(self):
        game = hall(num_envs=400)
        game.place(*GOAL)
        game.play()
        assert 150 < (game.state.position[:, 0] == 150).sum() < 250
        quarters = torch.bincount((game.state.yaw / 90).long(), minlength=4)
        assert len(quarters) == 4
        assert (quarters > 60).all()

    def test_no_reward_is_the_same_task_without_the_pay(self):
        game = hall("no-reward")
        assert game.reward_at(*GOAL) == 0.0
        assert game.state.spawns.item() == 2

    def test_the_clock_truncates(self):
        task = dataclasses.replace(TASKS["sparse"], episode_steps=3)
        game = Game(task, pool_from_text(HALL, doors=False))
        outcomes = [game.play() for _ in range(3)]
        assert [o.truncated.item() for o in outcomes] == [False, False, True]
        assert not outcomes[-1].terminated.item()

    def test_lengths_are_two_minutes_and_one(self):
        steps = {name: task.episode_steps for name, task in TASKS.items()}
        assert steps.pop("dense-1") == steps.pop("dense-2") == 900
        assert set(steps.values()) == {1800}


class TestDrawnMazes:
    @pytest.mark.parametrize(("task", "shortest"), [("sparse", 1), ("very-sparse", 10)])
    def test_path_from_spawn_to_goal(self, task, shortest):
        pool = make_pool(TASKS[task].layout, num_levels=12, seed=1, split="train")
        game = Game(TASKS[task], pool, num_envs=300)
        lengths = []
        for _ in range(2):  # a first spawn, then a respawn at the goal
            goals = cells_of(game.state.sprite_position[:, 0], 17)
            starts = cells_of(game.state.position, 17)
            for level, goal, start in zip(game.state.level, goals, starts, strict=True):
                lengths.append(steps_between(pool.cells[level], goal)[start])
            game.state = game.state._replace(position=game.state.sprite_position[:, 0])
            game.play()
            assert (game.state.spawns == 2).all()
            game.state = game.state._replace(spawns=torch.ones_like(game.state.spawns))
        assert min(lengths) >= shortest
        assert (min(lengths) < 10) == (task == "sparse")

    def test_levels_looks_and_goals_differ_between_environments(self):
        pool = make_pool(MazeLayout(), num_levels=10, seed=1, split="train")
        game = Game(TASKS["sparse"], pool, num_envs=600)
        assert len(game.state.level.unique()) == 10
        assert len(game.state.wall_look.unique()) == 20
        assert len(game.state.floor_look.unique()) == 20
        goals = game.state.sprite_position[game.state.level == 0, 0].unique(dim=0)
        assert len(goals) > 20  # of 36

    def test_each_respawn_opens_a_way_and_half_of_the_other_doors(self):
        pool = make_pool(TASKS["sparse-doors"].layout, num_levels=6, seed=1, split="train")
        game = Game(TASKS["sparse-doors"], pool, num_envs=60)
        masks, shares = [], []
        for _ in range(3):
            masks.append(game.state.open_doors)
            for row in range(60):
                level = int(game.state.level[row])
                numbers = pool.doors[level].reshape(-1)
                doors = {
                    int(numbers[cell]): int(cell) for cell in np.flatnonzero(numbers != 255)
                }
                mask = int(game.state.open_doors[row])
                shut = {cell for door, cell in doors.items() if not mask >> door & 1}
                (goal,) = cells_of(game.state.sprite_position[row], 17)
                (start,) = cells_of(game.state.position[row, None], 17)
                assert steps_between(pool.cells[level], goal, shut)[start] > 0
                shares.append(1 - len(shut) / len(doors))
            game.state = game.state._replace(position=game.state.sprite_position[:, 0])
            assert (game.play().reward == 10).all()
        assert (masks[0] != masks[1]).float().mean() > 0.8
        assert 0.5 <= np.mean(shares) < 0.85


class TestShots:
    def corridor(self) -> Game:
        game = Game(TASKS["sparse"], pool_from_text(CORRIDOR, doors=False))
        game.place(150.0, 150.0, yaw=0.0)
        return game

    def test_a_shot_marks_the_first_wall(self):
        game = self.corridor()
        game.play("fire")
        assert game.state.ammo.item() == 99
        assert game.state.mark_position[0, 0].tolist() == pytest.approx([700.0, 150.0])
        assert game.state.mark_side[0, 0].item() == Side.WEST
        assert torch.isinf(game.state.mark_time[0, 1:]).all()

    @pytest.mark.parametrize(
        ("yaw", "place", "side"),
        [
            (90.0, (150.0, 200.0), Side.SOUTH),
            (180.0, (100.0, 150.0), Side.EAST),
            (270.0, (150.0, 100.0), Side.NORTH),
            (45.0, (200.0, 200.0), None),
            (10.0, (150 + 50 / np.tan(np.deg2rad(10)), 200.0), Side.SOUTH),
        ],
    )
    def test_every_direction(self, yaw, place, side):
        game = self.corridor()
        game.place(150.0, 150.0, yaw=yaw)
        game.play("fire")
        assert game.state.mark_position[0, 0].tolist() == pytest.approx(place, abs=0.1)
        assert side is None or game.state.mark_side[0, 0].item() == side

    def test_holding_the_trigger_fires_every_100_ms(self):
        game = self.corridor()
        ammo = []
        for _ in range(50):  # 3.2 engine seconds
            game.play("fire")
            ammo.append(game.state.ammo.item())
        assert 100 - ammo[-1] == 32
        assert ammo[:4] == [99, 98, 98, 97]

    def test_single_shots_wait_for_the_weapon(self):
        game = self.corridor()
        for action in ("fire", "idle", "idle", "fire", "idle", "fire"):
            game.play(action)
        assert game.state.ammo.item() == 97
        game.play("fire")  # 64 ms after a shot at the very start of a step
        assert game.state.ammo.item() == 96
        game.play("fire")
        assert game.state.ammo.item() == 96

    def test_after_100_shots_nothing_is_drawn(self):
        game = self.corridor()
        for _ in range(170):
            game.play("fire")
        assert game.state.ammo.item() == 0
        assert game.state.shots.item() == 100
        newest = game.state.mark_time.max().item()
        game.play("fire")
        assert game.state.mark_time.max().item() == newest

    def test_the_newest_eight_marks_are_kept(self):
        game = self.corridor()
        for _ in range(40):
            game.play("fire")
        times = game.state.mark_time[0].sort().values
        assert torch.isfinite(times).all()
        assert times[-1] - times[0] == pytest.approx(0.7, abs=0.05)

    def test_a_shut_door_stops_a_shot_and_an_open_one_does_not(self):
        text = "********\n*P  I G*\n********"
        game = Game(TASKS["sparse-doors"], pool_from_text(text, doors=True))
        for mask, x in ((0, 449.0), (1, 700.0)):
            game.state = game.state._replace(
                open_doors=torch.tensor([mask]), reload=torch.zeros(1, dtype=torch.int64)
            )
            game.place(150.0, 150.0, yaw=0.0)
            game.play("fire")
            newest = game.state.mark_time[0].argmax()
            assert game.state.mark_position[0, newest].tolist() == pytest.approx([x, 150.0])


class TestKeys:
    def game(self) -> Game:
        # key red | door red | key blue | door green | lolly
        pool = puzzle("*  I  I  *", {2: Sprite.KEY_RED, 4: Sprite.KEY_BLUE}, [0, 1], lolly=8)
        return Game(TASKS["dense-1"], pool)

    def test_a_key_pays_and_is_gone(self):
        game = self.game()
        assert game.reward_at(250, 150) == 1.0
        assert game.state.held_key.item() == 0
        assert game.reward_at(250, 150) == 0.0

    def test_a_matching_key_opens_the_door_for_good_and_is_used_up(self):
        game = self.game()
        game.reward_at(250, 150)
        assert game.reward_at(320, 150) == 1.0
        assert game.state.held_key.item() == NO_KEY
        assert game.state.open_doors.item() == 0  # it is still sliding
        pay = [game.reward_at(320, 150) for _ in range(5)]
        assert pay == [0.0] * 5
        assert game.state.open_doors.item() == 1
        game.place(320, 150, yaw=0.0)
        for _ in range(10):
            game.play("forward")
        assert game.state.position[0, 0] > 400

    @pytest.mark.parametrize(
        ("x", "reward"), [(284.5, 0.0), (285.0, 1.0), (414.5, 1.0), (415.5, 0.0)]
    )
    def test_a_door_opens_when_the_body_touches_its_cell_from_300_to_400(self, x, reward):
        game = self.game()
        game.state = game.state._replace(
            held_key=torch.tensor([0]), sprite=torch.zeros_like(game.state.sprite)
        )
        assert game.reward_at(x, 150) == reward
        assert game.state.held_key.item() == (NO_KEY if reward else 0)

    def test_without_a_key_or_with_another_one_it_stays_shut(self):
        game = self.game()
        assert game.reward_at(320, 150) == 0.0
        assert game.reward_at(450, 150) == 1.0  # the blue key
        assert game.reward_at(320, 150) == 0.0
        assert game.reward_at(620, 150) == 0.0
        assert game.state.held_key.item() == 2
        for _ in range(6):
            game.play()
        assert game.state.open_doors.item() == 0

    def test_another_key_replaces_the_one_that_is_held(self):
        game = self.game()
        game.reward_at(250, 150)
        game.reward_at(450, 150)
        assert game.state.held_key.item() == 2
        assert game.reward_at(320, 150) == 0.0

    def test_the_lolly_pays_50_and_ends_the_episode_0_2_seconds_later(self):
        game = self.game()
        assert game.reward_at(850, 150) == 50.0
        ends = [game.play().terminated.item() for _ in range(3)]
        assert ends == [False, False, True]

    def test_invisible_walls_stop_bodies_but_not_shots(self):
        game = self.game()
        game.place(150, 150, yaw=180.0)
        for _ in range(5):
            game.play("forward")
        assert game.state.position[0, 0].item() == pytest.approx(116.126, abs=1e-3)
        game.play("fire")
        assert game.state.shots.item() == 1
        assert torch.isinf(game.state.mark_time).all()


class TestObjects:
    def test_twenty_things_and_the_body_on_different_points_of_the_grid(self):
        game = Game(TASKS["dense-2"], room_pool(), num_envs=50)
        points = torch.cat((game.state.sprite_position, game.state.position[:, None]), dim=1)
        column, row = (points[..., 0] + 450) / 150, (points[..., 1] + 700) / 150
        assert torch.equal(column, column.round())
        assert torch.equal(row, row.round())
        assert column.min() == 0
        assert column.max() == 9
        assert row.min() == 0
        assert row.max() == 8
        for numbers in (row * 10 + column).tolist():
            assert len(set(numbers)) == 21

    def test_three_configurations(self):
        state = Game(TASKS["dense-2"], room_pool(), 60).state
        for sprites in state.sprite.tolist():
            assert [sprites.count(kind) for kind in set(sprites)] == [10, 10]
        looks = (state.wall_look + state.floor_look > 0).int()
        kinds = torch.stack((state.sprite[:, 0], state.sprite[:, -1], looks), dim=1)
        hat, can, cake, balloon = Sprite.HAT, Sprite.CAN, Sprite.CAKE, Sprite.BALLOON
        expected = {(hat, can, 0), (cake, balloon, 0), (cake, balloon, 1)}
        assert {tuple(row) for row in kinds.unique(dim=0).tolist()} == expected

    def test_good_things_pay_and_bad_ones_cost_and_the_tenth_ends_it(self):
        game = Game(TASKS["dense-2"], room_pool())
        bad, good = game.state.sprite_position[0, :10], game.state.sprite_position[0, 10:]
        rewards = [game.reward_at(*place) for place in bad[:3].tolist()]
        assert rewards == [-1.0] * 3
        assert game.reward_at(*bad[0].tolist()) == 0.0  # it does not grow again
        rewards = [game.reward_at(*place) for place in good[:7].tolist()]
        assert rewards == [1.0] * 7
        ends = []
        for place in good[7:].tolist():
            game.place(*place)
            outcome = game.play()
            ends.append(outcome.terminated.item())
            assert outcome.reward.item() == 0.0  # the game is over
        assert ends == [False, False, True]

    def test_points_are_those_of_the_smallest_bits_in_order(self):
        bits = torch.arange(500) * 7919
        things = objects.scatter(bits, objects.configurations(bits.device))
        drawn = random_bits(bits[:, None], 1, torch.arange(90))
        order = drawn.argsort(dim=1, stable=True)[:, :21]
        place = torch.stack((order % 10 * 150.0 - 450.0, order // 10 * 150.0 - 700.0), dim=2)
        assert torch.equal(torch.cat((things.place, things.start[:, None]), dim=1), place)

    def test_nothing_ends_before(self):
        game = Game(TASKS["dense-2"], room_pool())
        for place in game.state.sprite_position[0, :9].tolist():
            game.reward_at(*place)
        assert game.state.ends_at.item() == NEVER
        assert CellKind.ROOM in room_pool().cells
