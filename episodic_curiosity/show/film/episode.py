"""What happens in the episodes of one environment, noted and photographed as they are played.

Shapes: T steps of an episode, h x w pixels.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, zeros_like

from episodic_curiosity.bonus.base import Bonus
from episodic_curiosity.bonus.episodic import EpisodicBonus
from episodic_curiosity.bonus.oracle import VisitedCells
from episodic_curiosity.worlds.base import Picture, Step, World

Points = NDArray[np.float32]  # (places, 2)


class Shot(NamedTuple):
    """What the cameras showed after so many steps."""

    step: int
    pictures: tuple[Picture, ...]


@dataclass
class Episode:
    """One episode from its first observation on; entry t of a list is from after t steps."""

    shots: list[Shot] = field(default_factory=list)
    reward: list[float] = field(default_factory=list)  # so far
    bonus: list[float] = field(default_factory=list)  # of the step; none of the very last
    coverage: list[int] = field(default_factory=list)  # Grid-Oracle cells; empty: no positions
    places: list[tuple[float, float]] = field(default_factory=list)  # empty: no positions
    remembered: list[bool] = field(default_factory=list)  # whether memory took the view in
    has_ended: bool = False  # after the last of these steps; else it is but a beginning

    @property
    def num_steps(self) -> int:
        return len(self.reward) - 1

    def way(self, step: int) -> Points:
        """The places of the first steps, (step + 1, 2)."""
        return np.array(self.places[: step + 1], np.float32).reshape(-1, 2)

    def memories(self, step: int) -> Points:
        """The places where something was remembered until then."""
        way = self.way(step)
        stored = self.remembered[: len(way)]
        return way[np.flatnonzero(stored)]


# Of the present: the step, and the episode that ends with it.
Camera = Callable[[Episode, Step], Picture]


class Filmed:
    """A world of one environment that keeps its first episodes in `episodes`.

    Of each the first `num_steps` are kept, and at most `num_shots` pictures: when there are
    more, every second one is dropped, and from then on half as many are taken.
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
        self.spec = replace(world.spec, can_capture=False)  # every step has to be looked at
        self.episodes: list[Episode] = []
        self._world, self._bonus, self._cameras = world, bonus, cameras
        self._num_episodes, self._num_steps = num_episodes, num_steps
        self._num_shots, self._stride = num_shots, 1
        self._cells = VisitedCells.of(world.spec) if world.spec.has_position else None
        self._is_on = True

    def reset(self, seed: int | None = None) -> Step:
        step = self._world.reset(seed)
        self._rate(step, None)
        self._begin(step)
        return step

    def step(self, actions: Tensor) -> Step:
        step = self._world.step(actions)
        bonus, is_stored = self._rate(step, actions)
        has_ended = bool(step.first)
        if self._is_on:
            episode = self.episodes[-1]
            self._note(episode, step, step.final_position if has_ended else step.position)
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

    def close(self) -> None:
        self._world.close()

    @property
    def is_over(self) -> bool:
        """Whether all that is wanted has been filmed."""
        return len(self.episodes) == self._num_episodes and not self._is_on

    def _rate(self, step: Step, actions: Tensor | None) -> tuple[float, bool]:
        """The bonus, and whether a memory took in what was seen."""
        if not isinstance(self._bonus, EpisodicBonus):
            return float(self._bonus.bonus(step, actions)), False
        before = int(self._bonus.memory.added)
        bonus = float(self._bonus.bonus(step, actions))
        return bonus, int(self._bonus.memory.added) > before

    def _begin(self, step: Step) -> None:
        """Opens an episode, if it is one of those to be kept."""
        self._is_on = len(self.episodes) < self._num_episodes
        if not self._is_on:
            return
        self._stride = 1
        # The first observation is always remembered, where there is a memory.
        episode = Episode(bonus=[0.0], remembered=[isinstance(self._bonus, EpisodicBonus)])
        self.episodes.append(episode)
        self._note(episode, step, step.position)
        self._shoot(episode, step)

    def _note(self, episode: Episode, step: Step, position: Tensor | None) -> None:
        is_first = not episode.reward
        episode.reward.append(0.0 if is_first else episode.reward[-1] + float(step.reward))
        if self._cells is not None and position is not None:
            first = step.first if is_first else zeros_like(step.first)
            self._cells.visit(position, first)
            episode.coverage.append(int(self._cells.count))
            x, y = position[0, :2].tolist()
            episode.places.append((x, y))

    def _is_due(self, episode: Episode) -> bool:
        """Whether a picture is wanted now; makes room for it."""
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
        """Ends what is kept with its last step.

        Where the episode has ended, the world shows the next one already: the pictures are
        the newest there are.
        """
        self._is_on = False
        newest = episode.shots[-1]
        if newest.step < episode.num_steps:
            episode.shots.append(Shot(episode.num_steps, newest.pictures))
