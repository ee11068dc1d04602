"""Curiosity for RLlib's new API stack: a connector on env runners, a callback on the algorithm.

Every env runner has a copy of the bonus that pays, with the memories of its own environments.
One more copy, in the algorithm's process, learns after each training iteration from what all
runners saw, and sends the runners what has changed.
Shapes: N environments of a runner, R runners.
"""

import inspect
from collections.abc import Mapping
from functools import partial
from typing import Any

import ray
from ray.rllib.algorithms.algorithm import Algorithm
from ray.rllib.algorithms.algorithm_config import AlgorithmConfig
from ray.rllib.callbacks.callbacks import RLlibCallback
from ray.rllib.connectors.connector_v2 import ConnectorV2
from ray.rllib.env import INPUT_ENV_SINGLE_SPACES
from ray.rllib.env.env_runner_group import EnvRunnerGroup
from ray.rllib.utils import force_list

from episodic_curiosity.adapters.rllib_central import Central, Taken
from episodic_curiosity.adapters.rllib_connector import CuriosityConnector, MakeBonus
from episodic_curiosity.adapters.views import FromInfo, View, check_view, same
from episodic_curiosity.bonus.base import Bonus
from episodic_curiosity.bonus.copies import LearningCopy, Tensors


def add_curiosity(
    config: AlgorithmConfig,
    make_bonus: MakeBonus,
    *,
    view: View | FromInfo = same,
    weight: float = 1.0,
) -> AlgorithmConfig:
    """Adds a bonus to the rewards of training, not of evaluation runners; returns the config.

    Call it after `config.env_runners` and `config.callbacks`. In the results,
    `episode_return_mean` includes the bonus; `episode_task_return_mean` and
    `episode_bonus_return_mean` are its parts, and `result["curiosity"]` has the
    metrics of the bonus.

    Args:
        config: of an algorithm with one agent.
        make_bonus: makes the bonus of N environments; called for the N of a runner in every
            process, and in the algorithm's for the R * N of all.
        view: from a batch of observations to what curiosity sees, or a FromInfo.
        weight: factor on the bonus.
    """
    num_envs, others = config.num_envs_per_env_runner, config._env_to_module_connector
    if isinstance(make_bonus, Bonus) or not callable(make_bonus):
        raise TypeError(
            f"make_bonus must be a function from a number of environments to a bonus, got "
            f"{type(make_bonus).__name__}"
        )
    if not (isinstance(view, FromInfo) or callable(view)):
        raise TypeError(f"view must be a function or a FromInfo, got {type(view).__name__}")
    if CuriosityCallback in force_list(config.callbacks_class):
        raise ValueError("add_curiosity must be called once, got a config that has curiosity")
    _made_for(make_bonus, num_envs)  # an error in a runner would only be in its log
    make = partial(CuriosityConnector, make_bonus=make_bonus, num_envs=num_envs)

    def make_connectors(env: Any, spaces: Any, device: Any) -> list[ConnectorV2]:
        behind = () if others is None else _made_by(others, env, spaces, device)
        return [make(view=view, weight=weight), *behind]

    config.env_runners(env_to_module_connector=make_connectors)  # type: ignore[arg-type]
    # First: the callbacks of the user then find `result["curiosity"]`.
    config.callbacks([CuriosityCallback, *force_list(config.callbacks_class)])
    started = config.callbacks_on_algorithm_init
    config.callbacks(on_algorithm_init=[*force_list(started), _check_callback])
    return config


def _made_by(others: Any, env: Any, spaces: Any, device: Any) -> list[ConnectorV2]:
    """The connectors of the user's function, which may take the environment alone."""
    try:
        inspect.signature(others).bind(env, spaces, device)
    except TypeError:
        return list(force_list(others(env)))
    return list(force_list(others(env, spaces, device)))


class CuriosityCallback(RLlibCallback):
    """Lets the bonus learn between training iterations, and keeps runners' copies equal."""

    def on_algorithm_init(self, *, algorithm: Algorithm, **_: Any) -> None:
        connector, group = find_connector(algorithm.env_runner), algorithm.env_runner_group
        assert group is not None
        num_runners = max(1, group.num_remote_env_runners())
        _check_runners(algorithm, connector.curiosity.num_envs)
        num_envs = num_runners * connector.curiosity.num_envs
        bonus = _made_for(connector.make_bonus, num_envs)
        space, _ = group.get_spaces()[INPUT_ENV_SINGLE_SPACES]  # type: ignore[no-untyped-call]
        check_view(connector.view, bonus, space, num_envs)  # runners would fail apart, in logs
        connector.central = Central(LearningCopy(bonus), num_runners, partial(_share, group))
        connector.central.share_news()
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
        group = algorithm.env_runner_group
        assert group is not None
        is_alone = group.num_remote_env_runners() == 0
        taken = dict(group.foreach_env_runner(_take, local_env_runner=is_alone))
        result["curiosity"] = _central(algorithm).learn(taken)

    def on_env_runners_recreated(
        self,
        *,
        algorithm: Algorithm,
        env_runner_group: EnvRunnerGroup,
        env_runner_indices: list[int],
        is_evaluation: bool,
        **_: Any,
    ) -> None:
        if is_evaluation:
            env_runner_group.foreach_env_runner(
                _switch_off, local_env_runner=False, remote_worker_ids=env_runner_indices
            )
        else:
            learnt = _central(algorithm).learning.learnt()
            _share(env_runner_group, learnt, env_runner_indices)


def _check_callback(*, algorithm: Algorithm, **_: Any) -> None:
    """Raises if other callbacks have replaced curiosity's: the bonus would never learn."""
    config = algorithm.config
    assert config is not None
    if CuriosityCallback not in force_list(config.callbacks_class):
        names = ", ".join(each.__name__ for each in force_list(config.callbacks_class))
        raise ValueError(
            f"callbacks_class must contain CuriosityCallback, got {names}: call add_curiosity "
            f"after config.callbacks"
        )


def _made_for(make_bonus: MakeBonus, num_envs: int) -> Bonus:
    """Makes the bonus of N environments; raises if it is of another number."""
    bonus = make_bonus(num_envs)
    if bonus.num_envs != num_envs:
        raise ValueError(
            f"make_bonus({num_envs}) must make a bonus for {num_envs} environments, got one "
            f"for {bonus.num_envs}"
        )
    return bonus


def _check_runners(algorithm: Algorithm, num_envs: int) -> None:
    """Raises if the config's number of environments was changed after `add_curiosity`."""
    config = algorithm.config
    assert config is not None
    wanted = config.num_envs_per_env_runner
    if num_envs != wanted:
        raise ValueError(
            f"curiosity was added for {num_envs} environments per env runner, the config has "
            f"{wanted}: call add_curiosity after config.env_runners"
        )


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


def _central(algorithm: Algorithm) -> Central:
    central = find_connector(algorithm.env_runner).central
    assert central is not None
    return central


def _share(
    group: EnvRunnerGroup, learnt: Mapping[str, Tensors], runners: list[int] | None = None
) -> None:
    """Sends what was learnt to the runners; None: to all."""
    group.foreach_env_runner(
        partial(_receive, learnt=ray.put(learnt)),
        remote_worker_ids=runners,  # type: ignore[arg-type]
    )


def _receive(env_runner: Any, learnt: Any) -> None:
    find_connector(env_runner).copy.receive(ray.get(learnt))


def _take(env_runner: Any) -> tuple[int, Taken]:
    """The runner's row among all, with what it saw."""
    return max(0, env_runner.worker_index - 1), find_connector(env_runner).take()


def _switch_off(env_runner: Any) -> None:
    find_connector(env_runner).curiosity.eval()
