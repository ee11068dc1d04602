"""The conformance suite of bonuses: what every bonus must do, whatever it pays for.

Subclass `BonusConformance` with a name that begins with Test, and define `make`. The bonus is
shown random tensors of its `seen_shape`: bytes if they are frames, else floats. One test has
the marker `gpu`, to be named in pytest's settings. Shapes: N environments, T calls.
"""

from typing import Any

import pytest
import torch
from torch import Tensor

from episodic_curiosity.testing.bonus_states import STOP, StateConformance
from episodic_curiosity.testing.calls import CALLS, NUM_ENVS, Call, assert_equal, play, row
from episodic_curiosity.testing.summaries import SummaryConformance


class BonusConformance(StateConformance, SummaryConformance):
    """The tests; a subclass says which bonus they are for."""

    def test_what_is_paid(self) -> None:
        calls = self.calls()
        paid = play(self.make(), calls)
        steps = torch.stack([call.steps for call in calls])
        assert paid.shape == (CALLS, NUM_ENVS)
        assert paid.dtype == torch.float32
        assert paid.device.type == "cpu"
        assert not paid.requires_grad
        assert paid.isfinite().all()
        assert (paid[~steps] == 0).all()
        assert (paid[steps] != 0).any()

    @pytest.mark.parametrize("num_envs", [1, 2, 5])
    def test_any_number_of_environments(self, num_envs: int) -> None:
        paid = play(self.make(num_envs), self.calls(num_envs))
        assert paid.shape == (CALLS, num_envs)

    def test_alone_and_in_a_batch(self) -> None:
        """Rows that advance at different speeds, compared with each row alone."""
        calls = self.calls()
        together = play(self.make(), calls)
        for env in range(NUM_ENVS):
            rows = [row(call, env) for call in calls]
            taken = torch.tensor([bool(call.opens | call.steps) for call in rows])
            apart = play(self.alone(env), [rows[time] for time in taken.nonzero()])
            torch.testing.assert_close(apart[:, 0], together[taken, env], atol=1e-5, rtol=1e-5)

    def test_the_same_step_is_begin_and_bonus(self) -> None:
        one, other, calls = self.make(), self.make(), self.calls(even=True)
        for call in calls:
            one.begin(call.seen, where=call.opens)
            expected = one.bonus(call.seen, action=call.action, where=call.steps)
            paid = other.bonus_same_step(call.seen, call.opens, action=call.action)
            assert torch.equal(paid, expected)
            assert (paid[call.opens] == 0).all()
        # Sums of what is paid may be added up in another order.
        assert_equal(one.state_dict(), other.state_dict(), rtol=1e-14)

    def test_without_a_mask_all_rows_take_part(self) -> None:
        one, other, (first, second, *_) = self.make(), self.make(), self.calls(even=True)
        everywhere = torch.ones(NUM_ENVS, dtype=torch.bool)
        one.begin(first.seen)
        other.begin(first.seen, where=everywhere)
        expected = one.bonus(second.seen, action=second.action)
        paid = other.bonus(second.seen, action=second.action, where=everywhere)
        assert torch.equal(paid, expected)

    def test_arrays_are_copied(self) -> None:
        one, other = self.make(), self.make()
        for call in self.calls(even=True)[:5]:
            seen, action, opens, _ = (field.numpy() for field in call)
            expected = one.bonus_same_step(call.seen, call.opens, action=call.action)
            assert torch.equal(other.bonus_same_step(seen, opens, action=action), expected)

    def test_a_row_that_never_began_begins_unpaid_and_is_warned_of_once(self) -> None:
        """Except that a warning follows, it is as if `begin` had been called."""
        one, other, calls = self.make(), self.make(), self.calls(even=True)[:9]
        where = torch.tensor([False, True, False])
        one.begin(calls[0].seen, where=~where)
        other.begin(calls[0].seen)
        paid = one.bonus(calls[0].seen, action=calls[0].action, where=where)
        assert paid.tolist() == [0.0] * NUM_ENVS
        assert torch.equal(play(one, calls[1:]), play(other, calls[1:]))
        with pytest.warns(RuntimeWarning, match=r"rows where begin\(\) never was: call begin"):
            one.metrics()
        one.metrics()
        other.metrics()

    def test_equal_bonuses_pay_the_same_and_leave_the_global_generator_alone(self) -> None:
        one, other, calls = self.make(), self.make(), self.calls()
        expected = play(one, calls)
        generator = torch.get_rng_state()
        assert torch.equal(play(other, calls), expected)
        self.learn(other, calls)
        assert torch.equal(torch.get_rng_state(), generator)

    def test_neither_what_was_paid_nor_what_was_seen_is_changed(self) -> None:
        bonus, calls, kept = self.make(), self.calls(even=True), self.calls(even=True)
        before = [call.seen.clone() for call in calls]
        paid = [
            bonus.bonus_same_step(call.seen, call.opens, action=call.action) for call in calls
        ]
        assert torch.equal(torch.stack(paid), play(self.make(), kept))
        for call, seen in zip(calls, before, strict=True):
            assert torch.equal(call.seen, seen)

    def test_metrics(self) -> None:
        bonus, calls = self.make(), self.calls()[:STOP]
        steps = torch.stack([call.steps for call in calls])
        paid = play(bonus, calls)[steps].double()
        metrics = bonus.metrics()
        assert all(isinstance(value, float) for value in metrics.values())
        assert metrics["bonus_mean"] == pytest.approx(paid.mean().item(), abs=1e-6)
        spread = paid.std(correction=0).item()
        assert metrics["bonus_spread"] == pytest.approx(spread, abs=1e-6)
        again = bonus.metrics()  # since the last call
        assert (again["bonus_mean"], again["bonus_spread"]) == (0.0, 0.0)

    def test_learning_tells_numbers_and_can_be_repeated(self) -> None:
        bonus, calls = self.make(), self.calls()
        for part in (calls[:STOP], calls[STOP:]):
            play(bonus, part)
            told = self.learn(bonus, part)
            assert all(isinstance(value, float) for value in told.values())

    def test_it_stays_in_evaluation_mode(self) -> None:
        bonus = self.make()
        assert not any(module.training for module in bonus.train().modules())

    def test_nothing_synchronises(self) -> None:
        """On the meta device there are no values: asking for one, as `.item()` does, raises."""
        bonus = self.make().to("meta")
        for call in self.calls()[:3]:
            seen, action, opens, steps = (field.to("meta") for field in call)
            bonus.begin(seen, where=opens)
            for paid in (
                bonus.bonus(seen, action=action, where=steps),
                bonus.bonus_same_step(seen, opens, action=action),
            ):
                assert paid.shape == (NUM_ENVS,)
                assert paid.device.type == "meta"

    def test_a_missing_action_is_refused_on_any_device(self) -> None:
        call = self.calls(even=True)[0]
        for device in ("cpu", "meta"):
            bonus = self.make().to(device)
            if not bonus.needs_action:
                continue
            seen, no = call.seen.to(device), torch.zeros_like(call.opens, device=device)
            bonus.begin(seen)
            with pytest.raises(ValueError, match="needs the action that led to each step"):
                bonus.bonus(seen)
            with pytest.raises(ValueError, match="needs the action that led to each step"):
                bonus.bonus_same_step(seen, no)

    @pytest.mark.gpu
    def test_it_can_be_captured_in_a_cuda_graph(self) -> None:
        if not torch.cuda.is_available():
            pytest.skip("needs a GPU")
        eager, captured = self.make(device="cuda"), self.make(device="cuda")
        if eager.summary_size:
            eager.keep_summary()
            captured.keep_summary()
        calls = [Call(*(field.to("cuda") for field in call)) for call in self.calls()]
        now, start = Call(*(field.clone() for field in calls[0])), captured.state_dict()

        def take_in() -> Tensor:
            captured.begin(now.seen, where=now.opens)
            return captured.bonus(now.seen, action=now.action, where=now.steps)

        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            take_in()
        side.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            paid = take_in()
        captured.load_state_dict(start)
        for call in calls:
            for target, source in zip(now, call, strict=True):
                target.copy_(source)
            graph.replay()
            torch.testing.assert_close(paid, play(eager, [call])[0])
            torch.testing.assert_close(captured.summary, eager.summary)
        # `metrics` would warn of refits that never came.
        assert captured.statistics() == pytest.approx(eager.statistics())

    def test_bad_input_is_refused_in_one_sentence(self) -> None:
        bonus, call = self.make(), self.calls(even=True)[0]
        seen, yes = call.seen, call.opens
        bonus.begin(seen)
        wrong: list[tuple[Any, Any, type[Exception], str]] = [
            (seen[:2], yes, ValueError, r"must have shape \(3.*, got \(2"),
            (seen.to("meta"), yes, ValueError, "must be on cpu, got a tensor on meta"),
            ("frame", yes, TypeError, "must be a tensor or an array, got str"),
            (seen, yes[:2], ValueError, r"must have shape \(3,\), got \(2,\)"),
            (seen, yes[:, None], ValueError, r"must have shape \(3,\), got \(3, 1\)"),
            (seen, yes.long(), TypeError, r"must be of dtype bool, got torch\.int64"),
            (seen, yes.to("meta"), ValueError, "must be on cpu, got a tensor on meta"),
            (seen, [True] * 3, TypeError, "must be a tensor or an array, got list"),
        ]
        if bonus.seen_shape is not None:
            wrong.append((seen[..., None], yes, ValueError, "must have shape"))
            if seen.is_floating_point():
                seen = seen.clone()
                seen[1] = torch.nan
                wrong.append((seen, yes, ValueError, "must be finite, got NaN .* in row 1"))
        before = bonus.state_dict()
        for given, mask, error, words in wrong:
            for refused in (
                lambda given=given, mask=mask: bonus.begin(given, where=mask),
                lambda given=given, mask=mask: bonus.bonus(
                    given, action=call.action, where=mask
                ),
                lambda given=given, mask=mask: bonus.bonus_same_step(
                    given, mask, action=call.action
                ),
            ):
                with pytest.raises(error, match=words) as told:
                    refused()
                assert "\n" not in str(told.value)
        assert_equal(bonus.state_dict(), before)
