"""The conformance suite of worlds: what every world must do, whatever it simulates.

Subclass `WorldConformance` with a name that begins with Test, and define `make`. Episodes
should be short, so that some end within STEPS. A world is tested for what its spec says it can
do. Its family must be registered.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from typing import cast

import pytest
import torch
from torch import Tensor

from episodic_curiosity.worlds.base import (
    FinishingWorld,
    RedrawableWorld,
    RestorableWorld,
    Step,
    TwoPartWorld,
    World,
)
from episodic_curiosity.worlds.registry import find_family

NUM_ENVS = 3
STEPS = 12
MakeWorld = Callable[..., World]  # with the options of WorldConformance.make


class WorldConformance:
    """The tests; a subclass says which world they are for."""

    deterministic = True  # the same seed plays the same episodes
    starts_differ = True  # between environments and between seeds

    def make(self, num_envs: int = NUM_ENVS, seed: int = 7) -> World:
        """Makes the world."""
        raise NotImplementedError

    @pytest.fixture
    def new(self) -> Iterator[MakeWorld]:
        """Makes worlds that are closed after the test."""
        with ExitStack() as opened:
            yield lambda **options: opened.enter_context(closing(self.make(**options)))

    @pytest.fixture
    def world(self, new: MakeWorld) -> World:
        return new()

    def test_spec_makes_sense(self, world: World) -> None:
        spec = world.spec
        assert spec.num_envs == NUM_ENVS
        assert (spec.num_actions > 0) != (len(spec.action_shape) > 0)
        assert not spec.action_names or len(spec.action_names) == spec.num_actions
        assert len(set(spec.action_names)) == len(spec.action_names)
        assert spec.episode_steps > 0
        assert spec.has_position == (spec.oracle_cell > 0)
        assert (spec.snapshot_bytes > 0) == spec.can_redraw == find_family(spec.task).can_redraw

    def test_reset_begins_an_episode_everywhere(self, world: World) -> None:
        step = world.reset()
        check_shapes(world, step)
        assert step.first.all()
        assert not step.terminated.any()
        assert not step.truncated.any()
        assert (step.reward == 0).all()
        again = world.reset()
        assert again.first.all()

    def test_steps_keep_their_shapes_and_open_an_episode_where_one_ends(
        self, world: World
    ) -> None:
        world.reset()
        clock = torch.zeros(NUM_ENVS, dtype=torch.int64)
        for step in play(world, actions_for(world, STEPS)):
            check_shapes(world, step)
            ended = step.terminated | step.truncated
            assert torch.equal(step.first, ended)
            assert not (step.terminated & step.truncated).any()
            assert torch.isfinite(step.reward).all()
            clock += 1
            assert (clock <= world.spec.episode_steps).all()
            assert ended.cpu()[clock == world.spec.episode_steps].all()
            clock[ended.cpu()] = 0
            if ended.any():
                assert step.final_observation is not None or step.final_snapshot is not None
                if world.spec.has_position:
                    assert step.final_position is not None

    def test_a_step_in_two_parts_is_the_same_step(self, new: MakeWorld) -> None:
        world = cast(TwoPartWorld, new())
        if not world.spec.steps_in_two:
            pytest.skip("this world takes steps in one")
        other = new()
        world.reset()
        other.reset()
        for actions in actions_for(world, STEPS):
            with pytest.raises(RuntimeError, match="begin_step"):
                world.end_step()
            world.begin_step(actions)
            with pytest.raises(RuntimeError, match="end_step"):
                world.begin_step(actions)
            step = world.end_step()
            check_shapes(world, step)
            if self.deterministic:
                assert_equal(step, other.step(actions))
        world.begin_step(actions)
        assert world.reset().first.all()
        world.step(actions)
        world.begin_step(actions)
        world.close()
        with pytest.raises(RuntimeError):
            world.begin_step(actions)

    def test_what_was_returned_is_not_changed_afterwards(self, world: World) -> None:
        first = world.reset()
        returned = [field for field in first if field is not None]
        kept = [field.clone() for field in returned]
        play(world, actions_for(world, 3))
        for before, after in zip(kept, returned, strict=True):
            assert torch.equal(before, after)

    def test_same_seed_same_episodes(self, new: MakeWorld) -> None:
        self._needs_determinism()
        worlds = [new(), new()]
        steps = [[w.reset(), *play(w, actions_for(w, STEPS))] for w in worlds]
        for a, b in zip(*steps, strict=True):
            assert_equal(a, b)

    def test_other_seed_other_episodes(self, new: MakeWorld) -> None:
        self._needs_different_starts()
        a, b = new(seed=7).reset(), new(seed=8).reset()
        assert not torch.equal(a.view, b.view)

    def test_a_seed_begins_the_series_anew(self, world: World, new: MakeWorld) -> None:
        self._needs_determinism()
        world.reset()
        play(world, actions_for(world, 3))
        expected = [world.reset(seed=3), world.reset()]
        fresh = new(seed=3)
        for a, b in zip(expected, [fresh.reset(), fresh.reset()], strict=True):
            assert_equal(a, b)

    def test_environments_differ(self, world: World) -> None:
        self._needs_different_starts()
        view = world.reset().view
        assert not torch.equal(view[0], view[1])

    def test_an_environment_does_not_depend_on_its_neighbours(self, new: MakeWorld) -> None:
        self._needs_determinism()
        crowd, alone = new(), new(num_envs=1)
        actions = actions_for(crowd, STEPS)
        together = [crowd.reset(), *play(crowd, actions)]
        single = [alone.reset(), *play(alone, actions[:, :1])]
        for a, b in zip(single, together, strict=True):
            assert_equal(a, b, slice(0, 1))

    def test_state_continues_bit_for_bit(self, world: World, new: MakeWorld) -> None:
        if not world.spec.can_restore:
            pytest.skip("this world cannot be restored")
        own, other = cast(RestorableWorld, world), cast(RestorableWorld, new(seed=99))
        own.reset()
        actions = actions_for(own, 2 * STEPS)
        play(own, actions[:5])
        state = own.state()
        expected = play(own, actions[5:])
        other.load_state(state)
        for a, b in zip(expected, play(other, actions[5:]), strict=True):
            assert_equal(a, b)
        state.pop(next(iter(state)))
        with pytest.raises(ValueError, match="state"):
            other.load_state(state)

    def test_a_finished_environment_rests_until_a_reset(self, world: World) -> None:
        if not world.spec.can_finish:
            pytest.skip("this world always begins another episode")
        own = cast(FinishingWorld, world)
        own.reset()
        rests = torch.zeros(NUM_ENVS, dtype=torch.bool, device=own.spec.device)
        final = ~rests
        final[1] = False
        own.finish(final)
        before = None
        for action in actions_for(own, 2 * own.spec.episode_steps + 1):
            step = own.step(action)
            check_shapes(own, step)
            assert torch.equal(step.first, step.terminated | step.truncated)
            assert not step.first[rests].any()
            assert (step.reward[rests] == 0).all()
            if before is not None and before.position is not None:
                assert step.position is not None
                assert torch.equal(step.position[rests], before.position[rests])
            before, rests = step, rests | (step.first & final)
        assert torch.equal(rests, final)
        assert own.reset().first.all()
        own.step(actions_for(own, 1)[0])

    def test_snapshots_are_redrawn_exactly(self, world: World) -> None:
        if not world.spec.can_redraw:
            pytest.skip("this world cannot redraw")
        own = cast(RedrawableWorld, world)
        steps, snapshots = [own.reset()], [own.snapshot()]
        for action in actions_for(own, STEPS):
            steps.append(own.step(action))
            snapshots.append(own.snapshot())
        rows = torch.cat(snapshots)
        assert rows.dtype == torch.uint8
        assert rows.shape[1] == own.spec.snapshot_bytes <= 256
        views = torch.cat([step.view for step in steps])
        observations = torch.cat([step.observation for step in steps])
        order = torch.randperm(len(rows), generator=torch.Generator().manual_seed(0))
        assert torch.equal(own.redraw(rows[order]), views[order])
        assert torch.equal(own.redraw(rows[4:5]), views[4:5])
        assert torch.equal(own.redraw_observation(rows[order]), observations[order])

    def test_a_step_before_the_first_reset_is_refused(self, world: World) -> None:
        with pytest.raises(RuntimeError, match="reset"):
            world.step(actions_for(world, 1)[0])

    def test_bad_actions_are_refused(self, world: World) -> None:
        world.reset()
        good = actions_for(world, 1)[0]
        bad = [good[:-1], good[None]]
        if world.spec.num_actions:
            bad.append(good.float())
        for value in (-1, world.spec.num_actions) if world.spec.num_actions else (torch.nan,):
            wrong = good.clone()
            wrong[1] = value
            bad.append(wrong)
        for actions in bad:
            with pytest.raises(ValueError, match="action"):
                world.step(actions)
        world.step(good)

    def test_close_twice(self) -> None:
        world = self.make()
        world.reset()
        world.close()
        world.close()

    def _needs_determinism(self) -> None:
        if not self.deterministic:
            pytest.skip("this world's simulator is not deterministic")

    def _needs_different_starts(self) -> None:
        if not self.starts_differ:
            pytest.skip("all episodes of this world start alike")


def actions_for(world: World, steps: int, seed: int = 0) -> Tensor:
    """Random actions, (T, N) or (T, N, *action_shape)."""
    generator = torch.Generator().manual_seed(seed)
    spec = world.spec
    shape = (steps, spec.num_envs, *spec.action_shape)
    if spec.num_actions:
        actions = torch.randint(spec.num_actions, shape, generator=generator)
    else:
        actions = torch.rand(shape, generator=generator) * 2 - 1
    return actions.to(spec.device)


def play(world: World, actions: Tensor) -> list[Step]:
    return [world.step(row) for row in actions]


def check_shapes(world: World, step: Step) -> None:
    """Asserts the shapes, dtypes and devices that the spec promises."""
    spec = world.spec
    count = spec.num_envs
    frames = {
        "observation": (spec.observation_shape, spec.observation_dtype),
        "view": (spec.view_shape, spec.view_dtype),
    }
    for name, (shape, dtype) in frames.items():
        for frame in (getattr(step, name), getattr(step, f"final_{name}")):
            assert frame is None or (frame.shape, frame.dtype) == ((count, *shape), dtype)
    assert (step.reward.shape, step.reward.dtype) == ((count,), torch.float32)
    for flag in (step.first, step.terminated, step.truncated):
        assert (flag.shape, flag.dtype) == ((count,), torch.bool)
    assert (step.position is not None) == spec.has_position
    for position in (step.position, step.final_position):
        if position is not None:
            assert (position.shape, position.dtype) == ((count, 3), torch.float32)
            assert torch.isfinite(position).all()
    for field in step:
        assert field is None or field.device.type == spec.device.type


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
