"""The conformance suite of a bonus's state: saved, moved, copied and shared among copies.

Shapes: N environments, T calls.
"""

import pytest
import torch
from torch import Tensor

from episodic_curiosity.bonus.copies import LearningCopy, PayingCopy
from episodic_curiosity.support.checks import first_difference
from episodic_curiosity.testing.calls import (
    NUM_ENVS,
    BonusUnderTest,
    assert_equal,
    leaves,
    play,
    row,
    steps_of,
)

STOP = 40  # in mid-episode


class StateConformance(BonusUnderTest):
    """The tests of the state, which `BonusConformance` has too."""

    def test_rows_that_are_left_out_leave_no_trace(self) -> None:
        bonus, calls = self.make(), self.calls()
        play(bonus, calls[:STOP])
        before = bonus.state_dict()
        nowhere = torch.zeros(NUM_ENVS, dtype=torch.bool)
        for call in calls[STOP:]:
            bonus.begin(call.seen, where=nowhere)
            paid = bonus.bonus(call.seen, action=call.action, where=nowhere)
            assert paid.tolist() == [0.0] * NUM_ENVS
        assert_equal(bonus.state_dict(), before)

    def test_state_goes_on_to_the_bit(self) -> None:
        one, other, calls = self.make(), self.make(), self.calls()
        play(other, self.calls(seed=1)[:9])  # another past, to be forgotten
        play(one, calls[: STOP - 5])
        self.learn(one, calls[: STOP - 5])
        play(one, calls[STOP - 5 : STOP])
        state = one.state_dict()
        for leaf in leaves(state):
            assert isinstance(leaf, Tensor | int | float | str | None)
        other.load_state_dict(state)
        assert torch.equal(play(one, calls[STOP:]), play(other, calls[STOP:]))
        assert self.learn(one, calls[STOP:]) == self.learn(other, calls[STOP:])
        assert one.metrics() == other.metrics()
        assert_equal(one.state_dict(), other.state_dict())

    def test_moved_it_goes_on_to_the_bit(self) -> None:
        """Used, moved, taught, saved and resumed, compared with one that stays in place."""
        one, other, resumed, calls = self.make(), self.make(), self.make(), self.calls()
        for bonus in (one, other):
            play(bonus, calls[: STOP - 5])
            if bonus is one:
                # As `to` another device does: new tensors, equal values.
                bonus._apply(torch.clone)  # type: ignore[no-untyped-call]
            self.learn(bonus, calls[: STOP - 5])
            play(bonus, calls[STOP - 5 : STOP])
        assert_equal(one.state_dict(), other.state_dict())
        resumed.load_state_dict(one.state_dict())
        for bonus in (one, other, resumed):
            bonus.paid.metrics()
            play(bonus, calls[STOP:])
            self.learn(bonus, calls[STOP:])
        assert_equal(one.state_dict(), other.state_dict())
        assert_equal(resumed.state_dict(), other.state_dict())

    def test_a_state_is_a_copy(self) -> None:
        bonus, calls = self.make(), self.calls()
        play(bonus, calls[:STOP])
        state, same = bonus.state_dict(), bonus.state_dict()
        play(bonus, calls[STOP:])
        self.learn(bonus, calls)
        for leaf, before in zip(leaves(state), leaves(same), strict=True):
            if isinstance(leaf, Tensor):
                leaf.zero_()
                assert leaf.numel() == 0 or leaf.data_ptr() != before.data_ptr()
        other = self.make()
        other.load_state_dict(same)
        assert torch.equal(play(other, calls[STOP:]), play(self.make(), calls)[STOP:])

    def test_a_state_that_does_not_fit_changes_nothing(self) -> None:
        bonus, calls = self.make(), self.calls()
        play(bonus, calls[:STOP])
        larger = self.make(NUM_ENVS + 1)
        play(larger, self.calls(NUM_ENVS + 1))
        before = bonus.state_dict()
        unknown = before | {"unknown": torch.zeros(1)}
        moved = {
            name: part + 1 if isinstance(part, Tensor) and part.is_floating_point() else part
            for name, part in before.items()
        }
        without = [
            {name: part for name, part in moved.items() if name != extra}
            for extra in before
            if extra.endswith("_extra_state")
        ]
        for state in ({}, larger.state_dict(), unknown, before | {"unknown": 1}, *without):
            with pytest.raises(ValueError, match=r"the bonus's state .*") as refused:
                bonus.load_state_dict(state)
            assert "\n" not in str(refused.value)
            assert_equal(bonus.state_dict(), before)
        with pytest.raises(ValueError, match="into its own tensors, got assign=True"):
            bonus.load_state_dict(before, assign=True)

    def test_its_sizes_are_known_before_memory_is_allocated(self) -> None:
        """A file is compared with a bonus on the meta device before it is read."""
        with torch.device("meta"):
            described = self.make(device="meta")
        held = [*described.parameters(), *described.buffers()]
        assert all(tensor.is_meta for tensor in held)
        bonus = self.make()
        names = tuple(name.partition(".")[0] for name in bonus.state_dict())
        wanted, found = bonus.tensors_of(names), described.tensors_of(names)
        assert first_difference(found, wanted, has_content=False) is None

    def test_its_tensors_are_changed_in_place(self) -> None:
        """So that a CUDA graph reads and writes the same ones."""
        bonus, calls = self.make(), self.calls()
        held = [*bonus.parameters(), *bonus.buffers()]
        places = [tensor.data_ptr() for tensor in held]
        state = bonus.state_dict()
        play(bonus, calls)
        self.learn(bonus, calls)
        bonus.load_state_dict(state)
        held = [*bonus.parameters(), *bonus.buffers()]
        assert [tensor.data_ptr() for tensor in held] == places

    def test_copies_pay_what_one_learns(self) -> None:
        """A copy for each environment and one that learns, compared with one bonus for all."""
        whole, calls = self.make(), self.calls()
        learning = LearningCopy(self.make())
        copies = [PayingCopy(self.alone(env)) for env in range(NUM_ENVS)]
        for copy in copies:
            copy.receive(learning.learnt())
        learning.news()
        for part in (calls[:STOP], calls[STOP:], self.calls(seed=1)):
            together = play(whole, part)
            apart = [
                play(copy.bonus, [row(call, env) for call in part])
                for env, copy in enumerate(copies)
            ]
            torch.testing.assert_close(torch.cat(apart, 1), together, atol=1e-4, rtol=1e-4)
            self.learn(whole, part)
            if copies[0].needs_steps:
                learning.record(steps_of(part))
            for copy in copies:
                learning.add_statistics(copy.take_statistics())
            self.learn(learning.bonus, part)
            news = learning.news()
            for copy in copies:
                copy.receive(news)
        for name, wanted in whole.tensors_of(whole.learnt).items():
            for learnt in (learning.bonus, *(copy.bonus for copy in copies)):
                if name.endswith("past.sums") and learnt is not learning.bonus:
                    continue
                found = learnt.tensors_of(whole.learnt)[name]
                torch.testing.assert_close(found, wanted, atol=1e-3, rtol=1e-3, equal_nan=True)
