"""Collects the steps of RLlib's env runners for the one copy of the bonus that learns.

Shapes: N environments of a runner, R runners, T calls between two training iterations.
"""

from collections.abc import Callable, Mapping, Sequence
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np

from episodic_curiosity.adapters.views import Array
from episodic_curiosity.bonus.copies import LearningCopy, PaidSteps, Tensors
from episodic_curiosity.support.checks import to_tensor

Share = Callable[[Mapping[str, Tensors]], None]  # sends what was learnt to all runners


class Calls(NamedTuple):
    """One call of a runner's connector, or T of them with one more axis in front."""

    seen: Array  # (N, ...)
    action: Array | None  # (N, ...); None: episodes only begin
    opens: Array  # (N,) bool, an episode begins
    stepped: Array  # (N,) bool, an action led there


class Taken(NamedTuple):
    """The data of a runner since the last time."""

    calls: Calls | None  # T; None: there are none, or the bonus needs none
    statistics: Tensors  # sums of the bonus's running statistics
    metrics: dict[str, float]  # of the bonus


class Central:
    """Learns for all runners, in the algorithm's process.

    It takes the memory of a bonus for R * N environments, and briefly that of the steps of a
    training iteration.
    """

    def __init__(self, learning: LearningCopy, num_runners: int, share: Share) -> None:
        self.learning = learning
        self._num_runners, self._share = num_runners, share

    def learn(self, taken: Mapping[int, Taken]) -> dict[str, float]:
        """Learns from what runners saw, by their row, and shares it; returns metrics.

        Runners may have seen unequal numbers of steps, and a lost one none. The metrics of
        bonuses and memories are the mean of the runners'.
        """
        if not taken:
            return {}
        calls = {runner: part.calls for runner, part in taken.items() if part.calls is not None}
        if calls:
            self.learning.record(self._side_by_side(calls))
        for part in taken.values():
            self.learning.add_statistics(part.statistics)
        told = self.learning.learn()
        self.share_news()
        metrics = [part.metrics for part in taken.values()]
        told_by_all = set.intersection(*map(set, metrics))
        means = {name: fmean(each[name] for each in metrics) for name in told_by_all}
        return self.learning.bonus.statistics() | means | told

    def share_news(self) -> None:
        """Sends the runners what has changed since the last time."""
        if news := self.learning.news():
            self._share(news)

    def _side_by_side(self, calls: Mapping[int, Calls]) -> PaidSteps:
        """The calls (T, R * N, ...) of all runners; rows are left out where one has none."""
        num_calls = max(len(part.seen) for part in calls.values())
        device = self.learning.bonus.device

        def join(parts: Sequence[Array | None]) -> Any:
            like = next((part for part in parts if part is not None), None)
            if like is None:
                return None
            num_envs, *shape = like.shape[1:]
            joined = np.zeros((num_calls, self._num_runners, num_envs, *shape), like.dtype)
            for runner, part in zip(calls, parts, strict=True):
                if part is not None:
                    joined[: len(part), runner] = part
            return to_tensor("steps", joined, device).flatten(1, 2)

        return PaidSteps(*map(join, zip(*calls.values(), strict=True)))


def stacked_calls(calls: Sequence[Calls]) -> Calls | None:
    """Several calls as one; None if there are none."""
    if not calls:
        return None
    seen, action, opens, stepped = zip(*calls, strict=True)
    like = next((part for part in action if part is not None), None)
    actions = None
    if like is not None:
        actions = np.stack([np.zeros_like(like) if part is None else part for part in action])
    return Calls(np.stack(seen), actions, np.stack(opens), np.stack(stepped))
