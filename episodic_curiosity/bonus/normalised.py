"""Normalises a bonus by the spread of its return, so that one scale suits every task.

Not in the paper.

Burda et al. 2019 (RND), section 2.4. Shapes: N environments.
"""

from collections.abc import Mapping
from typing import Any, Self

from torch import Tensor

from episodic_curiosity.bonus.auxiliary import Auxiliary
from episodic_curiosity.bonus.base import Bonus, BonusContext, Sight
from episodic_curiosity.bonus.deviation import ReturnDeviation
from episodic_curiosity.support.checks import first_difference
from episodic_curiosity.support.state import within
from episodic_curiosity.worlds.base import Rollout, WorldSpec

INNER = "inner."  # of the names of its tensors


class NormalisedBonus(Bonus):
    """Divides a bonus by the running standard deviation of its discounted sum.

    The sum continues across episodes and counts from an environment's first non-zero bonus,
    so that the zeros before the first fit have no weight. The divisor is 1 at first and is
    updated only in `learn`, so that it is constant within a rollout.

    Args:
        inner: the bonus; call this one in its place.
        gamma: discount of the sum.
    """

    def __init__(self, inner: Bonus, *, gamma: float = 0.99) -> None:
        super().__init__(inner.num_envs, inner.seen_shape, inner.device)
        self.inner = inner
        self.deviation = ReturnDeviation(inner.num_envs, gamma, inner.device)
        self.sees, self.needs_views = inner.sees, inner.needs_views  # type: ignore[misc]
        self.needs_action = inner.needs_action
        self.summary_size = inner.summary_size  # type: ignore[misc]
        self.advice, self.config = inner.advice, inner.config  # type: ignore[misc]
        inner_learnt = (f"{INNER}{name}" for name in inner.learnt)
        self.learnt = (*inner_learnt, "deviation.divisor")  # type: ignore[misc]

    @property
    def divisor(self) -> Tensor:
        """() float32, what the bonus is divided by."""
        return self.deviation.divisor

    @classmethod
    def for_run(cls, config: Any, spec: WorldSpec, context: BonusContext) -> Self:
        raise NotImplementedError("a NormalisedBonus is made of another bonus")

    def pay(self, now: Sight) -> Tensor:
        """Returns the inner bonus (N,) over the divisor."""
        bonus = self.inner.pay_rows(now)
        self.deviation.add(bonus, where=now.rows)
        return bonus / self.divisor

    def record(self, now: Sight) -> None:
        self.inner.record(now)

    def keep_summary(self) -> None:
        self.inner.keep_summary()

    @property
    def summary(self) -> Tensor | None:
        return self.inner.summary

    @property
    def learns_from_steps(self) -> bool:
        return self.inner.learns_from_steps

    def learn(self, rollout: Rollout | None = None) -> dict[str, float]:
        """Updates the divisor and calls the inner bonus's `learn`."""
        self.raise_if_not_finite()
        self.deviation.update()
        return self.inner.learn(rollout) if self.inner.learns else {}

    def load_learnt(self, state: Mapping[str, Any], names: tuple[str, ...]) -> None:
        """As that of Bonus; the inner bonus loads its own."""
        own = tuple(name for name in names if not name.startswith(INNER))
        if difference := first_difference(within(state, own), self.tensors_of(own)):
            raise ValueError(f"the bonus's state {difference}")  # before the inner one changes
        inner = tuple(name.removeprefix(INNER) for name in names if name not in own)
        parts = {
            name.removeprefix(INNER): part
            for name, part in state.items()
            if name.startswith(INNER)
        }
        self.inner.load_learnt(parts, inner)
        super().load_learnt(state, own)

    def auxiliary(self) -> Auxiliary | None:
        return self.inner.auxiliary()

    def troubles(self) -> dict[str, str]:
        return super().troubles() | self.inner.troubles()

    def statistics(self) -> dict[str, float]:
        """Metrics of the inner bonus, undivided, and the divisor; synchronises with the GPU."""
        return {**self.inner.statistics(), "bonus_divisor": self.divisor.item()}
