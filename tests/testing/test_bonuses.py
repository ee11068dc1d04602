"""The conformance suite finds the faults that it is there for."""

import pytest
import torch

from episodic_curiosity.bonus import memory
from episodic_curiosity.bonus.episodic import EpisodicBonus, EpisodicConfig
from episodic_curiosity.bonus.icm import ICM, ICMConfig
from episodic_curiosity.bonus.oracle import GridOracle
from episodic_curiosity.bonus.summary import MemorySummary
from episodic_curiosity.testing.bonuses import BonusConformance
from episodic_curiosity.testing.calls import NUM_ENVS
from tests.bonus.test_episodic import random_r_network


class InPlace(GridOracle):
    def pay(self, now):
        now.seen.zero_()
        return super().pay(now)


class Double(GridOracle):
    def pay(self, now):
        return super().pay(now).double()


class PaysTheFirst(GridOracle):
    def pay_rows(self, now):
        return super().pay_rows(now) + 1.0 * now.opens


class Crowd(GridOracle):
    def pay(self, now):
        return super().pay(now) * now.stepped.sum()


class Dice(GridOracle):
    def pay(self, now):
        return super().pay(now) * torch.rand(self.num_envs)


class Moves(GridOracle):
    def pay(self, now):
        paid = super().pay(now)
        self.cells.count = self.cells.count.clone()
        return paid


class Waits(GridOracle):
    def pay(self, now):
        return super().pay(now) * float(now.stepped.sum() > 0)


class Masks(GridOracle):
    """Its memory takes in rows that are left out."""

    def pay(self, now):
        return self.cells.visit(now.seen, now.opens) * self.config.alpha


class Shared(GridOracle):
    def state_dict(self, **options):
        return torch.nn.Module.state_dict(self, **options)


class Forgetful(GridOracle):
    def load_state_dict(self, state, strict=True, assign=False):
        super().load_state_dict(state, strict, assign)
        self.cells.count.zero_()


class Tolerant(GridOracle):
    def _check(self, now):
        pass


class Uncounted(GridOracle):
    def statistics(self):
        return {"bonus_mean": 0.0, "bonus_spread": 0.0}


def check(test: str, bonus_class: type[GridOracle]) -> None:
    """Runs one test of the suite on a class of bonuses."""

    class Suite(BonusConformance):
        def make(self, num_envs: int = NUM_ENVS, device: str = "cpu") -> GridOracle:
            return bonus_class(num_envs, episode_steps=12, cell=1.0, device=device)

    getattr(Suite(), test)()


@pytest.mark.parametrize(
    ("fault", "test"),
    [
        (InPlace, "test_neither_what_was_paid_nor_what_was_seen_is_changed"),
        (Double, "test_what_is_paid"),
        (PaysTheFirst, "test_the_same_step_is_begin_and_bonus"),
        (Crowd, "test_alone_and_in_a_batch"),
        (Masks, "test_rows_that_are_left_out_leave_no_trace"),
        (Masks, "test_alone_and_in_a_batch"),
        (Dice, "test_equal_bonuses_pay_the_same_and_leave_the_global_generator_alone"),
        (Moves, "test_its_tensors_are_changed_in_place"),
        (Waits, "test_nothing_synchronises"),
        (Shared, "test_a_state_is_a_copy"),
        (Forgetful, "test_state_goes_on_to_the_bit"),
        (Tolerant, "test_bad_input_is_refused_in_one_sentence"),
        (Uncounted, "test_metrics"),
    ],
    ids=lambda value: value.__name__ if isinstance(value, type) else "",
)
def test_a_fault_is_found(fault: type[GridOracle], test: str):
    check(test, GridOracle)
    with pytest.raises((AssertionError, RuntimeError, pytest.fail.Exception)):
        check(test, fault)


class Stuck(MemorySummary):
    def clear(self, where):
        pass


class Blurred(MemorySummary):
    def update(self, familiarity, closeness, count, where):
        super().update(familiarity, closeness, count, torch.ones_like(where))


class Loud(MemorySummary):
    def update(self, *given):
        super().update(*given)
        self.values[:, 0] *= 1.5


@pytest.mark.parametrize("fault", [Stuck, Blurred, Loud])
def test_a_fault_of_the_summary_is_found(fault: type[MemorySummary], monkeypatch):
    class Suite(BonusConformance):
        def make(self, num_envs: int = NUM_ENVS, device: str = "cpu") -> EpisodicBonus:
            with torch.random.fork_rng():
                torch.manual_seed(2)
                r_network = random_r_network("dot").to(device)
            return EpisodicBonus(r_network, num_envs, EpisodicConfig(memory_capacity=6))

    Suite().test_a_summary_is_of_what_was_seen_and_bounded()
    monkeypatch.setattr(memory, "MemorySummary", fault)
    with pytest.raises(AssertionError):
        Suite().test_a_summary_is_of_what_was_seen_and_bounded()


def test_a_bonus_that_forgets_what_it_recorded_is_found():
    """ICM that begins anew with the order of its transitions."""

    class Careless(ICM):
        def load_state_dict(self, state, *options):
            loaded = super().load_state_dict(state, *options)
            self.adam.passes.zero_()
            return loaded

    class Suite(BonusConformance):
        def make(self, num_envs: int = NUM_ENVS, device: str = "cpu") -> ICM:
            return Careless(
                (3,),
                num_envs,
                num_actions=4,
                observation_dtype=torch.float32,
                config=ICMConfig(scale=0.02),
                device=device,
            )

    with pytest.raises(AssertionError):
        Suite().test_state_goes_on_to_the_bit()
