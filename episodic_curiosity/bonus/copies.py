"""One bonus in several processes: copies of it pay, one of them learns.

A paying copy has the memories of its own environments and never learns. The learning copy has a
row for every environment of all paying copies, and memories that stay empty: it is given the
steps that they paid and the sums of their running statistics, learns, and returns what it has
learnt. So the copies pay what a single bonus for all environments would pay. Shapes: N
environments of a paying copy, M of the learning one, T steps.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from episodic_curiosity.bonus.base import Bonus, Sight
from episodic_curiosity.bonus.episodic import EpisodicBonus
from episodic_curiosity.bonus.own_adam import OwnAdam
from episodic_curiosity.bonus.recent import Recent, Trail
from episodic_curiosity.bonus.statistics import BonusStatistics
from episodic_curiosity.reachability.recorded import RecordedSteps
from episodic_curiosity.support.state import check_parts

Tensors = dict[str, Tensor]


class PaidSteps(NamedTuple):
    """T steps of M environments; rows that neither open nor step are left out."""

    seen: Tensor  # (T, M, ...)
    action: Tensor | None  # (T, M) int64, or (T, M, ...) float32
    opens: Tensor  # (T, M) bool, an episode begins
    stepped: Tensor  # (T, M) bool, an action led there


class PayingCopy:
    """A bonus that pays here and learns elsewhere.

    The room for steps that `learn` would need is freed.
    """

    def __init__(self, bonus: Bonus) -> None:
        self.bonus = bonus
        self.needs_steps = bonus.learns_from_steps  # of the learning copy
        self.room = _free_room(bonus)  # the newest steps that are learnt from; None: unknown

    def take_statistics(self) -> Tensors:
        """Returns the sums of the running statistics since the last call, by name."""
        taken = {}
        for name, statistics in _running(self.bonus).items():
            taken[name] = statistics.sums.cpu().clone()
            statistics.sums.zero_()
        return taken

    def statistics(self) -> dict[str, float]:
        """Metrics of the bonus since the last call; raises if it was shown NaN on a GPU."""
        self.bonus.raise_if_not_finite()
        return self.bonus.statistics()

    def receive(self, learnt: Mapping[str, Tensors]) -> None:
        """Takes what the learning copy has learnt; the running statistics stay its own.

        Memories stay, unless the bonus clears them (ECO does, if the R-network changes).
        """
        kept = self.take_statistics()
        tensors = {name: part for whole in learnt.values() for name, part in whole.items()}
        self.bonus.load_learnt(tensors, tuple(learnt))
        for name, statistics in _running(self.bonus).items():
            statistics.sums.copy_(kept[name])


class LearningCopy:
    """A bonus that learns here for copies that pay elsewhere."""

    def __init__(self, bonus: Bonus) -> None:
        for each in bonus.modules():  # a bonus may be around another
            if isinstance(each, Bonus):
                _check_can_learn_apart(each)
        self.bonus = bonus
        self._told: dict[str, Tensors] = {}

    def record(self, steps: PaidSteps) -> None:
        """Takes in steps that were paid by copies."""
        for time, (seen, opens, stepped) in enumerate(
            zip(steps.seen, steps.opens, steps.stepped, strict=True)
        ):
            action = None if steps.action is None else steps.action[time]
            with torch.no_grad():
                self.bonus.record(Sight(seen, opens, stepped, action))

    def add_statistics(self, sums: Tensors) -> None:
        """Adds what `PayingCopy.take_statistics` has returned."""
        for name, statistics in _running(self.bonus).items():
            statistics.sums += sums[name].to(statistics.sums.device)

    def learn(self) -> dict[str, float]:
        """Learns from the recorded steps and returns training metrics."""
        return self.bonus.learn() if self.bonus.learns else {}

    def learnt(self) -> dict[str, Tensors]:
        """Copies of all that it has learnt, on the CPU, by the names of `Bonus.learnt`."""
        return {name: self._copies((name,)) for name in self.bonus.learnt}

    def news(self) -> dict[str, Tensors]:
        """As `learnt`, but only what has changed since the last call."""
        before, self._told = self._told, self.learnt()
        return {
            name: tensors
            for name, tensors in self._told.items()
            if name not in before or not _are_equal(tensors, before[name])
        }

    def state_dict(self) -> dict[str, Any]:
        """Returns what it has learnt, with optimisers and running statistics.

        Recorded steps are left out: the state fits any number of environments.
        """
        extra = {name: each.get_extra_state() for name, each in _with_extra(self.bonus)}
        return {"tensors": self._copies(self._lasting()), "extra": extra}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restores a state of `state_dict`; raises before anything has changed."""
        check_parts(state, {"tensors", "extra"})
        modules = dict(_with_extra(self.bonus))
        check_parts(state["extra"], set(modules))
        for name, extra in state["extra"].items():
            modules[name].check_extra_state(extra)
        self.bonus.load_learnt(state["tensors"], self._lasting())
        for name, extra in state["extra"].items():
            modules[name].set_extra_state(extra)

    def _lasting(self) -> tuple[str, ...]:
        """The names of what a state holds."""
        optimisers = (
            name for name, module in self.bonus.named_modules() if isinstance(module, OwnAdam)
        )
        return (*self.bonus.learnt, *optimisers, *_running(self.bonus))

    def _copies(self, names: tuple[str, ...]) -> Tensors:
        tensors = self.bonus.tensors_of(names)
        return {name: part.detach().cpu().clone() for name, part in tensors.items()}


def _check_can_learn_apart(bonus: Bonus) -> None:
    """Raises unless a bonus says what it learns, and from what."""
    name, kind = type(bonus).__name__, type(bonus)
    if bonus.learns and kind.learn is not Bonus.learn and not bonus.learnt:
        raise ValueError(
            f"{name} must name in `learnt` what its `learn` changes, to be learnt in one "
            f"process and paid in others"
        )
    if bonus.learns_from_steps and kind.record is Bonus.record:
        raise ValueError(f"{name} must define record, to learn from what its copies saw")


def _free_room(bonus: Bonus) -> int | None:
    """Frees the room for steps; returns the number of an environment's steps it was for."""
    rooms = []
    for module in list(bonus.modules()):
        if isinstance(module, EpisodicBonus):
            module.fitting = None  # has the same room
        for name, child in list(module.named_children()):
            match child:
                case Recent():
                    rooms.append(len(child.fresh))
                case RecordedSteps():
                    rooms.append(len(child.views))
                case Trail():
                    pass
                case _:
                    continue
            setattr(module, name, None)
    return max(rooms, default=None)


def _running(bonus: Bonus) -> dict[str, BonusStatistics]:
    """The running statistics that a bonus depends on, without those of `metrics`."""
    return {
        name: module
        for name, module in bonus.named_modules()
        if isinstance(module, BonusStatistics) and name.rpartition(".")[2] != "paid"
    }


def _with_extra(bonus: Bonus) -> list[tuple[str, Bonus]]:
    """The bonuses in it, by name, that have more state than tensors."""
    return [
        (name, module)
        for name, module in bonus.named_modules()
        if isinstance(module, Bonus)
        and type(module).get_extra_state is not nn.Module.get_extra_state
    ]


def _are_equal(some: Tensors, others: Tensors) -> bool:
    """True if all numbers are equal; NaN equals NaN, as an accuracy may be."""
    return all(
        bool(((one == other) | (one.isnan() & other.isnan())).all())
        for one, other in zip(some.values(), others.values(), strict=True)
    )
