"""The conformance suite of the summaries that agents see of a bonus's memory.

Shapes: N environments, T calls, S numbers.
"""

import pytest
import torch
from torch import Tensor

from episodic_curiosity.bonus.base import Bonus
from episodic_curiosity.testing.calls import CALLS, NUM_ENVS, BonusUnderTest, Call, play, row

STOP = 40  # in mid-episode


class SummaryConformance(BonusUnderTest):
    """The tests of the summary, which `BonusConformance` has too."""

    def test_a_summary_is_kept_on_request_or_refused(self) -> None:
        bonus = self.make()
        assert bonus.summary is None
        if bonus.summary_size:
            bonus.keep_summary()
            bonus.keep_summary()  # again changes nothing
            assert bonus.summary is not None
            assert bonus.summary.shape == (NUM_ENVS, bonus.summary_size)
        else:
            with pytest.raises(ValueError, match="has no memory that an agent could see"):
                bonus.keep_summary()

    def test_a_summary_is_of_what_was_seen_and_bounded(self) -> None:
        bonus, calls = self._summarised(), self.calls()
        held = bonus.summary
        before = torch.zeros(NUM_ENVS, bonus.summary_size)
        for call, now in zip(calls, summaries(bonus, calls), strict=True):
            assert now.dtype == torch.float32
            assert (now >= 0).all()
            assert (now <= 1).all()
            assert (now[call.opens] == 0).all()  # the memory is empty
            left_out = ~(call.opens | call.steps)
            assert torch.equal(now[left_out], before[left_out])
            before = now
        assert bonus.summary is not None
        assert held is bonus.summary
        assert before.any()

    def test_what_is_paid_is_the_same_with_a_summary(self) -> None:
        calls = self.calls()
        paid = play(self._summarised(), calls)
        torch.testing.assert_close(paid, play(self.make(), calls), atol=1e-6, rtol=1e-5)

    def test_a_summary_alone_and_in_a_batch(self) -> None:
        calls = self.calls()
        together = summaries(self._summarised(), calls)
        for env in range(NUM_ENVS):
            alone = self.alone(env)
            alone.keep_summary()
            apart = summaries(alone, [row(call, env) for call in calls])
            # Which slot is the most similar may be a matter of rounding: without ages.
            torch.testing.assert_close(
                apart[:, 0, :6], together[:, env, :6], atol=1e-4, rtol=1e-4
            )

    def test_a_summary_goes_on_to_the_bit(self) -> None:
        one, other, calls = self._summarised(), self._summarised(), self.calls()
        play(one, calls[: STOP - 5])
        self.learn(one, calls[: STOP - 5])
        play(one, calls[STOP - 5 : STOP])
        other.load_state_dict(one.state_dict())
        assert torch.equal(summaries(one, calls[STOP:]), summaries(other, calls[STOP:]))

    def test_a_summary_is_defined_after_learning(self) -> None:
        """Which may have cleared the memory."""
        bonus, calls = self._summarised(), self.calls()
        play(bonus, calls)
        self.learn(bonus, calls)
        assert bonus.summary is not None
        assert ((bonus.summary >= 0) & (bonus.summary <= 1)).all()
        assert len(summaries(bonus, self.calls(seed=1))) == CALLS

    def test_a_summary_never_synchronises(self) -> None:
        """On the meta device there are no values: asking for one, as `.item()` does, raises."""
        bonus = self._summarised().to("meta")
        for call in self.calls()[:3]:
            seen, action, opens, steps = (field.to("meta") for field in call)
            bonus.begin(seen, where=opens)
            bonus.bonus(seen, action=action, where=steps)
        assert bonus.summary is not None
        assert bonus.summary.device.type == "meta"

    def _summarised(self) -> Bonus:
        bonus = self.make()
        if not bonus.summary_size:
            pytest.skip("has no memory that an agent could see")
        bonus.keep_summary()
        return bonus


def summaries(bonus: Bonus, calls: list[Call]) -> Tensor:
    """The summaries (T, N, S) after each of the calls."""
    found = []
    for call in calls:
        play(bonus, [call])
        assert bonus.summary is not None
        found.append(bonus.summary.clone())
    return torch.stack(found)
