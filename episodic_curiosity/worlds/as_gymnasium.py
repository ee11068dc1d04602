"""The tasks as Gymnasium environments, one or a batch: NumPy in and out, frames as HWC.

gymnasium.make("EpisodicCuriosity/MazeSparse-v0")
gymnasium.make_vec("EpisodicCuriosity/MazeSparse-v0", num_envs=16)
"""

from typing import Any, cast

import gymnasium
import numpy as np
import torch
from gymnasium import spaces
from gymnasium.vector import VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray
from torch import Tensor

from episodic_curiosity.support.autoreset import AutoresetMode
from episodic_curiosity.worlds.base import FinishingWorld, Step, World
from episodic_curiosity.worlds.registry import BUILT_IN, make_world
from episodic_curiosity.worlds.scenery import as_picture

Array = NDArray[Any]
RENDERED = {"render_modes": ["rgb_array"], "render_fps": 15}


def _id(family: str, task: str) -> str:
    words = [word.capitalize() for word in (family, *task.split("-"))]
    return f"EpisodicCuriosity/{''.join(words)}-v0"


IDS = {_id(each.name, task): f"{each.name}/{task}" for each in BUILT_IN for task in each.tasks}


def register() -> None:
    """Registers the ids with Gymnasium; may be called repeatedly."""
    for name, task in IDS.items():
        if name not in gymnasium.registry:
            gymnasium.register(
                id=name,
                entry_point=f"{__name__}:WorldEnv",
                vector_entry_point=f"{__name__}:WorldVectorEnv",
                kwargs={"task": task},
            )


class WorldEnv(gymnasium.Env[Array, Any]):
    """One environment of a world; `info["position"]` is (3,), if the world has positions."""

    metadata: dict[str, Any] = RENDERED

    def __init__(self, task: str, render_mode: str | None = None, **options: Any) -> None:
        """Options are those of make_world; the seed is random until `reset` sets one."""
        seed = int(self.np_random.integers(1 << 63))
        self._world = make_world(task, num_envs=1, seed=seed, **options)
        self.render_mode = _checked_mode(self._world, render_mode)
        self.observation_space, self.action_space = _spaces(self._world)
        self._view: Tensor | None = None
        self._next: Step | None = None  # the start of the next episode, once one has ended

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Array, dict[str, Any]]:
        """Begins a new episode; a seed restarts the sequence of episodes."""
        _check_no_options(options)
        super().reset(seed=seed)
        begun = self._next if seed is None else None
        step = self._world.reset(seed) if begun is None else begun
        self._next = None
        if self._world.spec.can_finish:  # the next episode begins at the next `reset`
            cast(FinishingWorld, self._world).finish(torch.ones_like(step.first))
        return self._show(step.observation, step.view, step.position)

    def step(self, action: Any) -> tuple[Array, float, bool, bool, dict[str, Any]]:
        """Steps the environment; the observation that ends an episode is returned."""
        step = self._world.step(_actions(self._world, np.asarray(action)[None]))
        if bool(step.first):
            self._next = None if self._world.spec.can_finish else step
            shown = self._show(step.final_observation, step.final_view, step.final_position)
        else:
            shown = self._show(step.observation, step.view, step.position)
        reward, terminated, truncated = step.reward, step.terminated, step.truncated
        return shown[0], float(reward), bool(terminated), bool(truncated), shown[1]

    def render(self) -> Array | None:
        """Returns the latest view, if made with `render_mode="rgb_array"`."""
        if self.render_mode is None or self._view is None:
            return None
        return as_picture(self._view[0])

    def close(self) -> None:
        """Closes the world."""
        self._world.close()

    def _show(
        self, observation: Tensor | None, view: Tensor | None, position: Tensor | None
    ) -> tuple[Array, dict[str, Any]]:
        assert observation is not None
        self._view = view
        info = {} if position is None else {"position": position[0].cpu().numpy()}
        return _array(observation)[0], info


class WorldVectorEnv(VectorEnv[Array, Array, Array]):
    """A world as a VectorEnv; `info["position"]` is (N, 3), if the world has positions."""

    metadata: dict[str, Any] = {  # noqa: RUF012, an instance attribute in Gymnasium
        "autoreset_mode": AutoresetMode.SAME_STEP,
        **RENDERED,
    }

    def __init__(
        self,
        task: str,
        num_envs: int = 1,
        render_mode: str | None = None,
        max_episode_steps: int | None = None,
        **options: Any,
    ) -> None:
        """Options are those of make_world; the seed is random until `reset` sets one."""
        seed = int(self.np_random.integers(1 << 63))
        if max_episode_steps is not None:
            options["episode_steps"] = max_episode_steps
        self._world = make_world(task, num_envs=num_envs, seed=seed, **options)
        self.num_envs = num_envs
        self.render_mode = _checked_mode(self._world, render_mode)
        self.max_episode_steps = self._world.spec.episode_steps
        self.single_observation_space, self.single_action_space = _spaces(self._world)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._view: Tensor | None = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Array, dict[str, Any]]:
        """Begins a new episode everywhere; a seed restarts the sequence of episodes."""
        _check_no_options(options)
        super().reset(seed=seed)
        step = self._world.reset(seed)
        self._view = step.view
        return _array(step.observation), self._info(step)

    def step(self, actions: Array) -> tuple[Array, Array, Array, Array, dict[str, Any]]:
        """Steps every environment; one whose episode ends is reset in the same step."""
        step = self._world.step(_actions(self._world, np.asarray(actions)))
        self._view = step.view
        return (
            _array(step.observation),
            step.reward.cpu().numpy().astype(np.float64),
            step.terminated.cpu().numpy(),
            step.truncated.cpu().numpy(),
            self._info(step),
        )

    def render(self) -> tuple[Array, ...] | None:
        """Returns the latest views, if made with `render_mode="rgb_array"`."""
        if self.render_mode is None or self._view is None:
            return None
        return tuple(map(as_picture, self._view))

    def close_extras(self, **_: Any) -> None:
        """Closes the world."""
        self._world.close()

    def _info(self, step: Step) -> dict[str, Any]:
        """Positions, and the final observations of episodes that have just ended."""
        info: dict[str, Any] = {}
        if step.position is not None:
            info["position"] = step.position.cpu().numpy()
            info["_position"] = np.ones(self.num_envs, np.bool_)
        ended = step.first.cpu().numpy()
        if ended.any() and step.final_observation is not None:
            final = np.full(self.num_envs, None, dtype=object)
            frames = _array(step.final_observation)
            for row in np.flatnonzero(ended):
                final[row] = frames[row]
            info |= {"final_obs": final, "_final_obs": ended}
            info |= {"final_info": {}, "_final_info": ended.copy()}
            if step.final_position is not None:
                places = np.where(ended[:, None], step.final_position.cpu().numpy(), 0)
                info["final_info"] |= {"position": places, "_position": ended.copy()}
        return info


def _spaces(world: World) -> tuple[spaces.Space[Any], spaces.Space[Any]]:
    """The spaces of one observation and one action."""
    spec = world.spec
    example = _array(torch.empty(1, *spec.observation_shape, dtype=spec.observation_dtype))[0]
    low, high = (0, 255) if example.dtype == np.uint8 else (-np.inf, np.inf)
    observations = spaces.Box(low, high, example.shape, example.dtype.type)
    if spec.num_actions:
        return observations, spaces.Discrete(spec.num_actions)
    return observations, spaces.Box(-1.0, 1.0, spec.action_shape, np.float32)


def _array(observation: Tensor) -> Array:
    """Observations as an array, with the channels of frames last."""
    if observation.dim() == 4:
        observation = observation.permute(0, 2, 3, 1).contiguous()
    array: Array = observation.cpu().numpy()
    return array


def _actions(world: World, actions: Array) -> Tensor:
    kind, name = (np.integer, "integers") if world.spec.num_actions else (np.floating, "floats")
    if not np.issubdtype(actions.dtype, kind):
        raise ValueError(f"actions must be {name}, got {actions.dtype}")
    dtype = np.int64 if world.spec.num_actions else np.float32
    return torch.as_tensor(actions.astype(dtype), device=world.spec.device)


def _checked_mode(world: World, render_mode: str | None) -> str | None:
    if render_mode not in (None, "rgb_array"):
        raise ValueError(f"render_mode must be 'rgb_array' or None, got {render_mode!r}")
    if render_mode is not None and len(world.spec.view_shape) != 3:
        raise ValueError(f"{world.spec.task} has no frames to render")
    return render_mode


def _check_no_options(options: dict[str, Any] | None) -> None:
    if options:
        raise ValueError(f"reset takes no options, got {', '.join(options)}")
