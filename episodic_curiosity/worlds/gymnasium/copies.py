"""Makes N copies of a Gymnasium environment that reset in the same step."""

import difflib
from contextlib import closing
from typing import Any

import gymnasium
from gymnasium.envs.registration import EnvSpec
from gymnasium.vector import SyncVectorEnv, VectorEnv

from episodic_curiosity.support.autoreset import AutoresetMode
from episodic_curiosity.worlds.gymnasium.packages import (
    Vectorization,
    find_package,
    import_package,
)
from episodic_curiosity.worlds.gymnasium.processes import EnvProcesses
from episodic_curiosity.worlds.gymnasium.spaces import pick_part

# For environments without a limit: 30 minutes of Atari, the longest episodes in common use.
LONGEST_EPISODE = 27_000


def make_copies(
    name: str,
    num_envs: int,
    vectorization: Vectorization,
    episode_steps: int | None,
    key: str | None,
    timeout: float,
    arguments: dict[str, Any],
) -> tuple[VectorEnv[Any, Any, Any], int]:
    """Makes the environments; returns them with the step limit of an episode."""
    try:
        package = find_package(name)
        import_package(name)
        spec = _find_spec(name)
        if vectorization == "vector_entry_point" and key is not None:
            raise ValueError("key is for copies of an environment: choose sync or async")
        if vectorization == "vector_entry_point" or (
            vectorization == "auto"
            and spec.vector_entry_point is not None
            and package.own_vectors
            and key is None
        ):
            steps = {} if episode_steps is None else {"max_episode_steps": episode_steps}
            env = gymnasium.make_vec(
                spec, num_envs, vectorization_mode="vector_entry_point", **arguments | steps
            )
            if env.metadata.get("autoreset_mode") is AutoresetMode.SAME_STEP:
                limit = getattr(env.unwrapped, "max_episode_steps", episode_steps)
                return env, limit or spec.max_episode_steps or LONGEST_EPISODE
            env.close()
            if vectorization != "auto" or spec.entry_point is None:
                raise ValueError(
                    f"gym/{name} has a vector form that does not reset in the same step; "
                    f"choose vectorization 'sync' or 'async'"
                )
        limit = episode_steps or spec.max_episode_steps or LONGEST_EPISODE

        def make() -> gymnasium.Env[Any, Any]:
            env = gymnasium.make(spec, max_episode_steps=limit, **arguments)
            return pick_part(env, key=key)

        own_limit = 0
        if package.limit:
            with closing(make()) as one:
                # BabyAI has 0 before its first reset, and another limit for each mission.
                own_limit = getattr(one.unwrapped, package.limit)
        shortest = min(limit, own_limit or limit)
        if vectorization == "async":
            return EnvProcesses(make, num_envs, timeout), shortest
        envs = SyncVectorEnv([make] * num_envs, autoreset_mode=AutoresetMode.SAME_STEP)
        return envs, shortest
    except (gymnasium.error.Error, ImportError, TypeError) as error:
        reason = str(error).partition("\n")[0]
        raise ValueError(f"gym/{name} cannot be made: {reason}") from error


def _find_spec(name: str) -> EnvSpec:
    """The record of an id; raises for an unknown one, naming similar ids."""
    registered = name.rpartition(":")[2]
    try:
        return gymnasium.spec(registered)
    except gymnasium.error.Error:
        similar = difflib.get_close_matches(registered, gymnasium.registry, n=3, cutoff=0.75)
        advice = f"did you mean {' or '.join(f'gym/{other}' for other in similar)}"
        if not similar:
            advice = "gym/MODULE:ID imports a module that registers an id"
        raise ValueError(
            f"gym/{name} cannot be made: Gymnasium has no id {registered}; {advice}"
        ) from None
