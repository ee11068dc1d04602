"""The connector of an RLlib env runner: pays the bonus, and keeps steps to learn from.

Shapes: N environments of the runner.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from ray.rllib.connectors.connector_v2 import ConnectorV2

from episodic_curiosity.adapters.attached import AttachedBonus
from episodic_curiosity.adapters.rllib_central import Calls, Central, Taken
from episodic_curiosity.adapters.rllib_kept import KeptCalls
from episodic_curiosity.adapters.views import Array, FromInfo, View, check_seen, same, stacked
from episodic_curiosity.bonus.base import Bonus
from episodic_curiosity.bonus.copies import PayingCopy

MakeBonus = Callable[[int], Bonus]  # from N, the number of environments


class CuriosityConnector(ConnectorV2):
    """Pays for the newest observation of each of N episodes: adds the bonus to its reward.

    The infos of a step get the two parts of its reward, `task_reward` and `bonus`. For a bonus
    that learns, the observations are kept until `take`, no more than it learns from.
    """

    def __init__(
        self,
        input_observation_space: Any = None,
        input_action_space: Any = None,
        *,
        make_bonus: MakeBonus,
        num_envs: int,
        view: View | FromInfo = same,
        weight: float = 1.0,
        training: bool = True,
    ) -> None:
        super().__init__(input_observation_space, input_action_space)
        bonus = make_bonus(num_envs)
        self.make_bonus = make_bonus
        self.view = view
        self.curiosity = AttachedBonus(bonus, num_envs, weight=weight, training=training)
        self.copy = PayingCopy(bonus)
        self.central: Central | None = None  # in the algorithm's process
        self.returns = np.zeros((num_envs, 2))  # task reward and bonus so far
        self._kept = KeptCalls(self.copy.room)

    def __call__(self, *, batch: Any, episodes: Sequence[Any], **_: Any) -> Any:
        """Changes the newest rewards of the episodes; the batch stays as it is."""
        first = np.array([episode.t == 0 for episode in episodes])
        seen = self._see(episodes)
        action = _newest_actions(episodes, first)
        stepped = ~first & self.curiosity.begun.cpu().numpy()
        bonus = np.zeros(len(episodes), np.float32)
        if not first.all():
            bonus = self.curiosity.pay(seen, action=action, where=~first).cpu().numpy()
        if first.any():
            self.curiosity.begin(seen, where=first)
        if self.copy.needs_steps and self.curiosity.training:
            self._kept.add(Calls(seen, action, first, stepped))
        self.returns[first] = 0
        for row in np.flatnonzero(~first).tolist():
            episode = episodes[row]
            task_reward = float(episode.get_rewards(-1))
            episode.set_rewards(new_data=task_reward + float(bonus[row]), at_indices=-1)
            episode.get_infos(-1).update(task_reward=task_reward, bonus=float(bonus[row]))
            self.returns[row] += task_reward, bonus[row]
        return batch

    def take(self) -> Taken:
        """Returns what was seen since the last call."""
        calls, statistics = self._kept.take(), self.copy.take_statistics()
        return Taken(calls, statistics, self.copy.statistics())

    def get_state(self, *_: Any, **__: Any) -> dict[str, Any]:
        """The state for RLlib's checkpoints, which hold no episodes and so no memories.

        It is never empty: RLlib merges the states of connectors by their place among those that
        have one.
        """
        return {"learnt": None if self.central is None else self.central.learning.state_dict()}

    def set_state(self, state: dict[str, Any]) -> None:
        if "learnt" not in state:
            raise ValueError(f"a state of curiosity must have learnt, got {sorted(state)}")
        if self.central is not None and state["learnt"] is not None:
            self.central.learning.load_state_dict(state["learnt"])
            self.central.share_news()

    def merge_states(self, states: list[dict[str, Any]]) -> dict[str, Any]:
        return states[0]

    def _see(self, episodes: Sequence[Any]) -> Array:
        if isinstance(self.view, FromInfo):
            return np.stack([episode.get_infos(-1)[self.view.key] for episode in episodes])
        newest = [episode.get_observations(-1) for episode in episodes]
        seen = self.view(stacked(episodes[0].observation_space, newest))
        check_seen(seen, self.curiosity.bonus)
        return np.asarray(seen)


def _newest_actions(episodes: Sequence[Any], first: Array) -> Array | None:
    """The actions (N, ...) of the step; zeros where an episode begins, None if all do."""
    if first.all():
        return None
    newest = [
        None if begins else e.get_actions(-1) for e, begins in zip(episodes, first, strict=True)
    ]
    like = np.asarray(next(action for action in newest if action is not None))
    if like.dtype == object:  # tuples and dicts of actions
        return None
    return np.stack([np.zeros_like(like) if action is None else action for action in newest])
