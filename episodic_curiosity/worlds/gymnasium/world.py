"""Gymnasium environments as a World: make_world("gym/CartPole-v1", ...).

The environments run on the CPU; observations are copied to the device, actions back.
Shapes: N environments.
"""

from typing import Any, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

try:
    import gymnasium
except ImportError as missing:
    raise ImportError("tasks named gym/... need Gymnasium: pip install gymnasium") from missing
from gymnasium.vector import SyncVectorEnv

from episodic_curiosity.support.checks import (
    check_at_least,
    check_choice,
    check_number,
    check_type,
)
from episodic_curiosity.support.randomness import random_bits, seed_words
from episodic_curiosity.worlds.base import SPLITS, Split, Step, WorldSpec
from episodic_curiosity.worlds.gymnasium.copies import make_copies
from episodic_curiosity.worlds.gymnasium.packages import Vectorization, find_package
from episodic_curiosity.worlds.gymnasium.processes import EnvProcesses
from episodic_curiosity.worlds.gymnasium.spaces import Actions, Observations

Array = NDArray[Any]


class GymnasiumWorld:
    """N copies of one environment, each with its own seed."""

    def __init__(
        self,
        name: str,
        *,
        num_envs: int,
        seed: int,
        device: torch.device,
        split: Split,
        vectorization: Vectorization = "auto",
        episode_steps: int | None = None,
        observation_size: tuple[int, int] | None = None,
        view_size: tuple[int, int] | None = None,
        oracle_cell: float | None = None,
        key: str | None = None,
        grey: bool | None = None,
        largest_byte: int | None = None,
        timeout: float = 60.0,
        **arguments: Any,
    ) -> None:
        """`name` is a registered id or `module:id`; `arguments` are passed to the environment.

        Sizes are (height, width) to resize frames to. `oracle_cell` is the side of a
        Grid-Oracle cell, in the unit of `info["position"]`, which must be three numbers. "auto"
        uses an environment's own vector form if that resets in the same step, else steps the
        copies one after the other. "async" gives each copy a process, which is replaced if it
        does not answer for `timeout` seconds. `key` names the part of a dictionary of
        observations to learn from. Frames become `grey`, and bytes up to `largest_byte` are
        scaled to 255; the defaults of both are in packages.py. Splits differ in their seeds.
        """
        check_choice("vectorization", vectorization, get_args(Vectorization))
        if episode_steps is not None:
            check_at_least("episode_steps", episode_steps, 1)
        if oracle_cell is not None:
            check_number("oracle_cell", oracle_cell, above=0.0)
        package = find_package(name)
        grey = package.grey if grey is None else grey
        check_type("grey", grey, bool)
        largest_byte = package.largest_byte if largest_byte is None else largest_byte
        check_at_least("largest_byte", largest_byte, 1)
        if largest_byte > 255:
            raise ValueError(f"largest_byte must be at most 255, got {largest_byte}")
        seed_words(seed)
        self._device = device
        self._env, limit = make_copies(
            name, num_envs, vectorization, episode_steps, key, timeout, arguments
        )
        task = f"gym/{name}"
        self._observations = Observations(
            task,
            self._env.single_observation_space,
            num_envs,
            self._device,
            observation_size=observation_size,
            view_size=view_size,
            grey=grey,
            largest_byte=largest_byte,
        )
        self._actions = Actions(task, self._env.single_action_space)
        self._split = split
        self._next_seed: int | None = seed
        self._begun = self._closed = False
        self._is_within = False  # between begin_step and end_step
        self.spec = WorldSpec(
            task=task,
            num_envs=num_envs,
            device=self._device,
            observation_shape=self._observations.shape,
            observation_dtype=self._observations.dtype,
            view_shape=self._observations.view_shape,
            view_dtype=self._observations.dtype,
            num_actions=self._actions.num_actions,
            action_shape=self._actions.shape,
            episode_steps=limit,
            steps_in_two=isinstance(self._env, EnvProcesses),
            has_position=oracle_cell is not None,
            oracle_cell=oracle_cell or 0.0,
        )

    def reset(self, seed: int | None = None) -> Step:
        """Starts a new episode in every environment; a seed restarts the episode sequence."""
        self._check_open()
        if self._is_within:
            self.end_step()
        seed = self._next_seed if seed is None else seed
        emitted, info = self._env.reset(seed=None if seed is None else self._seeds(seed))
        self._next_seed, self._begun = None, True
        observation, view = self._observations.to_device(self._observations.batch(emitted))
        everywhere = np.ones(self.spec.num_envs, np.bool_)
        first = self._to_device(everywhere, torch.bool)
        return Step(
            observation=observation,
            view=view,
            reward=torch.zeros(self.spec.num_envs, device=self._device),
            first=first,
            terminated=~first,
            truncated=~first,
            position=self._position(info, everywhere),
        )

    def step(self, actions: Tensor) -> Step:
        """Steps every environment; the final_... fields are None unless an episode ends."""
        if self.spec.steps_in_two:
            self.begin_step(actions)
            return self.end_step()
        return self._step_of(self._env.step(self._chosen(actions)))

    def begin_step(self, actions: Tensor) -> None:
        """Starts the step in the environments' processes, and returns before it is complete."""
        chosen = self._chosen(actions)
        assert isinstance(self._env, EnvProcesses)
        self._is_within = True
        self._env.begin_step(chosen)

    def end_step(self) -> Step:
        """Waits for the environments and returns the step."""
        if not self._is_within:
            raise RuntimeError("call begin_step() before end_step()")
        self._is_within = False
        assert isinstance(self._env, EnvProcesses)
        return self._step_of(self._env.end_step())

    def _chosen(self, actions: Tensor) -> Any:
        """The actions as the environments take them."""
        self._check_open()
        if not self._begun:
            raise RuntimeError("call reset() first: no episode has begun")
        self._check_between()
        return self._actions.to_host(actions, self.spec.num_envs)

    def _check_open(self) -> None:
        if self._closed:
            raise RuntimeError("this world is closed")

    def _check_between(self) -> None:
        if self._is_within:
            raise RuntimeError("call end_step() first: the environments are within a step")

    def _step_of(self, returned: tuple[Any, ...]) -> Step:
        """A step of what the vector environment has returned."""
        emitted, reward, terminated, truncated, info = returned
        terminated = np.asarray(terminated, np.bool_)
        truncated = np.asarray(truncated, np.bool_)
        ended = terminated | truncated
        batch = self._observations.batch(emitted)
        observation, view = self._observations.to_device(batch)
        step = Step(
            observation=observation,
            view=view,
            reward=self._to_device(reward, torch.float32),
            first=self._to_device(ended, torch.bool),
            terminated=self._to_device(terminated, torch.bool),
            truncated=self._to_device(truncated & ~terminated, torch.bool),
            position=self._position(info, np.ones_like(ended)),
        )
        if not ended.any():
            return step
        last = np.zeros_like(batch)
        for row in np.flatnonzero(ended):
            last[row] = self._observations.one(info["final_obs"][row])
        final_observation, final_view = self._observations.to_device(last)
        return step._replace(
            final_observation=final_observation,
            final_view=final_view,
            final_position=self._position(info.get("final_info", {}), ended),
        )

    @property
    def can_render(self) -> bool:
        """True if `picture` works when made with `render_mode="rgb_array"`."""
        return "rgb_array" in self._env.metadata.get("render_modes", ())

    def picture(self, env: int = 0) -> Array:
        """Renders one environment, (H, W, 3) bytes."""
        if self._env.render_mode != "rgb_array":
            raise ValueError(f"{self.spec.task} must be made with render_mode 'rgb_array'")
        self._check_between()
        try:
            pictures = self._env.render()
        except gymnasium.error.DependencyNotInstalled as error:
            raise ImportError(f"{self.spec.task} cannot be rendered: {error}") from error
        assert pictures is not None
        return np.asarray(pictures[env])

    def close(self) -> None:
        """Releases processes and windows; safe to call again."""
        if not self._closed:
            self._closed = True
            self._env.close()

    def _seeds(self, seed: int) -> Any:
        """One seed per environment, or a single one for an environment's own vector form.

        The two highest of 31 bits are the split's: no two splits share a seed.
        """
        numbers = torch.arange(self.spec.num_envs)
        seeds = random_bits(numbers, *seed_words(seed)) >> 3
        seeds += SPLITS.index(self._split) << 29
        is_ours = isinstance(self._env, SyncVectorEnv | EnvProcesses)
        return seeds.tolist() if is_ours else int(seeds[0])

    def _position(self, info: dict[str, Any], where: Array) -> Tensor | None:
        """(N, 3), zero outside of `where`."""
        if not self.spec.has_position:
            return None
        position = np.zeros((self.spec.num_envs, 3), np.float32)
        try:
            position[where] = np.stack(info["position"][where])
        except (KeyError, ValueError, TypeError):
            raise ValueError(
                f"{self.spec.task} was given an oracle_cell, but its info has no "
                f"'position' of three numbers"
            ) from None
        return self._to_device(position, torch.float32)

    def _to_device(self, array: Any, dtype: torch.dtype) -> Tensor:
        return torch.from_numpy(np.array(array)).to(self._device, dtype)
