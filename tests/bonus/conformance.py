"""What every bonus must do, whatever it pays for.

Subclass `BonusConformance` and give `make(num_envs, device)`, which makes equal bonuses when
called again; where a bonus draws random numbers, `alone(env)` too. `world` says what it sees.
"""

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from episodic_curiosity.bonus.base import Bonus
from episodic_curiosity.bonus.statistics import BonusStatistics
from episodic_curiosity.worlds.base import Step, WorldSpec
from tests.bonus.steps import random_steps, rollout_of, spec

NUM_ENVS = 3
STEPS = 40

Steps = list[tuple[Step, Tensor | None]]


def moved(now: Step, device: str) -> Step:
    return Step(*(None if field is None else field.to(device) for field in now))


def row(now: Step, env: int) -> Step:
    """What one environment emits, as a batch of one."""
    return Step(*(None if field is None else field[env : env + 1] for field in now))


def leaves(state: Any) -> Iterator[Any]:
    if isinstance(state, dict):
        for value in state.values():
            yield from leaves(value)
    else:
        yield state


def tensors_held(bonus: Any) -> Iterator[Tensor]:
    """Every tensor a bonus keeps: those that a CUDA graph would go on reading and writing."""
    for part in vars(bonus).values():
        if isinstance(part, Tensor):
            yield part
        elif isinstance(part, nn.Module):
            yield from part.state_dict().values()
        elif isinstance(part, BonusStatistics):
            yield part.sums
        elif hasattr(part, "bonus"):
            yield from tensors_held(part)


class BonusConformance:
    """One class of tests for all bonuses."""

    remembers = True  # its state depends on the number of environments

    def world(self, num_envs: int = NUM_ENVS, device: str = "cpu") -> WorldSpec:
        return spec(num_envs, device=device)

    def make(self, num_envs: int = NUM_ENVS, device: str = "cpu") -> Bonus:
        raise NotImplementedError

    def alone(self, env: int) -> Bonus:  # noqa: ARG002
        """A bonus for one environment that pays as it would as number `env` of several."""
        return self.make(num_envs=1)

    def steps(self, num_envs: int = NUM_ENVS) -> Steps:
        return random_steps(self.world(num_envs), STEPS)

    def pay(self, bonus: Bonus, steps: Steps) -> Tensor:
        """The bonuses, (T, N)."""
        return torch.stack([bonus.bonus(now, action) for now, action in steps])

    def test_what_is_paid(self):
        steps = self.steps()
        paid = self.pay(self.make(), steps)
        first = torch.stack([now.first for now, _ in steps])
        assert paid.shape == (STEPS, NUM_ENVS)
        assert paid.dtype == torch.float32
        assert paid.device.type == "cpu"
        assert not paid.requires_grad
        assert paid.isfinite().all()
        assert (paid[first] == 0).all()
        assert (paid[~first] != 0).any()

    @pytest.mark.parametrize("num_envs", [1, 2, 5])
    def test_any_number_of_environments(self, num_envs: int):
        paid = self.pay(self.make(num_envs), self.steps(num_envs))
        assert paid.shape == (STEPS, num_envs)

    def test_alone_and_in_a_batch(self):
        steps = self.steps()
        together = self.pay(self.make(), steps)
        for env in range(NUM_ENVS):
            rows = [
                (row(now, env), None if action is None else action[env : env + 1])
                for now, action in steps
            ]
            apart = self.pay(self.alone(env), rows)
            torch.testing.assert_close(apart[:, 0], together[:, env], atol=1e-5, rtol=1e-5)

    def test_equal_bonuses_pay_the_same_and_leave_the_global_generator_alone(self):
        one, other, steps = self.make(), self.make(), self.steps()
        expected = self.pay(one, steps)
        generator = torch.get_rng_state()
        assert torch.equal(self.pay(other, steps), expected)
        assert torch.equal(torch.get_rng_state(), generator)

    def test_what_was_paid_is_not_changed_afterwards(self):
        bonus, steps = self.make(), self.steps()
        paid = [bonus.bonus(now, action) for now, action in steps]
        kept = self.pay(self.make(), steps)
        assert torch.equal(torch.stack(paid), kept)

    def test_state_goes_on_to_the_bit(self):
        one, other, steps = self.make(), self.make(), self.steps()
        before = self.pay(one, steps[:23])
        self.pay(other, steps[5:9])  # another past, to be forgotten
        one.learn(rollout_of(steps[:23], before[1:]))
        state = one.state_dict()
        for leaf in leaves(state):
            assert isinstance(leaf, Tensor | int | float | None)
        other.load_state_dict(state)
        expected, found = self.pay(one, steps[23:]), self.pay(other, steps[23:])
        assert torch.equal(expected, found)
        rollout = rollout_of(steps[23:], expected[1:])
        assert one.learn(rollout) == other.learn(rollout)
        assert one.metrics() == other.metrics()

    def test_a_state_is_a_copy(self):
        bonus, steps = self.make(), self.steps()
        state = bonus.state_dict()
        kept = [leaf.clone() for leaf in leaves(state) if isinstance(leaf, Tensor)]
        self.pay(bonus, steps)
        now = [leaf for leaf in leaves(state) if isinstance(leaf, Tensor)]
        for before, after in zip(kept, now, strict=True):
            torch.testing.assert_close(after, before, atol=0, rtol=0, equal_nan=True)

    def test_a_state_that_does_not_fit(self):
        bonus = self.make()
        with pytest.raises(ValueError, match=r"a state has .* got"):
            bonus.load_state_dict({})
        if self.remembers:
            with pytest.raises(ValueError, match=r"the state's .* wanted"):
                bonus.load_state_dict(self.make(NUM_ENVS + 1).state_dict())

    def test_metrics(self):
        bonus, steps = self.make(), self.steps()
        paid = self.pay(bonus, steps)[~torch.stack([now.first for now, _ in steps])].double()
        metrics = bonus.metrics()
        assert all(isinstance(value, float) for value in metrics.values())
        assert metrics["bonus_mean"] == pytest.approx(paid.mean().item(), abs=1e-6)
        spread = paid.std(correction=0).item()
        assert metrics["bonus_spread"] == pytest.approx(spread, abs=1e-6)
        again = bonus.metrics()  # counted since it was last asked
        assert (again["bonus_mean"], again["bonus_spread"]) == (0.0, 0.0)

    def test_learning_tells_numbers(self):
        bonus, steps = self.make(), self.steps()
        told = bonus.learn(rollout_of(steps, self.pay(bonus, steps)[1:]))
        assert all(isinstance(value, float) for value in told.values())

    def test_nothing_waits_for_the_device(self):
        """On the meta device there are no values: asking for one, as `.item()` does, raises."""
        bonus = self.make(device="meta")
        for now, action in self.steps()[:3]:
            action = None if action is None else action.to("meta")
            paid = bonus.bonus(moved(now, "meta"), action)
            assert paid.shape == (NUM_ENVS,)
            assert paid.device.type == "meta"

    def test_what_it_holds_is_changed_in_place(self):
        bonus, steps = self.make(), self.steps()
        before = [tensor.data_ptr() for tensor in tensors_held(bonus)]
        self.pay(bonus, steps)
        assert [tensor.data_ptr() for tensor in tensors_held(bonus)] == before

    @pytest.mark.gpu
    def test_it_can_be_captured_in_a_cuda_graph(self):
        eager, captured = self.make(device="cuda"), self.make(device="cuda")
        steps = [
            (moved(now, "cuda"), None if action is None else action.to("cuda"))
            for now, action in self.steps()
        ]
        start = captured.state_dict()
        now = moved(steps[1][0], "cuda")
        now = Step(*(None if field is None else field.clone() for field in now))
        action = steps[1][1]
        assert action is not None
        action = action.clone()
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            captured.bonus(now, action)
        side.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            paid = captured.bonus(now, action)
        captured.load_state_dict(start)
        for other in (eager, captured):
            other.bonus(*steps[0])
        for step, taken in steps[1:]:
            assert taken is not None
            for target, source in zip((*now, action), (*step, taken), strict=True):
                if target is not None and source is not None:
                    target.copy_(source)
            graph.replay()
            torch.testing.assert_close(paid, eager.bonus(step, taken))

    def test_bad_steps(self):
        bonus, (now, _) = self.make(), self.steps()[0]
        with pytest.raises(ValueError, match=r"must have shape \(3.*got \(2"):
            bonus.bonus(Step(*(None if field is None else field[:2] for field in now)))
        with pytest.raises(ValueError, match=r"must have shape \(3,\), got \(2,\)"):
            bonus.bonus(now._replace(first=now.first[:2]))
        with pytest.raises(TypeError, match=r"must be of dtype bool, got torch.int64"):
            bonus.bonus(now._replace(first=now.first.long()))
        with pytest.raises(ValueError, match="must be on cpu, got a tensor on meta"):
            bonus.bonus(moved(now, "meta"))
