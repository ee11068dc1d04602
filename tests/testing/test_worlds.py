"""The conformance suite finds the faults that it is there for."""

import inspect

import pytest
import torch

from episodic_curiosity.testing.worlds import NUM_ENVS, WorldConformance
from episodic_curiosity.worlds import registry
from tests.outside.corridor_worlds.family import FAMILY
from tests.outside.corridor_worlds.world import CorridorWorld

TESTS = [name for name in vars(WorldConformance) if name.startswith("test_")]


@pytest.fixture(autouse=True)
def _registered(monkeypatch):
    monkeypatch.setattr(registry, "_FAMILIES", registry._FAMILIES | {"corridor": FAMILY})


def check(test: str, world_class: type[CorridorWorld]) -> None:
    """Runs one test of the suite on worlds of a class."""

    class Suite(WorldConformance):
        def make(self, num_envs: int = NUM_ENVS, seed: int = 7) -> CorridorWorld:
            device = torch.device("cpu")
            return world_class(
                "end", num_envs=num_envs, seed=seed, device=device, split="train"
            )

    method, fixtures = getattr(Suite(), test), {"new": Suite().make, "world": Suite().make()}
    method(**{name: fixtures[name] for name in inspect.signature(method).parameters})


@pytest.mark.parametrize("test", TESTS)
def test_a_good_world_passes(test):
    if test == "test_snapshots_are_redrawn_exactly":
        with pytest.raises(pytest.skip.Exception, match="cannot redraw"):
            check(test, CorridorWorld)
    else:
        check(test, CorridorWorld)


class InPlace(CorridorWorld):
    def _draw(self):
        if not hasattr(self, "frames"):
            self.frames = super()._draw()
        return self.frames.copy_(super()._draw())


class Double(CorridorWorld):
    def step(self, actions):
        step = super().step(actions)
        return step._replace(reward=step.reward.double())


class WithoutFirst(CorridorWorld):
    def step(self, actions):
        step = super().step(actions)
        return step._replace(first=torch.zeros_like(step.first))


class WithoutFinal(CorridorWorld):
    def step(self, actions):
        return super().step(actions)._replace(final_observation=None)


class SmallFinal(CorridorWorld):
    def step(self, actions):
        step = super().step(actions)
        return step._replace(final_view=step.final_view[:, :1])


class Endless(CorridorWorld):
    def step(self, actions):
        self._clock -= 1
        return super().step(actions)


class Both(CorridorWorld):
    def step(self, actions):
        step = super().step(actions)
        return step._replace(truncated=step.first, terminated=step.first)


class Dice(CorridorWorld):
    def _begin(self, where):
        super()._begin(where)
        self._place = torch.where(where, torch.randint(0, 8, where.shape), self._place)


class Crowd(CorridorWorld):
    def _begin(self, where):
        super()._begin(where)
        self._place = (self._place + self.spec.num_envs) % 8


class Alike(CorridorWorld):
    def _begin(self, where):
        super()._begin(where)
        self._place = torch.where(where, 0, self._place)


class Forgetful(CorridorWorld):
    def load_state(self, state):
        super().load_state(state)
        self._clock = torch.zeros_like(self._clock)


class Deaf(CorridorWorld):
    def reset(self, seed=None):  # noqa: ARG002
        return super().reset()


class Tolerant(CorridorWorld):
    def step(self, actions):
        actions = actions.reshape(-1).long().clamp(0, 1)
        return super().step(torch.cat([actions, actions])[: self.spec.num_envs])


class Hasty(CorridorWorld):
    def step(self, actions):
        self._begun = True
        return super().step(actions)


class Boastful(CorridorWorld):
    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        object.__setattr__(self.spec, "can_redraw", True)


class Fragile(CorridorWorld):
    def close(self):
        assert self._begun
        self._begun = False


@pytest.mark.parametrize(
    ("fault", "test"),
    [
        (InPlace, "test_what_was_returned_is_not_changed_afterwards"),
        (Double, "test_steps_keep_their_shapes_and_open_an_episode_where_one_ends"),
        (WithoutFirst, "test_steps_keep_their_shapes_and_open_an_episode_where_one_ends"),
        (WithoutFinal, "test_steps_keep_their_shapes_and_open_an_episode_where_one_ends"),
        (SmallFinal, "test_steps_keep_their_shapes_and_open_an_episode_where_one_ends"),
        (Endless, "test_steps_keep_their_shapes_and_open_an_episode_where_one_ends"),
        (Both, "test_steps_keep_their_shapes_and_open_an_episode_where_one_ends"),
        (Dice, "test_same_seed_same_episodes"),
        (Crowd, "test_an_environment_does_not_depend_on_its_neighbours"),
        (Alike, "test_environments_differ"),
        (Alike, "test_other_seed_other_episodes"),
        (Forgetful, "test_state_continues_bit_for_bit"),
        (Deaf, "test_a_seed_begins_the_series_anew"),
        (Tolerant, "test_bad_actions_are_refused"),
        (Hasty, "test_a_step_before_the_first_reset_is_refused"),
        (Boastful, "test_spec_makes_sense"),
        (Fragile, "test_close_twice"),
    ],
    ids=lambda value: value.__name__ if isinstance(value, type) else "",
)
def test_a_fault_is_found(fault: type[CorridorWorld], test: str):
    with pytest.raises((AssertionError, pytest.fail.Exception)):
        check(test, fault)
