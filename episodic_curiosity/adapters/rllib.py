"""Curiosity for RLlib's new API stack: a connector on env runners, a callback on the algorithm.

Every env runner has memories of its own. The R-network is refitted (ECO) in the algorithm's
process to what all runners saw, and its weights are sent to them. Shapes: N environments of a
runner, R runners, T calls of the connector between two training iterations.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from ray.rllib.algorithms.algorithm import Algorithm
from ray.rllib.algorithms.algorithm_config import AlgorithmConfig
from ray.rllib.callbacks.callbacks import RLlibCallback
from ray.rllib.connectors.connector_v2 import ConnectorV2
from ray.rllib.env.env_runner_group import EnvRunnerGroup
from ray.rllib.utils import force_list
from torch import Tensor

from episodic_curiosity.adapters.attached import AttachedBonus
from episodic_curiosity.adapters.views import Array, FromInfo, View, check_seen, same, stacked
from episodic_curiosity.bonus.base import Bonus
from episodic_curiosity.bonus.episodic import EpisodicBonus
from episodic_curiosity.reachability.online import OnlineFitting
from episodic_curiosity.support.checks import to_tensor

MakeBonus = Callable[[int], Bonus]  # from N, the number of environments


def add_curiosity(
    config: AlgorithmConfig,
    make_bonus: MakeBonus,
    *,
    view: View | FromInfo = same,
    weight: float = 1.0,
) -> AlgorithmConfig:
    """Adds a bonus to the rewards of training, not of evaluation; returns the config.

    Call it after `config.env_runners` and `config.callbacks`. In the results,
    `episode_return_mean` includes the bonus; `episode_task_return_mean` and
    `episode_bonus_return_mean` beside it are its parts, `result["curiosity"]` is about refits.

    Args:
        config: of an algorithm with one agent.
        make_bonus: makes the bonus of N environments, called in every process.
        view: from a batch of observations to what curiosity sees, or a FromInfo.
        weight: factor on the bonus.
    """
    num_envs, others = config.num_envs_per_env_runner, config._env_to_module_connector
    make = partial(CuriosityConnector, make_bonus=make_bonus, num_envs=num_envs)

    def make_connectors(env: Any, spaces: Any, device: Any) -> list[ConnectorV2]:
        behind = () if others is None else force_list(others(env, spaces, device))
        return [make(view=view, weight=weight), *behind]

    config.env_runners(env_to_module_connector=make_connectors)  # type: ignore[arg-type]
    config.callbacks([*force_list(config.callbacks_class), CuriosityCallback])
    return config


class Taken(NamedTuple):
    """The observations of a runner since the last call of `take`."""

    seen: Array  # (T, N, ...)
    first: Array  # (T, N) bool, an episode begins with it


class CuriosityConnector(ConnectorV2):
    """Pays for the newest observation of each of N episodes; the bonus joins its reward.

    The infos of a step get the two parts of its reward, `task_reward` and `bonus`.
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
        self.records = _fitting(bonus) is not None
        if self.records:  # the algorithm's process refits
            bonus.fitting = bonus.recorded = None  # type: ignore[assignment]
        self.view = view
        self.curiosity = AttachedBonus(bonus, num_envs, weight=weight, training=training)
        self.refits: Refits | None = None  # in the algorithm's process
        self._recorded: list[tuple[Array, Array]] = []
        self.returns = np.zeros((num_envs, 2))  # task reward and bonus so far

    def __call__(self, *, batch: Any, episodes: Sequence[Any], **_: Any) -> Any:
        """Changes the newest rewards of the episodes; the batch stays as it is."""
        first = np.array([episode.t == 0 for episode in episodes])
        seen = self._see(episodes)
        action = _newest_actions(episodes, first)
        bonus = self.curiosity.pay(seen, action=action, where=~first).cpu().numpy()
        self.curiosity.begin(seen, where=first)
        if self.records and self.curiosity.training:
            self._recorded.append((seen, first))
        self.returns[first] = 0
        for row in np.flatnonzero(~first).tolist():
            episode = episodes[row]
            task_reward = float(episode.get_rewards(-1))
            episode.set_rewards(new_data=task_reward + float(bonus[row]), at_indices=-1)
            episode.get_infos(-1).update(task_reward=task_reward, bonus=float(bonus[row]))
            self.returns[row] += task_reward, bonus[row]
        return batch

    def take(self) -> Taken | None:
        """Returns the observations since the last call; None if there are none."""
        recorded, self._recorded = self._recorded, []
        if not recorded:
            return None
        seen, first = zip(*recorded, strict=True)
        return Taken(np.stack(seen), np.stack(first))

    def set_weights(self, weights: Mapping[str, Tensor]) -> None:
        """Takes the R-network's new weights; memories of other weights are cleared."""
        bonus = self.curiosity.bonus
        assert isinstance(bonus, EpisodicBonus)
        bonus.r_network.load_state_dict(weights)
        bonus.memory.clear(where=torch.ones_like(bonus.opened))

    def get_state(self, *_: Any, **__: Any) -> dict[str, Any]:
        """The state for RLlib's checkpoints, which hold no episodes and so no memories.

        It is never empty: RLlib merges the states of connectors by their place among those that
        have one.
        """
        return {"refits": None if self.refits is None else self.refits.state_dict()}

    def set_state(self, state: dict[str, Any]) -> None:
        if self.refits is not None and state["refits"] is not None:
            self.refits.load_state_dict(state["refits"])

    def merge_states(self, states: list[dict[str, Any]]) -> dict[str, Any]:
        return states[0]

    def _see(self, episodes: Sequence[Any]) -> Array:
        if isinstance(self.view, FromInfo):
            return np.stack([episode.get_infos(-1)[self.view.key] for episode in episodes])
        newest = [episode.get_observations(-1) for episode in episodes]
        seen = self.view(stacked(episodes[0].observation_space, newest))
        check_seen(seen, self.curiosity.bonus)
        return np.asarray(seen)


class Refits:
    """Refits the R-network to what all runners saw, in the algorithm's process."""

    def __init__(
        self, fitting: OnlineFitting, num_runners: int, share: Callable[[], None]
    ) -> None:
        self.fitting = fitting
        self.r_network = fitting.r_network
        self._num_runners, self._share = num_runners, share

    def learn(self, taken: Mapping[int, Taken]) -> dict[str, float]:
        """Records what runners saw, by their row; refits and sends the weights when due."""
        if taken:
            self._record(taken)
        metrics: dict[str, float] = {}
        if self.fitting.is_due:
            metrics = self.fitting.refit()
            if metrics:
                self._share()
        return metrics | {"r_network_fits": float(self.fitting.num_fits)}

    def _record(self, taken: Mapping[int, Taken]) -> None:
        """Runners may have seen unequal numbers of steps, and a lost one none."""
        newest = next(iter(taken.values()))
        num_envs, shape = newest.seen.shape[1], newest.seen.shape[2:]
        num_calls = max(len(part.seen) for part in taken.values())
        rows = (num_calls, self._num_runners, num_envs)
        seen = np.zeros((*rows, *shape), newest.seen.dtype)
        first, where = np.zeros(rows, np.bool_), np.zeros(rows, np.bool_)
        for runner, part in taken.items():
            seen[: len(part.seen), runner] = part.seen
            first[: len(part.seen), runner] = part.first
            where[: len(part.seen), runner] = True
        device = self.r_network.device
        parts = (to_tensor("view", part, device).flatten(1, 2) for part in (seen, first, where))
        for view, begins, mask in zip(*parts, strict=True):
            self.fitting.record(view, begins, mask)

    def state_dict(self) -> dict[str, Any]:
        """The R-network, without the observations for its next refit."""
        return {"r_network": self.r_network.state_dict(), "num_fits": self.fitting.num_fits}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restores a state of `state_dict` and sends the weights to the runners."""
        now = self.r_network.state_dict()
        if all(_is_equal(part, now[name]) for name, part in state["r_network"].items()):
            return  # RLlib also sends a connector its own state: memories stay
        self.r_network.load_state_dict(state["r_network"])
        self.fitting.num_fits = state["num_fits"]
        self._share()


class CuriosityCallback(RLlibCallback):
    """Refits the R-network between training iterations and keeps runners' weights equal."""

    def on_algorithm_init(self, *, algorithm: Algorithm, **_: Any) -> None:
        connector, group = find_connector(algorithm.env_runner), algorithm.env_runner_group
        assert group is not None
        if connector.records:
            num_runners = max(1, group.num_remote_env_runners())
            bonus = connector.make_bonus(num_runners * connector.curiosity.num_envs)
            fitting = _fitting(bonus)
            assert fitting is not None
            share = partial(_share, group, fitting)
            connector.refits = Refits(fitting, num_runners, share)
            share()
        if algorithm.eval_env_runner_group is not None:
            algorithm.eval_env_runner_group.foreach_env_runner(_switch_off)

    def on_episode_end(  # type: ignore[override]
        self, *, env_runner: Any, metrics_logger: Any, env_index: int, **_: Any
    ) -> None:
        """Logs the parts of the return, over as many episodes as RLlib logs their sum."""
        config = env_runner.config
        window = -(-config.metrics_num_episodes_for_smoothing // (config.num_env_runners or 1))
        returns = find_connector(env_runner).returns[env_index]
        for part, value in zip(("task", "bonus"), returns.tolist(), strict=True):
            metrics_logger.log_value(f"episode_{part}_return_mean", value, window=window)

    def on_train_result(
        self, *, algorithm: Algorithm, result: dict[str, Any], **_: Any
    ) -> None:
        refits, group = find_connector(algorithm.env_runner).refits, algorithm.env_runner_group
        assert group is not None
        if refits is not None:
            is_alone = group.num_remote_env_runners() == 0
            taken = group.foreach_env_runner(_take, local_env_runner=is_alone)
            parts = {runner: part for runner, part in taken if part is not None}
            result["curiosity"] = refits.learn(parts)

    def on_env_runners_recreated(
        self,
        *,
        algorithm: Algorithm,
        env_runner_group: EnvRunnerGroup,
        env_runner_indices: list[int],
        is_evaluation: bool,
        **_: Any,
    ) -> None:
        refits = find_connector(algorithm.env_runner).refits
        if is_evaluation:
            env_runner_group.foreach_env_runner(
                _switch_off, local_env_runner=False, remote_worker_ids=env_runner_indices
            )
        elif refits is not None:
            _share(env_runner_group, refits.fitting, env_runner_indices)


def find_connector(env_runner: Any) -> CuriosityConnector:
    """The connector of an env runner."""
    pipeline = getattr(env_runner, "_env_to_module", None)
    for connector in getattr(pipeline, "connectors", ()):
        if isinstance(connector, CuriosityConnector):
            return connector
    raise ValueError(
        "the algorithm needs a local env runner with the connector of add_curiosity: call it "
        "after config.env_runners, with create_local_env_runner=True"
    )


def _share(
    group: EnvRunnerGroup, fitting: OnlineFitting, runners: list[int] | None = None
) -> None:
    """Sends the R-network's weights to the runners; None: to all."""
    weights = {name: part.cpu() for name, part in fitting.r_network.state_dict().items()}
    group.foreach_env_runner(
        partial(_receive, weights=weights),
        remote_worker_ids=runners,  # type: ignore[arg-type]
    )


def _receive(env_runner: Any, weights: Mapping[str, Tensor]) -> None:
    find_connector(env_runner).set_weights(weights)


def _take(env_runner: Any) -> tuple[int, Taken | None]:
    """The runner's row among all, with what it saw."""
    return max(0, env_runner.worker_index - 1), find_connector(env_runner).take()


def _switch_off(env_runner: Any) -> None:
    find_connector(env_runner).curiosity.eval()


def _fitting(bonus: Bonus) -> OnlineFitting | None:
    """Returns the refits of a bonus; raises for one that learns in another way."""
    if isinstance(bonus, EpisodicBonus) and type(bonus).learn is EpisodicBonus.learn:
        return bonus.fitting
    if type(bonus).learn is not Bonus.learn:
        raise ValueError(
            f"with RLlib the bonus must be an EpisodicCuriosity or learn nothing, got "
            f"{type(bonus).__name__}: its copies on the env runners would learn apart"
        )
    return None


def _is_equal(one: Tensor, other: Tensor) -> bool:
    return torch.equal(one.nan_to_num(), other.nan_to_num())  # an accuracy may be NaN


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
