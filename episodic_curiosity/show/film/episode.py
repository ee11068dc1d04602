"""Records the episodes of one environment, in numbers and pictures, as they are played.

Shapes: T steps of an episode, h x w pixels.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, cast

import numpy as np
from torch import Tensor

from episodic_curiosity.bonus.base import Bonus, shown
from episodic_curiosity.bonus.coverage import Coverage
from episodic_curiosity.bonus.memory import EpisodicMemory
from episodic_curiosity.worlds.base import FinishingWorld, Picture, Step, World
from episodic_curiosity.worlds.scenery import Camera, Points


class Shot(NamedTuple):
    """The cameras' pictures after a number of steps."""

    step: int
    pictures: tuple[Picture, ...]


@dataclass
class Episode:
    """One episode from its first observation on; entry t of a list is from after t steps."""

    shots: list[Shot] = field(default_factory=list)
    reward: list[float] = field(default_factory=list)  # so far
    bonus: list[float] = field(default_factory=list)  # of the step; none for the last one
    coverage: list[int] = field(default_factory=list)  # Grid-Oracle cells; empty: no positions
    places: list[tuple[float, float]] = field(default_factory=list)  # empty: no positions
    remembered: list[bool] = field(default_factory=list)  # whether memory took the view in
    has_ended: bool = False  # after the last of these steps; else it was cut short

    @property
    def num_steps(self) -> int:
        return len(self.reward) - 1

    def path(self, step: int) -> Points:
        """The path of the first steps, (step + 1, 2)."""
        return np.array(self.places[: step + 1], np.float32).reshape(-1, 2)

    def memories(self, step: int) -> Points:
        """The places where a view was stored in memory, up to that step."""
        path = self.path(step)
        stored = self.remembered[: len(path)]
        return path[np.flatnonzero(stored)]


class Filmed:
    """A world of one environment that records its first episodes in `episodes`.

    Each keeps its first `num_steps` steps and at most `num_shots` pictures: beyond that every
    second picture is dropped, and half as many are taken from then on.
    """

    def __init__(
        self,
        world: World,
        bonus: Bonus,
        cameras: Sequence[Camera],
        *,
        num_episodes: int,
        num_steps: int,
        num_shots: int,
    ) -> None:
        if world.spec.num_envs != 1:
            raise ValueError(f"one environment can be filmed, got {world.spec.num_envs}")
        self.spec = replace(  # every step is recorded
            world.spec, can_capture=False, steps_in_two=False
        )
        self.episodes: list[Episode] = []
        self._world, self._bonus, self._cameras = world, bonus, cameras
        self._memory: EpisodicMemory | None = getattr(bonus, "memory", None)
        self._num_episodes, self._num_steps = num_episodes, num_steps
        self._num_shots, self._stride = num_shots, 1
        self._coverage = Coverage.of(world.spec) if world.spec.has_position else None
        self._is_on = True

    def reset(self, seed: int | None = None) -> Step:
        step = self._world.reset(seed)
        self._rate(step, None)
        self._cover(step)
        self._begin(step)
        return step

    def step(self, actions: Tensor) -> Step:
        step = self._world.step(actions)
        bonus, is_stored = self._rate(step, actions)
        covered, has_ended = self._cover(step), bool(step.first)
        if self._is_on:
            episode = self.episodes[-1]
            episode.reward.append(episode.reward[-1] + float(step.reward))
            self._note(episode, covered, step.final_position if has_ended else step.position)
            is_last = has_ended or episode.num_steps == self._num_steps
            if not has_ended:
                episode.bonus.append(bonus)
                episode.remembered.append(is_stored)
                if self._is_due(episode) or is_last:
                    self._shoot(episode, step)
            if is_last:
                episode.has_ended = has_ended
                self._close(episode)
        if has_ended:
            self._begin(step)
        return step

    def finish(self, where: Tensor) -> None:
        cast(FinishingWorld, self._world).finish(where)

    def close(self) -> None:
        self._world.close()

    @property
    def is_final(self) -> bool:
        """True if the episode being played is the last one to be recorded."""
        return len(self.episodes) == self._num_episodes

    @property
    def is_over(self) -> bool:
        """True once all episodes have been recorded."""
        return len(self.episodes) == self._num_episodes and not self._is_on

    def _rate(self, step: Step, actions: Tensor | None) -> tuple[float, bool]:
        """The bonus, and whether the view was stored in a memory."""
        added = 0 if self._memory is None else int(self._memory.added)
        if actions is None:
            self._bonus.begin(shown(self._bonus, step))
            bonus = 0.0
        else:
            seen = shown(self._bonus, step)
            bonus = float(self._bonus.bonus_same_step(seen, step.first, action=actions))
        return bonus, self._memory is not None and int(self._memory.added) > added

    def _cover(self, step: Step) -> Tensor | None:
        return None if self._coverage is None else self._coverage.add(step)

    def _begin(self, step: Step) -> None:
        """Opens an episode, unless enough were recorded."""
        self._is_on = len(self.episodes) < self._num_episodes
        if not self._is_on:
            return
        self._stride = 1
        # The first observation is always remembered, where there is a memory.
        is_stored = self._memory is not None
        episode = Episode(reward=[0.0], bonus=[0.0], remembered=[is_stored])
        self.episodes.append(episode)
        covered = None if self._coverage is None else self._coverage.count
        self._note(episode, covered, step.position)
        self._shoot(episode, step)

    def _note(self, episode: Episode, covered: Tensor | None, position: Tensor | None) -> None:
        if covered is not None:
            episode.coverage.append(int(covered))
        if position is not None:
            x, y = position[0, :2].tolist()
            episode.places.append((x, y))

    def _is_due(self, episode: Episode) -> bool:
        """True if a picture is due; makes room for it."""
        if episode.num_steps % self._stride:
            return False
        if len(episode.shots) == self._num_shots - 1:  # the last place is for the last step
            del episode.shots[1::2]
            self._stride *= 2
        return episode.num_steps % self._stride == 0

    def _shoot(self, episode: Episode, step: Step) -> None:
        pictures = tuple(camera(episode, step) for camera in self._cameras)
        episode.shots.append(Shot(episode.num_steps, pictures))

    def _close(self, episode: Episode) -> None:
        """Ends a recording with its last step.

        Where the episode has ended, the world already shows the next one: the newest pictures
        of this one are used.
        """
        self._is_on = False
        newest = episode.shots[-1]
        if newest.step < episode.num_steps:
            episode.shots.append(Shot(episode.num_steps, newest.pictures))
