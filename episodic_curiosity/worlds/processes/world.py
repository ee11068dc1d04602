"""Base class of worlds whose simulators run in worker processes.

Shapes: N environments.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from episodic_curiosity.support.checks import check_actions, check_mask
from episodic_curiosity.support.randomness import random_below, random_bits, seed_words
from episodic_curiosity.worlds.base import SPLITS, Split, Step, WorldSpec
from episodic_curiosity.worlds.processes.worker import End
from episodic_curiosity.worlds.processes.workers import Workers

Array = NDArray[Any]
Fields = Mapping[str, Tensor]  # of the board

PHASE = 1  # separates the random numbers of `stagger` from those of the seeds


class WorkerWorld:
    """N simulated environments; a subclass converts their frames.

    The board has the fields "frame", (3, h, w) bytes, and "pose": x, y, z and heading. There is
    no frame after the action that terminates an episode: the final frame is the one before.
    """

    def __init__(
        self, spec: WorldSpec, workers: Workers, *, seed: int, split: Split, stagger: bool
    ) -> None:
        self.spec, self.workers = spec, workers
        self._board = board = workers.board
        # Tensors in the board's memory, which workers overwrite.
        self._present = {name: torch.from_numpy(field) for name, field in board.present.items()}
        self._final = {name: torch.from_numpy(field) for name, field in board.final.items()}
        self._position = self._present["pose"][:, :3]
        self._reward = torch.from_numpy(board.reward)
        self._nowhere = torch.zeros(spec.num_envs, dtype=torch.bool)
        self._split = SPLITS.index(split)
        self._key = self._keys(seed)  # (N,)
        self._episode = torch.zeros(spec.num_envs, dtype=torch.int64)  # the next one to begin
        self._clock = np.zeros(spec.num_envs, np.int64)
        self._stagger = stagger
        self._begun = False
        self._is_within = False  # between begin_step and end_step

    def reset(self, seed: int | None = None) -> Step:
        """Starts a new episode in every environment; a seed restarts the episode sequence."""
        if self._is_within:
            self.end_step()
        if seed is not None:
            self._key = self._keys(seed)
            self._episode.zero_()
        self._draw_seeds()
        self._board.is_final[:] = self._board.rests[:] = False
        self.workers.begin()
        self._clock[:] = 0
        if self._stagger:
            steps = torch.from_numpy(self._lengths())
            phase = random_below(steps, self._key, self._episode, PHASE).numpy()
            self._clock[:] = self.spec.episode_steps - steps.numpy() + phase
        self._episode += 1
        self._draw_seeds()
        self._begun = True
        nowhere = self._nowhere
        return self._emit(nowhere.float(), nowhere, nowhere, first=~nowhere)

    def step(self, actions: Tensor) -> Step:
        """Steps every environment; the final_... fields are None unless an episode ends."""
        self.begin_step(actions)
        return self.end_step()

    def begin_step(self, actions: Tensor) -> None:
        """Starts the step in the simulators, and returns before it is complete."""
        if not self._begun:
            raise RuntimeError("call reset() first: no episode has begun")
        self._check_between()
        board = self._board
        board.action[:] = self._checked(actions)
        self._clock += 1
        np.equal(self._clock, self.spec.episode_steps, out=board.last)
        self._is_within = True
        self.workers.begin_step()

    def end_step(self) -> Step:
        """Waits for the simulators and returns the step."""
        if not self._is_within:
            raise RuntimeError("call begin_step() before end_step()")
        self._is_within = False
        end, nowhere = self.workers.end_step(), self._nowhere
        if not end.any():  # as nearly always
            return self._emit(self._reward, nowhere, nowhere, first=nowhere)
        ended, terminated = torch.from_numpy(end != End.NOT_YET), self._terminated(end)
        self._clock[ended.numpy()] = 0
        self._episode += ended & ~torch.from_numpy(self._board.rests)
        self._draw_seeds()
        step = self._emit(self._reward, terminated, ended & ~terminated, first=ended)
        return self._with_final(step, ended.nonzero().squeeze(1))

    def _check_between(self) -> None:
        if self._is_within:
            raise RuntimeError("call end_step() first: the simulators are within a step")

    def finish(self, where: Tensor) -> None:
        """Begins no episode after the current one in the rows of an (N,) mask."""
        self._check_between()
        check_mask("where", where, self.spec.num_envs, self.spec.device)
        self._board.is_final[:] = where.cpu().numpy()

    def heading(self) -> Tensor:
        """(N,) float32: the players' headings in degrees, counter-clockwise from east."""
        self._check_between()
        return self._to_device(self._present["pose"][:, 3])

    def picture(self, env: int = 0) -> Array:
        """One player's frame at the simulator's resolution, (h, w, 3) bytes."""
        self._check_between()
        picture: Array = self._board.present["frame"][env].transpose(1, 2, 0).copy()
        return picture

    def close(self) -> None:
        """Ends simulators and workers; safe to call again."""
        self.workers.close()

    def _frames(self, fields: Fields) -> tuple[Tensor, Tensor]:
        """Observations and views on the device, of n rows of the board."""
        raise NotImplementedError

    def _terminated(self, end: Array) -> Tensor:
        """(N,) bool: episodes ended by their task."""
        return torch.from_numpy(end == End.BY_TASK)

    def _lengths(self) -> Array:
        """Step limits of the episodes that have just begun, (N,) int64."""
        return np.full(self.spec.num_envs, self.spec.episode_steps, np.int64)

    def _keys(self, seed: int) -> Tensor:
        return random_bits(torch.arange(self.spec.num_envs), *seed_words(seed), self._split)

    def _draw_seeds(self) -> None:
        """Sets the seeds of the next episodes."""
        self._board.seed[:] = random_bits(self._key, self._episode).numpy()

    def _checked(self, actions: Tensor) -> Array:
        count = self.spec.num_actions
        check_actions("actions", actions, self.spec.num_envs)
        chosen: Array = actions.cpu().numpy()
        listed = chosen.tolist()
        for extreme in (min(listed), max(listed)):
            if not 0 <= extreme < count:
                raise ValueError(f"action {extreme} is not one of 0 .. {count - 1}")
        return chosen

    def _emit(
        self, reward: Tensor, terminated: Tensor, truncated: Tensor, first: Tensor
    ) -> Step:
        observation, view = self._frames(self._present)
        return Step(
            observation=observation,
            view=view,
            reward=self._to_device(reward),
            first=self._to_device(first),
            terminated=self._to_device(terminated),
            truncated=self._to_device(truncated),
            position=self._to_device(self._position),
        )

    def _with_final(self, step: Step, rows: Tensor) -> Step:
        final = {name: field[rows] for name, field in self._final.items()}
        observation, view = self._frames(final)
        where = self._to_device(rows)
        return step._replace(
            final_observation=torch.zeros_like(step.observation).index_copy_(
                0, where, observation
            ),
            final_view=torch.zeros_like(step.view).index_copy_(0, where, view),
            final_position=self._to_device(self._final["pose"][:, :3]),
        )

    def _to_device(self, tensor: Tensor) -> Tensor:
        return tensor.to(self.spec.device, copy=True)
