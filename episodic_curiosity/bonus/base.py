"""The base of all bonuses: the calls of a training loop and their checks, written once.

Shapes: N environments.
"""

import warnings
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple, Self

import torch
from numpy.typing import NDArray
from torch import Tensor

from episodic_curiosity.bonus.auxiliary import Auxiliary
from episodic_curiosity.bonus.diagnosis import Advice, Diagnosed, Diagnosis
from episodic_curiosity.bonus.memory import EpisodicMemory
from episodic_curiosity.bonus.resumable import Resumable
from episodic_curiosity.bonus.statistics import BonusStatistics
from episodic_curiosity.reachability.network import RNetwork
from episodic_curiosity.reachability.online import OnlineFitting
from episodic_curiosity.support.checks import (
    check_at_least,
    check_mask,
    check_shape,
    check_tensor,
    check_views,
    range_of,
    to_tensor,
    unfit,
)
from episodic_curiosity.support.compiling import fused
from episodic_curiosity.support.machine import check_memory
from episodic_curiosity.worlds.base import Rollout, Step, WorldSpec

Given = Tensor | NDArray[Any]  # a tensor on the bonus's device, or an array, which is copied


@dataclass(frozen=True, kw_only=True)
class BonusConfig:
    """The options of a bonus; a subclass adds fields of plain values with defaults."""


@dataclass(frozen=True, kw_only=True)
class BonusContext:
    """Parts of a run for its bonus, in addition to the config and the world's spec."""

    seed: int  # of its random numbers
    num_steps: int | None = None  # of a rollout, between two calls of `learn`
    r_network: RNetwork | None = None  # if the method has one
    fitting: OnlineFitting | None = None  # refits it during the run


class Sight(NamedTuple):
    """One call for N environments; rows that neither open nor step must leave no trace."""

    seen: Tensor  # (N, ...), anything in the other rows, also NaN
    opens: Tensor  # (N,) bool, an episode begins with it
    stepped: Tensor  # (N,) bool, an action led to it
    action: Tensor | None  # (N,) int64, or (N, ...) float32

    @property
    def rows(self) -> Tensor:
        """(N,) bool, the rows that count."""
        return self.opens | self.stepped


class Bonus(Resumable, ABC):
    """Pays N environments for what they see, and may learn from it.

    A subclass registers its tensors as buffers and modules, changes them in place, and
    implements `pay` without synchronising with the GPU, so that a CUDA graph can capture it.
    """

    sees: ClassVar[Literal["view", "observation", "position"]] = "view"  # a field of Step
    learnt: ClassVar[tuple[str, ...]] = ()  # modules and buffers that a trained run hands on
    advice: ClassVar[Advice] = Advice()  # for warnings when curiosity cannot work
    pays: ClassVar[bool] = True  # False: there is nothing to show
    summary_size: ClassVar[int] = 0  # S, of `summary`; 0: it has no memory to summarise
    learns = True  # False: `learn` of a custom loop would have nothing to do
    needs_action = False  # `bonus` and `bonus_same_step` need the actions
    needs_views = False  # `learn` needs `snapshot` or `view` in the trainer's rollouts
    config: Any = None

    opened: Tensor  # (N,) bool, an episode has begun here, ever
    _everywhere: Tensor  # (N,) bool, all true
    _nowhere: Tensor  # (N,) bool, all false
    _without_begin: Tensor  # (N,) bool, stepped before `begin`
    _not_finite: Tensor  # () bool, a row had NaN or was out of range

    def __init__(
        self, num_envs: int, seen_shape: tuple[int, ...] | None, device: torch.device | str
    ) -> None:
        """Creates the tensors that every bonus has.

        Args:
            num_envs: N, the number of environments.
            seen_shape: of what one environment sees; None: it does not matter.
            device: of all tensors.
        """
        super().__init__()
        check_at_least("num_envs", num_envs, 1)
        what = f"a bonus of {num_envs} environments"
        check_memory(what, 8 * num_envs, torch.device(device), "lower `num_envs`")
        self.num_envs = num_envs
        self.seen_shape = (
            None if seen_shape is None else check_shape("observation_shape", seen_shape)
        )
        self.paid = BonusStatistics(torch.device(device))
        true = torch.ones(num_envs, dtype=torch.bool, device=device)
        self.register_buffer("opened", ~true)
        for name, mask in (("everywhere", true), ("nowhere", ~true), ("without_begin", ~true)):
            self.register_buffer(f"_{name}", mask, persistent=False)
        self.register_buffer("_not_finite", torch.tensor(False, device=device), False)
        self._diagnosis: Diagnosis | None = None
        self._warned: set[str] = set()

    @classmethod
    @abstractmethod
    def for_run(cls, config: Any, spec: WorldSpec, context: BonusContext) -> Self:
        """Creates the bonus of a run."""

    @abstractmethod
    def pay(self, now: Sight) -> Tensor:
        """Returns the bonus (N,) of what is seen; it counts in the rows `now.stepped`."""

    def begin(self, seen: Given, *, where: Given | None = None) -> None:
        """Begins an episode with `seen`, (N, ...), in the rows of the (N,) mask `where`.

        Nothing is paid, because no action led to it. Without a mask, all rows begin.
        """
        self._pay(seen, self._mask("where", where), self._nowhere, None)

    def bonus(
        self, seen: Given, *, action: Given | None = None, where: Given | None = None
    ) -> Tensor:
        """Returns the bonus (N,) of `seen`, (N, ...), after a step; 0 outside `where`.

        The last observation of an episode is paid too. A row without an earlier `begin` begins
        here: it is paid 0, and `metrics` warns.
        """
        self._check_given(action)
        return self._pay(seen, self._nowhere, self._mask("where", where), action)

    def bonus_same_step(
        self, seen: Given, first: Given, *, action: Given | None = None
    ) -> Tensor:
        """Begins episodes where the (N,) mask `first` is true and pays the other rows.

        This is the authors' convention, in one call: where an episode has ended, `seen` is
        already of the next one, and the last observation is neither paid nor remembered.
        """
        self._check_given(action)
        if first is None:
            raise TypeError("first must be a tensor or an array, got None")
        first = self._mask("first", first)
        return self._pay(seen, first, ~first, action)

    def record(self, now: Sight) -> None:  # noqa: ARG002
        """Keeps what `learn` needs of a step that a copy in another process has paid.

        `pay` does so itself. `copies.py` explains how copies pay and one of them learns.
        """
        if self.learns_from_steps:
            raise NotImplementedError(
                f"{type(self).__name__} must define record, to learn from what its copies saw"
            )

    @property
    def learns_from_steps(self) -> bool:
        """True if `learn` needs what `record` keeps."""
        return self.learns and type(self).learn is not Bonus.learn

    def learn(self, rollout: Rollout | None = None) -> dict[str, float]:  # noqa: ARG002
        """Learns from what was seen and returns training metrics; may synchronise.

        Our own trainer passes its rollout, for bonuses that keep snapshots instead of views.
        """
        return {}

    def keep_summary(self) -> None:
        """From now on keeps a summary of its memory, for an agent that sees it.

        It is part of the state, so call this before loading one, and before the first `begin`.
        """
        memory = self._modules.get("memory")
        if not (self.summary_size and isinstance(memory, EpisodicMemory)):
            raise ValueError(f"{type(self).__name__} has no memory that an agent could see")
        memory.keep_summary()

    @property
    def summary(self) -> Tensor | None:
        """(N, S) of what was last seen, in [0, 1], zeros where an episode begins.

        Always the same tensor, which the next call overwrites; None without `keep_summary`.
        """
        memory = self._modules.get("memory")
        if not isinstance(memory, EpisodicMemory) or memory.summary is None:
            return None
        return memory.summary.values

    def auxiliary(self) -> Auxiliary | None:
        """Returns the part that learns with PPO's optimiser, if there is one."""
        return None

    def metrics(self) -> dict[str, float]:
        """Returns metrics for a logger, since the last call, and warns once of any trouble."""
        self.raise_if_not_finite()
        metrics = self.statistics()
        if self._diagnosis is None:
            self._diagnosis = Diagnosis(Diagnosed(advice=self.advice, config=self.config))
        found = self.troubles()
        new = [found[kind] for kind in found if kind not in self._warned]
        self._warned |= found.keys()
        for trouble in new + self._diagnosis.look(metrics):
            warnings.warn(trouble, RuntimeWarning, stacklevel=2)
        return metrics

    def troubles(self) -> dict[str, str]:
        """Returns troubles that metrics do not show, by kind; `metrics` warns once of each."""
        if not self._without_begin.any():
            return {}
        return {
            "begin": "bonus() was called in rows where begin() never was: call begin() where "
            "episodes begin"
        }

    def statistics(self) -> dict[str, float]:
        """Returns metrics since the last call, without warnings; synchronises with the GPU."""
        return self.paid.metrics()

    def train(self, mode: bool = True) -> Self:  # noqa: ARG002
        """Stays in evaluation mode: networks are in training mode only inside `learn`."""
        return super().train(False)

    def pay_rows(self, now: Sight) -> Tensor:
        """As `pay`, with zeros where no step was taken; keeps the statistics."""
        bonus = self.pay(now).masked_fill(~now.stepped, 0.0)
        self.paid.add(bonus, where=now.stepped)
        return bonus

    @property
    def device(self) -> torch.device:
        """The device of all its tensors."""
        return self.paid.sums.device

    @torch.no_grad()
    def _pay(self, seen: Any, opens: Tensor, stepped: Tensor, action: Any) -> Tensor:
        seen = to_tensor(self.sees, seen, self.device)
        if action is not None:
            action = to_tensor("action", action, self.device)
        now = Sight(seen, *_sorted_out(self.opened, opens, stepped), action)
        self._check(now)
        _enter(self.opened, self._without_begin, now.opens, opens)
        return self.pay_rows(now)

    def _mask(self, name: str, given: Any) -> Tensor:
        if given is None:
            return self._everywhere
        mask = to_tensor(name, given, self.device)
        check_mask(name, mask, self.num_envs, self.device)
        return mask

    def _check_given(self, action: Any) -> None:
        if action is None and self.needs_action:
            raise ValueError(
                f"{type(self).__name__} needs the action that led to each step, got action=None"
            )

    def _check(self, now: Sight) -> None:
        """Checks the shape of what is seen, and the range of the rows that count.

        On a GPU this would synchronise, so `learn` and `metrics` raise instead.
        """
        device = self.device
        if self.seen_shape is None:
            shape = (self.num_envs, *now.seen.shape[1:])
            check_tensor(self.sees, now.seen, shape, device)
            return
        check_views(self.sees, now.seen, self.seen_shape, device, self.num_envs, now.rows)
        if device.type != "cpu" and now.seen.dtype == torch.float32:
            self._not_finite |= (unfit(now.seen) & now.rows).any()

    def raise_if_not_finite(self) -> None:
        """Raises if an earlier call on a GPU was shown NaN or values out of range."""
        if self._not_finite:
            self._not_finite.zero_()
            assert self.seen_shape is not None
            raise ValueError(
                f"{self.sees} must be {range_of(1 + len(self.seen_shape))}, "
                f"got NaN or infinity in an earlier call, or values out of this range"
            )


def shown(bonus: Bonus, step: Step) -> Tensor:
    """Returns the field of a step of our own worlds that a bonus sees."""
    seen: Tensor | None = getattr(step, bonus.sees)
    if seen is None:
        raise ValueError(f"this bonus needs a {bonus.sees}, got a step without it")
    return seen


@fused
def _sorted_out(opened: Tensor, opens: Tensor, stepped: Tensor) -> tuple[Tensor, Tensor]:
    """The rows (N,) that open and that are paid: steps without `begin` open."""
    return opens | (stepped & ~opened), stepped & opened


@fused
def _enter(opened: Tensor, without_begin: Tensor, opening: Tensor, asked: Tensor) -> None:
    """Marks the rows that open, and those where `begin` was not called."""
    without_begin |= opening & ~asked
    opened |= opening
