"""The maze tasks as Gymnasium vector environments: NumPy in and out, frames as HWC.

gymnasium.make_vec("EpisodicCuriosity/MazeSparse-v0", num_envs=16)
"""

from typing import Any

import gymnasium
import numpy as np
import torch
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray
from torch import Tensor

from episodic_curiosity.worlds.base import Step
from episodic_curiosity.worlds.registry import make_world

Array = NDArray[Any]
IDS = {
    "EpisodicCuriosity/MazeSparse-v0": "maze/sparse",
    "EpisodicCuriosity/MazeVerySparse-v0": "maze/very-sparse",
    "EpisodicCuriosity/MazeSparseDoors-v0": "maze/sparse-doors",
    "EpisodicCuriosity/MazeNoReward-v0": "maze/no-reward",
    "EpisodicCuriosity/MazeNoRewardNoFire-v0": "maze/no-reward-no-fire",
    "EpisodicCuriosity/MazeDense1-v0": "maze/dense-1",
    "EpisodicCuriosity/MazeDense2-v0": "maze/dense-2",
}


def register() -> None:
    """Registers the ids with Gymnasium; may be called repeatedly."""
    for name, task in IDS.items():
        if name not in gymnasium.registry:
            gymnasium.register(
                id=name, vector_entry_point=f"{__name__}:MazeVectorEnv", kwargs={"task": task}
            )


class MazeVectorEnv(VectorEnv[Array, Array, Array]):
    """A world as a VectorEnv; `info["position"]` is (N, 3), in DeepMind Lab's units."""

    metadata: dict[str, Any] = {  # noqa: RUF012, an instance attribute in Gymnasium
        "autoreset_mode": AutoresetMode.SAME_STEP,
        "render_modes": ["rgb_array"],
        "render_fps": 15,
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
        if render_mode not in (None, "rgb_array"):
            raise ValueError(f"render_mode must be 'rgb_array' or None, got {render_mode!r}")
        self.num_envs, self.render_mode = num_envs, render_mode
        seed = int(self.np_random.integers(1 << 63))
        if max_episode_steps is not None:
            options["episode_steps"] = max_episode_steps
        self._world = make_world(task, num_envs=num_envs, seed=seed, **options)
        self.max_episode_steps = self._world.spec.episode_steps
        channels, height, width = self._world.spec.observation_shape
        self.single_observation_space = spaces.Box(0, 255, (height, width, channels), np.uint8)
        self.single_action_space = spaces.Discrete(self._world.spec.num_actions)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._newest: Array = np.zeros(self.observation_space.shape or (), np.uint8)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Array, dict[str, Any]]:
        """Begins a new episode everywhere; a seed restarts the sequence of episodes."""
        if options:
            raise ValueError(f"reset takes no options, got {', '.join(options)}")
        super().reset(seed=seed)
        step = self._world.reset(seed)
        return self._observation(step.observation), self._info(step)

    def step(self, actions: Array) -> tuple[Array, Array, Array, Array, dict[str, Any]]:
        """Steps every environment; one whose episode ends is reset in the same step."""
        actions = np.asarray(actions)
        if not np.issubdtype(actions.dtype, np.integer):
            raise ValueError(f"actions must be integers, got {actions.dtype}")
        chosen = torch.as_tensor(actions.astype(np.int64), device=self._world.spec.device)
        step = self._world.step(chosen)
        return (
            self._observation(step.observation),
            step.reward.cpu().numpy().astype(np.float64),
            step.terminated.cpu().numpy(),
            step.truncated.cpu().numpy(),
            self._info(step),
        )

    def render(self) -> tuple[Array, ...]:
        """Returns the latest observations."""
        return tuple(self._newest)

    def close_extras(self, **_: Any) -> None:
        """Closes the world."""
        self._world.close()

    def _observation(self, frames: Tensor) -> Array:
        self._newest = _height_width_channels(frames)
        return self._newest

    def _info(self, step: Step) -> dict[str, Any]:
        """Positions, and the final observations of episodes that have just ended."""
        assert step.position is not None
        everywhere = np.ones(self.num_envs, np.bool_)
        info: dict[str, Any] = {
            "position": step.position.cpu().numpy(),
            "_position": everywhere,
        }
        ended = (step.terminated | step.truncated).cpu().numpy()
        if ended.any():
            assert step.final_observation is not None
            assert step.final_position is not None
            frames = _height_width_channels(step.final_observation)
            final = np.full(self.num_envs, None, dtype=object)
            for row in np.flatnonzero(ended):
                final[row] = frames[row]
            position = np.where(ended[:, None], step.final_position.cpu().numpy(), 0)
            info["final_obs"], info["_final_obs"] = final, ended
            info["final_info"] = {"position": position, "_position": ended.copy()}
            info["_final_info"] = ended.copy()
        return info


def _height_width_channels(frames: Tensor) -> Array:
    array: Array = frames.permute(0, 2, 3, 1).contiguous().cpu().numpy()
    return array
