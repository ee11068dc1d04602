"""The calls of a training loop that the conformance suite shows to a bonus.

Shapes: N environments, T calls.
"""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor

from episodic_curiosity.bonus.base import Bonus
from episodic_curiosity.bonus.copies import PaidSteps

NUM_ENVS = 3
CALLS = 70


class Call(NamedTuple):
    """One call of a training loop: episodes begin where `opens`, continue where `steps`."""

    seen: Tensor  # (N, ...)
    action: Tensor  # (N,) int64, or (N, ...) float32
    opens: Tensor  # (N,) bool
    steps: Tensor  # (N,) bool; neither: the row is left out


class BonusUnderTest:
    """A bonus and random calls for it; a subclass says which bonus."""

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


def assert_equal(
    one: Mapping[str, Any], other: Mapping[str, Any], *, rtol: float = 0.0
) -> None:
    """Asserts that two nested states are equal, to the bit unless told otherwise."""
    assert one.keys() == other.keys()
    for name, value in one.items():
        if isinstance(value, Mapping):
            assert_equal(value, other[name], rtol=rtol)
        elif isinstance(value, Tensor):
            torch.testing.assert_close(value, other[name], atol=0, rtol=rtol, equal_nan=True)
        else:
            assert value == other[name], name
