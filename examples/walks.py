"""Paths of an agent in unseen mazes, and the positions that it remembered.

Shapes: N environments, T steps, P positions of a walk, M remembered positions.
"""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from episodic_curiosity.agent.network import Agent
from episodic_curiosity.bonus.episodic import EpisodicBonus
from episodic_curiosity.runs.build import load_bonus
from episodic_curiosity.runs.evaluate import evaluate
from episodic_curiosity.runs.stored_run import read_run
from episodic_curiosity.support.machine import find_device
from episodic_curiosity.worlds.base import Picture, Step, World
from episodic_curiosity.worlds.maze.world import MazeWorld
from episodic_curiosity.worlds.registry import make_world

PIXELS_PER_CELL = 28


@dataclass(frozen=True)
class Walk:
    """One complete episode."""

    world: MazeWorld
    env: int
    seed: int
    coverage: int  # Grid-Oracle cells
    places: NDArray[Any]  # (P, 2)
    remembered: NDArray[Any]  # (M, 2), in order of time; M = 0 without a memory

    def picture(self, **marks: Any) -> Picture:
        """Draws the level from above at the start, (H, W, 3); marks as in draw_overhead."""
        self.world.reset(self.seed)
        return self.world.overhead(self.env, pixels_per_cell=PIXELS_PER_CELL, **marks)


def walk(folder: Path, num_envs: int, *, seed: int = 0) -> list[Walk]:
    """The first N test episodes of a run's agent, on the levels and from the starts of `seed`.

    These are the first N episodes of `evaluate_run` with the same seed and number of
    environments. The run's episodic memory, if it has one, is filled during them.
    """
    run = read_run(folder)
    device = find_device(run.device)
    world = make_world(
        run.task,
        num_envs=num_envs,
        seed=seed,
        device=device,
        split="test",
        **run.world.options("test"),
    )
    if not isinstance(world, MazeWorld):
        raise ValueError(f"only mazes can be drawn from above, got {run.task}")
    bonus = load_bonus(run, world, folder)
    watched = _Watched(world, bonus if isinstance(bonus, EpisodicBonus) else None)
    evaluation = evaluate(
        Agent.load(folder, device), watched, num_episodes=num_envs, seed=seed, trajectories=True
    )
    assert evaluation.trajectories is not None
    assert evaluation.coverage is not None
    walks = []
    for env in range(num_envs):
        places = evaluation.trajectories[:, env, :2]
        places = places[np.isfinite(places[:, 0])]
        remembered = places[watched.remembered(env)[: len(places)]]
        coverage = int(evaluation.coverage[env])
        walks.append(Walk(world, env, seed, coverage, places, remembered))
    return walks


class _Watched:
    """Passes every step of a world to a bonus and records when its memory stored it."""

    def __init__(self, world: World, bonus: EpisodicBonus | None) -> None:
        self.spec = replace(world.spec, can_capture=False)  # every step is recorded
        self._world, self._bonus = world, bonus
        self._stored: list[Tensor] = []  # T + 1 of (N,)

    def reset(self, seed: int | None = None) -> Step:
        return self._note(self._world.reset(seed), opens=True)

    def step(self, actions: Tensor) -> Step:
        return self._note(self._world.step(actions))

    def close(self) -> None:
        self._world.close()

    def remembered(self, env: int) -> NDArray[np.bool_]:
        """True for each step of one environment that was remembered, (T + 1,)."""
        return torch.stack(self._stored)[:, env].cpu().numpy()

    def _note(self, step: Step, *, opens: bool = False) -> Step:
        stored = torch.zeros_like(step.first)
        if self._bonus is not None:
            before = self._bonus.memory.added.clone()
            self._bonus.bonus_same_step(step.view, step.first)
            # The first observation of a later episode is not part of this one.
            stored = (self._bonus.memory.added > before) & (opens or ~step.first)
        self._stored.append(stored)
        return step
