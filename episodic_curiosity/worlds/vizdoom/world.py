"""ViZDoomWorld: N games of Doom behind the World protocol.

Shapes: N environments.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from episodic_curiosity.checks import check_at_least, check_choice, check_size, usable_device
from episodic_curiosity.randomness import random_below, random_bits, seed_words
from episodic_curiosity.worlds import SPLITS, Split, Step, WorldSpec
from episodic_curiosity.worlds.vizdoom.scenarios import find_scenario
from episodic_curiosity.worlds.worker import End
from episodic_curiosity.worlds.workers import Workers

Array = NDArray[Any]

ENGINE = (Path(__file__).with_name("engine.py"), "DoomEngine")
FRAME_SIZE = (120, 160)  # the smallest that the engine draws
FIELDS = {"frame": ((3, *FRAME_SIZE), "uint8"), "pose": ((4,), "float32")}
ORACLE_CELL = 30.0  # DeepMind Lab's: the paper has no Grid Oracle in Doom
LUMINANCE = (0.299, 0.587, 0.114)  # of red, green and blue
PHASE = 1  # keeps the random numbers of a first clock apart from those of the seeds


class ViZDoomWorld:
    """MyWayHome or any other scenario, played by worker processes on the host.

    The policy sees grey frames, curiosity sees them in colour. There is no frame after the
    last action of a task that ended: its final observation is the one before.
    """

    def __init__(
        self,
        task: str,
        *,
        num_envs: int,
        seed: int,
        device: torch.device | str = "cpu",
        split: Split = "train",
        observation_size: tuple[int, int] = (84, 84),
        view_size: tuple[int, int] = FRAME_SIZE,
        episode_steps: int | None = None,
        actions: Sequence[str] | None = None,
        stagger: bool = False,
        num_workers: int | None = None,
        timeout: float = 60.0,
    ) -> None:
        """Sizes are (height, width); splits differ in their seeds, there is but one map.

        `actions` are names of buttons, several joined by "+", or "idle"; by default one for
        each button of the scenario. `stagger` lets the first episodes begin at any point of
        their clock. `num_workers` and `timeout` are those of `Workers`.
        """
        check_at_least("num_envs", num_envs, 1)
        check_choice("split", split, SPLITS)
        observation_size = check_size("observation_size", observation_size)
        view_size = check_size("view_size", view_size)
        self._device = usable_device(device)
        self._split = SPLITS.index(split)
        self._key = self._keys(num_envs, seed)  # (N,)
        self._episode = torch.zeros(num_envs, dtype=torch.int64)  # the next one to begin
        self._clock = np.zeros(num_envs, np.int64)
        self._luminance = torch.tensor(LUMINANCE, device=self._device)
        self._stagger = stagger
        self._begun = False
        scenario = find_scenario(task, actions, episode_steps)
        self.workers = Workers(
            ENGINE,
            scenario.engine,
            FIELDS,
            num_envs=num_envs,
            num_workers=num_workers,
            timeout=timeout,
            pinned=True,
        )
        self._board = self.workers.board
        self.spec = WorldSpec(
            task=f"vizdoom/{task}",
            num_envs=num_envs,
            device=self._device,
            observation_shape=(1, *observation_size),
            observation_dtype=torch.uint8,
            view_shape=(3, *view_size),
            view_dtype=torch.uint8,
            num_actions=len(scenario.action_names),
            action_names=scenario.action_names,
            episode_steps=scenario.episode_steps,
            has_position=True,
            oracle_cell=ORACLE_CELL,
        )

    def reset(self, seed: int | None = None) -> Step:
        """Begins a new episode everywhere; a seed begins the whole series of them anew."""
        if seed is not None:
            self._key = self._keys(self.spec.num_envs, seed)
            self._episode.zero_()
        self._clock[:] = 0
        if self._stagger:
            steps = self.spec.episode_steps
            self._clock[:] = random_below(steps, self._key, self._episode, PHASE).numpy()
        self._draw_seeds()
        self.workers.begin()
        self._episode += 1
        self._draw_seeds()
        self._begun = True
        nothing = np.zeros(self.spec.num_envs, np.bool_)
        return self._emit(nothing.astype(np.float32), nothing, nothing, first=~nothing)

    def step(self, actions: Tensor) -> Step:
        """Acts once everywhere; the final_... fields are None while no episode ends."""
        if not self._begun:
            raise RuntimeError("call reset() first: no episode has begun")
        board = self._board
        board.action[:] = self._checked(actions)
        self._clock += 1
        np.equal(self._clock, self.spec.episode_steps, out=board.last)
        end = self.workers.step()
        ended, terminated = end != End.NOT_YET, end == End.BY_TASK
        step = self._emit(board.reward, terminated, ended & ~terminated, first=ended)
        if not ended.any():
            return step
        self._clock[ended] = 0
        self._episode += torch.from_numpy(ended)
        self._draw_seeds()
        return self._with_final(step, np.flatnonzero(ended))

    def heading(self) -> Tensor:
        """(N,) float32: which way players look, in degrees counter-clockwise from east."""
        return self._to_device(self._board.present["pose"][:, 3])

    def close(self) -> None:
        """Ends games and workers; harmless when called again."""
        self.workers.close()

    def _keys(self, num_envs: int, seed: int) -> Tensor:
        return random_bits(torch.arange(num_envs), *seed_words(seed), self._split)

    def _draw_seeds(self) -> None:
        """Says what the next episodes will be drawn with."""
        self._board.seed[:] = random_bits(self._key, self._episode).numpy()

    def _checked(self, actions: Tensor) -> Array:
        wanted, count = (self.spec.num_envs,), self.spec.num_actions
        if not isinstance(actions, Tensor):
            raise ValueError(f"actions must be a tensor, got {type(actions).__name__}")
        if actions.shape != wanted or actions.dtype not in (torch.int64, torch.int32):
            raise ValueError(
                f"actions must be an int64 or int32 tensor of shape {wanted}, "
                f"got {actions.dtype} of shape {tuple(actions.shape)}"
            )
        chosen: Array = actions.cpu().numpy()
        for extreme in (chosen.min(), chosen.max()):
            if not 0 <= extreme < count:
                raise ValueError(f"action {extreme} is not one of 0 .. {count - 1}")
        return chosen

    def _emit(self, reward: Array, terminated: Array, truncated: Array, first: Array) -> Step:
        observation, view = self._frames(self._board.present["frame"])
        return Step(
            observation=observation,
            view=view,
            reward=self._to_device(reward),
            first=self._to_device(first),
            terminated=self._to_device(terminated),
            truncated=self._to_device(truncated),
            position=self._to_device(self._board.present["pose"][:, :3]),
        )

    def _with_final(self, step: Step, rows: Array) -> Step:
        observation, view = self._frames(self._board.final["frame"][rows])
        where = self._to_device(rows)
        return step._replace(
            final_observation=torch.zeros_like(step.observation).index_copy_(
                0, where, observation
            ),
            final_view=torch.zeros_like(step.view).index_copy_(0, where, view),
            final_position=self._to_device(self._board.final["pose"][:, :3]),
        )

    def _frames(self, frames: Array) -> tuple[Tensor, Tensor]:
        """Observations and views of (n, 3, 120, 160) frames, resized on the device."""
        view = self._to_device(frames)
        colour = view.to(torch.float32)
        grey = (self._luminance @ colour.flatten(2)).view(-1, 1, *FRAME_SIZE)
        if self.spec.view_shape[1:] != FRAME_SIZE:
            view = _resize(colour, self.spec.view_shape[1:])
        return _resize(grey, self.spec.observation_shape[1:]), view

    def _to_device(self, array: Array) -> Tensor:
        return torch.from_numpy(array).to(self._device, copy=True)


def _resize(frames: Tensor, size: tuple[int, ...]) -> Tensor:
    """Bytes of (n, channels, h, w) floats in another size."""
    if frames.shape[2:] != size:
        frames = functional.interpolate(frames, size, mode="bilinear", antialias=True)
    return (frames + 0.5).to(torch.uint8)  # rounded
