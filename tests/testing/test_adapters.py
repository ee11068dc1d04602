"""The conformance suite of adapters finds the faults that it is there for."""

import inspect
from functools import partial

import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from episodic_curiosity.adapters.attached import AttachedBonus
from episodic_curiosity.adapters.gymnasium import CuriousVectorEnv
from episodic_curiosity.testing.adapters import NUM_ENVS, AdapterConformance
from episodic_curiosity.testing.clockwork import Clockwork
from tests.adapters.test_gymnasium import GymnasiumLoop

TESTS = [name for name in vars(AdapterConformance) if name.startswith("test_")]


class NeverBegins(AttachedBonus):
    """Opens the first episodes alone."""

    def begin(self, seen, *, where=None):
        if where is None:
            super().begin(seen)


class BeginsEverywhere(AttachedBonus):
    def begin(self, seen, *, where=None):  # noqa: ARG002
        super().begin(seen)


class ForgetsActions(AttachedBonus):
    def pay(self, seen, *, action=None, where=None):  # noqa: ARG002
        return super().pay(seen, where=where)


class ShiftsRows(AttachedBonus):
    def pay(self, seen, *, action=None, where=None):
        return super().pay(seen, action=action, where=where).roll(1)


class WithoutWeight(AttachedBonus):
    def pay(self, seen, *, action=None, where=None):
        return super().pay(seen, action=action, where=where) / self.weight


class PaysInEvaluation(AttachedBonus):
    def train(self, mode=True):  # noqa: ARG002
        return super().train(True)


class ForgetsInEvaluation(AttachedBonus):
    """Continues episodes of which it has missed a part."""

    def train(self, mode=True):
        begun = self.begun.clone()
        super().train(mode)
        self.begun.copy_(begun)
        return self


class SavesNoMask(AttachedBonus):
    def load_state_dict(self, state_dict, strict=True, assign=False):
        begun = self.begun.clone()
        loaded = super().load_state_dict(state_dict, strict, assign)
        self.begun.copy_(begun)
        return loaded


class NeverLearns(AttachedBonus):
    def learn(self):
        return {}


class MissesTheLastObservation(CuriousVectorEnv):
    def _before_reset(self, now, info, ended):  # noqa: ARG002
        return now


FAULTS = {
    NeverBegins: "test_every_observation_is_seen_once_and_in_order",
    BeginsEverywhere: "test_every_observation_is_seen_once_and_in_order",
    MissesTheLastObservation: "test_every_observation_is_seen_once_and_in_order",
    ForgetsActions: "test_actions_are_those_that_led_to_what_is_seen",
    ShiftsRows: "test_bonuses_are_those_of_a_plain_loop",
    WithoutWeight: "test_reward_and_bonus_are_added_and_told_apart",
    PaysInEvaluation: "test_nothing_is_paid_or_stored_in_evaluation",
    ForgetsInEvaluation: "test_after_evaluation_a_row_counts_from_its_next_episode_on",
    SavesNoMask: "test_a_saved_episode_continues",
    NeverLearns: "test_a_refit_clears_the_memories",
}


def check(test, wrapper, folder):
    """Runs one test of the suite with a wrapper."""

    def new(bonus, **options):
        envs = [partial(Clockwork, env) for env in range(NUM_ENVS)]
        envs = SyncVectorEnv(envs, autoreset_mode=AutoresetMode.SAME_STEP)
        return GymnasiumLoop(wrapper(envs, bonus, **options))

    method = getattr(AdapterConformance(), test)
    given = {"new": new, "tmp_path": folder, "weight": 0.25}
    method(**{name: given[name] for name in inspect.signature(method).parameters})


@pytest.mark.parametrize(("fault", "test"), FAULTS.items())
def test_a_fault_is_found(fault, test, tmp_path, monkeypatch):
    check(test, CuriousVectorEnv, tmp_path)
    wrapper = fault
    if issubclass(fault, AttachedBonus):
        wrapper = CuriousVectorEnv
        monkeypatch.setattr("episodic_curiosity.adapters.gymnasium.AttachedBonus", fault)
    with pytest.raises((AssertionError, IndexError, ValueError)):
        check(test, wrapper, tmp_path)


def test_each_test_has_a_fault_or_checks_messages():
    assert set(TESTS) - set(FAULTS.values()) == {
        "test_a_bonus_for_other_environments_is_refused"
    }
