"""What every world must do, whatever it simulates.

Subclass `WorldConformance` and give `make(num_envs, seed)`; episodes should be short, so that
some end within `STEPS`. Worlds say in their spec what else they can do, and are held to it.
"""

import pytest
import torch
from torch import Tensor

from episodic_curiosity.worlds.base import Step, World

NUM_ENVS = 3
STEPS = 12


def actions_for(world: World, steps: int, seed: int = 0) -> Tensor:
    """Random actions, (T, N) or (T, N, *action_shape)."""
    generator = torch.Generator().manual_seed(seed)
    spec = world.spec
    if spec.num_actions:
        shape = (steps, spec.num_envs)
        actions = torch.randint(spec.num_actions, shape, generator=generator)
    else:
        shape = (steps, spec.num_envs, *spec.action_shape)
        actions = torch.rand(shape, generator=generator) * 2 - 1
    return actions.to(spec.device)


def play(world: World, actions: Tensor) -> list[Step]:
    return [world.step(row) for row in actions]


def assert_equal(a: Step, b: Step, rows: slice = slice(None)) -> None:
    """Everything of two steps is equal; final fields only where an episode ended."""
    for name in ("observation", "view", "reward", "first", "terminated", "truncated"):
        assert torch.equal(getattr(a, name)[rows], getattr(b, name)[rows]), name
    ended = (a.terminated | a.truncated)[rows]
    for name in ("position", "final_observation", "final_view", "final_position"):
        mine, other = getattr(a, name), getattr(b, name)
        if mine is not None and other is not None:
            keep = torch.ones_like(ended) if name == "position" else ended
            assert torch.equal(mine[rows][keep], other[rows][keep]), name


class WorldConformance:
    """One class of tests for all worlds."""

    deterministic = True  # the same seed plays the same episodes

    def make(self, num_envs: int = NUM_ENVS, seed: int = 7) -> World:
        raise NotImplementedError

    @pytest.fixture
    def world(self):
        world = self.make()
        yield world
        world.close()

    def check_shapes(self, world: World, step: Step) -> None:
        spec = world.spec
        count = spec.num_envs
        assert step.observation.shape == (count, *spec.observation_shape)
        assert step.observation.dtype == spec.observation_dtype
        assert step.view.shape == (count, *spec.view_shape)
        assert step.view.dtype == spec.view_dtype
        assert step.reward.shape == (count,)
        assert step.reward.dtype == torch.float32
        for flag in (step.first, step.terminated, step.truncated):
            assert flag.shape == (count,)
            assert flag.dtype == torch.bool
        assert (step.position is not None) == spec.has_position
        for field in step:
            assert field is None or field.device.type == spec.device.type
        for position in (step.position, step.final_position):
            if position is not None:
                assert position.shape == (count, 3)
                assert position.dtype == torch.float32
                assert torch.isfinite(position).all()
        if step.final_observation is not None:
            assert step.final_observation.shape == step.observation.shape
            assert step.final_view is not None
            assert step.final_view.shape == step.view.shape

    def test_spec_makes_sense(self, world: World):
        spec = world.spec
        assert spec.num_envs == NUM_ENVS
        assert (spec.num_actions > 0) != (len(spec.action_shape) > 0)
        assert not spec.action_names or len(spec.action_names) == spec.num_actions
        assert len(set(spec.action_names)) == len(spec.action_names)
        assert spec.episode_steps > 0
        assert spec.has_position == (spec.oracle_cell > 0)

    def test_reset_begins_an_episode_everywhere(self, world: World):
        step = world.reset()
        self.check_shapes(world, step)
        assert step.first.all()
        assert not step.terminated.any()
        assert not step.truncated.any()
        assert (step.reward == 0).all()
        again = world.reset()
        assert again.first.all()

    def test_steps_keep_their_shapes_and_open_an_episode_where_one_ends(self, world: World):
        world.reset()
        clock = torch.zeros(NUM_ENVS, dtype=torch.int64)
        for step in play(world, actions_for(world, STEPS)):
            self.check_shapes(world, step)
            ended = step.terminated | step.truncated
            assert torch.equal(step.first, ended)
            assert not (step.terminated & step.truncated).any()
            assert torch.isfinite(step.reward).all()
            clock += 1
            assert (clock <= world.spec.episode_steps).all()
            assert ended.cpu()[clock == world.spec.episode_steps].all()
            clock[ended.cpu()] = 0
            if ended.any():
                assert step.final_observation is not None
                assert step.final_view is not None
                if world.spec.has_position:
                    assert step.final_position is not None

    def test_what_was_returned_is_not_changed_afterwards(self, world: World):
        first = world.reset()
        kept = [None if field is None else field.clone() for field in first]
        play(world, actions_for(world, 3))
        for before, after in zip(kept, first, strict=True):
            assert before is None or torch.equal(before, after)

    def test_same_seed_same_episodes(self):
        if not self.deterministic:
            pytest.skip("this world's simulator is not deterministic")
        worlds = [self.make(), self.make()]
        steps = [[w.reset(), *play(w, actions_for(w, STEPS))] for w in worlds]
        for a, b in zip(*steps, strict=True):
            assert_equal(a, b)

    def test_other_seed_other_episodes(self):
        a, b = self.make(seed=7).reset(), self.make(seed=8).reset()
        assert not torch.equal(a.view, b.view)

    def test_a_seed_begins_the_series_anew(self, world: World):
        if not self.deterministic:
            pytest.skip("this world's simulator is not deterministic")
        world.reset()
        play(world, actions_for(world, 3))
        expected = [world.reset(seed=3), world.reset()]
        fresh = self.make(seed=3)
        for a, b in zip(expected, [fresh.reset(), fresh.reset()], strict=True):
            assert_equal(a, b)

    def test_environments_differ(self, world: World):
        view = world.reset().view
        assert not torch.equal(view[0], view[1])

    def test_an_environment_does_not_depend_on_its_neighbours(self):
        if not self.deterministic:
            pytest.skip("this world's simulator is not deterministic")
        crowd, alone = self.make(), self.make(num_envs=1)
        actions = actions_for(crowd, STEPS)
        together = [crowd.reset(), *play(crowd, actions)]
        single = [alone.reset(), *play(alone, actions[:, :1])]
        for a, b in zip(single, together, strict=True):
            assert_equal(a, b, slice(0, 1))

    def test_state_continues_bit_for_bit(self, world: World):
        if not world.spec.can_restore:
            pytest.skip("this world cannot be restored")
        world.reset()
        actions = actions_for(world, 2 * STEPS)
        play(world, actions[:5])
        state = world.state()  # type: ignore[attr-defined]
        expected = play(world, actions[5:])
        other = self.make(seed=99)
        other.load_state(state)  # type: ignore[attr-defined]
        for a, b in zip(expected, play(other, actions[5:]), strict=True):
            assert_equal(a, b)

    def test_snapshots_are_redrawn_exactly(self, world: World):
        if not world.spec.can_redraw:
            pytest.skip("this world cannot redraw")
        views, snapshots = [world.reset().view], [world.snapshot()]  # type: ignore[attr-defined]
        for step in (world.step(row) for row in actions_for(world, STEPS)):
            views.append(step.view)
            snapshots.append(world.snapshot())  # type: ignore[attr-defined]
        rows = torch.cat(snapshots)
        assert rows.dtype == torch.uint8
        assert rows.shape[1] == world.spec.snapshot_bytes <= 256
        order = torch.randperm(len(rows), generator=torch.Generator().manual_seed(0))
        redrawn = world.redraw(rows[order])  # type: ignore[attr-defined]
        assert torch.equal(redrawn, torch.cat(views)[order])
        assert torch.equal(world.redraw(rows[4:5]), torch.cat(views)[4:5])  # type: ignore[attr-defined]

    def test_bad_actions_are_refused(self, world: World):
        world.reset()
        good = actions_for(world, 1)[0]
        bad = [good[:-1], good[None]]
        if world.spec.num_actions:
            bad.append(good.float())
            for value in (-1, world.spec.num_actions):
                wrong = good.clone()
                wrong[1] = value
                bad.append(wrong)
        for actions in bad:
            with pytest.raises(ValueError, match="action"):
                world.step(actions)
        world.step(good)

    def test_close_twice(self):
        world = self.make()
        world.reset()
        world.close()
        world.close()
