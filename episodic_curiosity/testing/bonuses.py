"""The conformance suite of bonuses: what every bonus must do, whatever it pays for.

Subclass `BonusConformance` with a name that begins with Test, and define `make`. The bonus is
shown random tensors of its `seen_shape`: bytes if they are frames, else floats. One test has
the marker `gpu`, to be named in pytest's settings. Shapes: N environments, T calls.
"""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import pytest
import torch
from torch import Tensor

from episodic_curiosity.bonus.base import Bonus
from episodic_curiosity.bonus.copies import LearningCopy, PaidSteps, PayingCopy

NUM_ENVS = 3
CALLS = 70
STOP = 40  # in mid-episode


class Call(NamedTuple):
    """One call of a training loop: episodes begin where `opens`, continue where `steps`."""

    seen: Tensor  # (N, ...)
    action: Tensor  # (N,) int64, or (N, ...) float32
    opens: Tensor  # (N,) bool
    steps: Tensor  # (N,) bool; neither: the row is left out


class BonusConformance:
    """The tests; a subclass says which bonus they are for."""

    num_actions = 4  # 0: actions are continuous, of `action_shape`
    action_shape: tuple[int, ...] = ()

    def make(self, num_envs: int = NUM_ENVS, device: str = "cpu") -> Bonus:
        """Makes the bonus; equal ones when called again."""
        raise NotImplementedError

    def alone(self, env: int) -> Bonus:  # noqa: ARG002
        """Makes a bonus of one environment that pays as number `env` of several would.

        To be overridden if random numbers depend on the environment's number.
        """
        return self.make(num_envs=1)

    def learn(self, bonus: Bonus, calls: list[Call]) -> dict[str, float]:  # noqa: ARG002
        """Lets it learn after these calls."""
        return bonus.learn() if bonus.learns else {}

    def calls(
        self, num_envs: int = NUM_ENVS, *, even: bool = False, seed: int = 0
    ) -> list[Call]:
        """Random calls; unless `even`, rows are left out, the first ones more often.

        Half of the rows that are left out hold NaN, if they are floats.
        """
        generator = torch.Generator().manual_seed(seed)
        shape = (num_envs, *(self.make(num_envs).seen_shape or (2,)))
        opened, calls = torch.zeros(num_envs, dtype=torch.bool), []
        pace = torch.linspace(0.3, 0.9, num_envs)
        for _ in range(CALLS):
            taken = (torch.rand(num_envs, generator=generator) < pace) | even
            opens = taken & ((torch.rand(num_envs, generator=generator) < 0.1) | ~opened)
            opened |= opens
            if len(shape) == 4:
                seen = torch.randint(256, shape, generator=generator, dtype=torch.uint8)
            else:
                seen = torch.randn(shape, generator=generator)
                seen[~taken & (torch.rand(num_envs, generator=generator) < 0.5)] = torch.nan
            calls.append(Call(seen, self._action(num_envs, generator), opens, taken & ~opens))
        return calls

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
        """Rows that advance at different speeds, beside each row without the others."""
        calls = self.calls()
        together = play(self.make(), calls)
        for env in range(NUM_ENVS):
            rows = [row(call, env) for call in calls]
            taken = torch.tensor([bool(call.opens | call.steps) for call in rows])
            apart = play(self.alone(env), [rows[time] for time in taken.nonzero()])
            torch.testing.assert_close(apart[:, 0], together[taken, env], atol=1e-5, rtol=1e-5)

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

    def test_the_same_step_is_begin_and_bonus(self) -> None:
        one, other, calls = self.make(), self.make(), self.calls(even=True)
        for call in calls:
            one.begin(call.seen, where=call.opens)
            expected = one.bonus(call.seen, action=call.action, where=call.steps)
            paid = other.bonus_same_step(call.seen, call.opens, action=call.action)
            assert torch.equal(paid, expected)
            assert (paid[call.opens] == 0).all()
        assert_equal(one.state_dict(), other.state_dict())

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
        """Used, moved, learns, saved and resumed, beside one that stays where it is."""
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

    def test_copies_pay_what_one_learns(self) -> None:
        """A copy for each environment and one that learns, beside a bonus that does both."""
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

    @pytest.mark.gpu
    def test_it_can_be_captured_in_a_cuda_graph(self) -> None:
        if not torch.cuda.is_available():
            pytest.skip("needs a GPU")
        eager, captured = self.make(device="cuda"), self.make(device="cuda")
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
        assert captured.metrics() == pytest.approx(eager.metrics())

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

    def _action(self, num_envs: int, generator: torch.Generator) -> Tensor:
        if self.num_actions:
            return torch.randint(self.num_actions, (num_envs,), generator=generator)
        return torch.rand((num_envs, *self.action_shape), generator=generator) * 2 - 1


def play(bonus: Bonus, calls: list[Call]) -> Tensor:
    """Shows the calls to a bonus; returns what it paid, (T, N)."""
    paid = []
    for call in calls:
        if call.opens.any():
            bonus.begin(call.seen, where=call.opens)
        paid.append(bonus.bonus(call.seen, action=call.action, where=call.steps))
    return torch.stack(paid)


def steps_of(calls: list[Call]) -> PaidSteps:
    """The calls as one tensor per field."""
    return PaidSteps(*(torch.stack(field) for field in zip(*calls, strict=True)))


def row(call: Call, env: int) -> Call:
    """The part of one environment, as a batch of one."""
    return Call(*(field[env : env + 1] for field in call))


def leaves(state: Any) -> Iterator[Any]:
    """The values of nested dictionaries."""
    if isinstance(state, Mapping):
        for value in state.values():
            yield from leaves(value)
    else:
        yield state


def assert_equal(one: Mapping[str, Any], other: Mapping[str, Any]) -> None:
    """Asserts that two nested states are equal to the bit."""
    assert one.keys() == other.keys()
    for name, value in one.items():
        if isinstance(value, Mapping):
            assert_equal(value, other[name])
        elif isinstance(value, Tensor):
            torch.testing.assert_close(value, other[name], atol=0, rtol=0, equal_nan=True)
        else:
            assert value == other[name], name
