"""Episodes of an agent in unseen mazes: its path, its bonus and the positions it remembered.

Shapes: N environments, P positions of a walk, B bytes of a snapshot, M remembered positions.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from episodic_curiosity.agent.network import Agent
from episodic_curiosity.bonus.coverage import Coverage, place_reached
from episodic_curiosity.bonus.episodic import EpisodicBonus
from episodic_curiosity.runs.build import load_bonus
from episodic_curiosity.runs.config import Run
from episodic_curiosity.runs.evaluate import evaluate
from episodic_curiosity.runs.stored_run import read_run
from episodic_curiosity.support.machine import find_device
from episodic_curiosity.worlds.base import Picture, Split, Step
from episodic_curiosity.worlds.maze.world import MazeWorld
from episodic_curiosity.worlds.registry import make_world

PIXELS_PER_CELL = 28
PAID, COST = (236, 20, 120), (30, 80, 230)  # colours of a path, where the bonus is + or -
PLAIN_PATH = (30, 30, 34)
SMOOTH = 15  # steps over which the bonus is averaged for its colour: single ones flicker
FULL = 0.5  # share of the largest bonus with the full colour


@dataclass(frozen=True)
class Walk:
    """One complete episode; entry t of an array is from after t steps."""

    coverage: int  # Grid-Oracle cells of the episode
    places: NDArray[Any]  # (P, 2)
    yaws: NDArray[Any]  # (P,) degrees
    covered: NDArray[Any]  # (P,) Grid-Oracle cells so far
    snapshots: NDArray[Any]  # (P, B) uint8, to draw the views from
    bonus: NDArray[Any]  # (P,) as a share of the largest; zeros without a memory
    remembered: NDArray[Any]  # (M, 2), in order of time; M = 0 without a memory

    @property
    def num_steps(self) -> int:
        return len(self.places) - 1


def open_maze(run: Run, num_envs: int, *, seed: int = 0, split: Split = "test") -> MazeWorld:
    """The world in which a run's agent is evaluated; it is not reset."""
    options = run.world.options(split)
    options.pop("stagger", None)  # complete episodes are needed on any split
    device = find_device(run.device)
    world = make_world(
        run.task, num_envs=num_envs, seed=seed, device=device, split=split, **options
    )
    if not isinstance(world, MazeWorld):
        raise ValueError(f"only mazes can be drawn from above, got {run.task}")
    return world


def walk(folder: Path, num_envs: int, *, seed: int = 0) -> list[Walk]:
    """The first N test episodes of a run's agent, on the levels and from the starts of `seed`.

    These are the first N episodes of `evaluate_run` with the same seed. The run's episodic
    memory, if it has one, is filled during them.
    """
    run = read_run(folder)
    world = open_maze(run, num_envs, seed=seed)
    bonus = load_bonus(run, world, folder)
    watched = _Watched(world, bonus if isinstance(bonus, EpisodicBonus) else None)
    agent = Agent.load(folder, world.spec.device)
    evaluation = evaluate(agent, watched, num_episodes=num_envs, seed=seed)
    assert evaluation.coverage is not None
    return [
        watched.walk(env, int(length), int(coverage))
        for env, (length, coverage) in enumerate(
            zip(evaluation.length, evaluation.coverage, strict=True)
        )
    ]


class Maps:
    """The levels of the walks of `walk`, from above."""

    def __init__(self, run: Run, num_envs: int, *, seed: int = 0) -> None:
        self._world = open_maze(run, num_envs, seed=seed)
        self._world.reset(seed)

    def picture(self, env: int, **marks: Any) -> Picture:
        """Draws a level at the start, (H, W, 3); marks as in draw_overhead."""
        return self._world.overhead(env, **{"pixels_per_cell": PIXELS_PER_CELL} | marks)

    def path(self, env: int, one: Walk, colours: NDArray[Any]) -> Picture:
        """Draws a level with a path in colours (P, 3)."""
        return self.picture(env, trajectory=one.places, trail_colours=colours)


def path_colours(one: Walk, *, is_curious: bool) -> NDArray[np.float64]:
    """Colours (P, 3) of a path: those of its bonus, or one colour for plain PPO."""
    if not is_curious:
        return np.tile(np.array(PLAIN_PATH, np.float64), (len(one.places), 1))
    return bonus_colours(one.bonus)


def bonus_colours(share: NDArray[Any]) -> NDArray[np.float64]:
    """Colours (P, 3) from COST to PAID, for (P,) shares of the largest bonus.

    The bonus is averaged over SMOOTH steps.
    """
    window = np.ones(min(SMOOTH, len(share)))
    known = np.convolve(np.ones(len(share)), window, "same")
    mean = np.convolve(share, window, "same") / known
    low, high = np.array(COST, np.float64), np.array(PAID, np.float64)
    part = np.clip((mean / FULL + 1) / 2, 0.0, 1.0)
    colours: NDArray[np.float64] = low + (high - low) * part[:, None]
    return colours


def mean_covered(walks: Sequence[Walk]) -> NDArray[np.float64]:
    """The mean of the cells covered so far, (P,), over episodes of equal length."""
    shortest = min(len(one.covered) for one in walks)
    mean: NDArray[np.float64] = np.mean([one.covered[:shortest] for one in walks], axis=0)
    return mean


class _Watched:
    """Passes every step of a world to a bonus, and records both."""

    def __init__(self, world: MazeWorld, bonus: EpisodicBonus | None) -> None:
        self.spec = replace(world.spec, can_capture=False)  # every step is recorded
        self._world, self._bonus = world, bonus
        self._coverage = Coverage.of(world.spec)
        self._rows: list[tuple[Tensor, ...]] = []  # T + 1 of one (N, ...) for each array

    def reset(self, seed: int | None = None) -> Step:
        return self._note(self._world.reset(seed), opens=True)

    def step(self, actions: Tensor) -> Step:
        return self._note(self._world.step(actions))

    def close(self) -> None:
        self._world.close()

    def walk(self, env: int, length: int, coverage: int) -> Walk:
        """The first episode of one environment."""
        columns = zip(*self._rows[: length + 1], strict=True)
        places, yaws, covered, snapshots, bonus, stored = (
            torch.stack([row[env] for row in column]).cpu().numpy() for column in columns
        )
        return Walk(coverage, places, yaws, covered, snapshots, bonus, places[stored])

    def _note(self, step: Step, *, opens: bool = False) -> Step:
        bonus, stored = torch.zeros_like(step.reward), torch.zeros_like(step.first)
        if self._bonus is not None:
            before = self._bonus.memory.added.clone()
            paid = self._bonus.bonus_same_step(step.view, step.first)
            bonus = paid.float() / self._bonus.config.largest
            stored = self._bonus.memory.added > before
        scene, covered = self._world.scene(), self._coverage.add(step)
        row = (scene.position, scene.yaw, covered, self._world.snapshot(), bonus, stored)
        if not opens:
            row = self._of_the_episode(row, step)
        self._rows.append(tuple(part.clone() for part in row))
        return step

    def _of_the_episode(self, row: tuple[Tensor, ...], step: Step) -> tuple[Tensor, ...]:
        """The row, of the episode that ends in this step where one does.

        The world already shows the next one: the view and the bonus are those of the step
        before.
        """
        _, yaw, covered, snapshot, bonus, stored = row
        _, yaw_before, _, snapshot_before, bonus_before, _ = self._rows[-1]
        place, first = place_reached(step)[:, :2], step.first
        yaw, bonus = (
            torch.where(first, before, now)
            for before, now in ((yaw_before, yaw), (bonus_before, bonus))
        )
        snapshot = torch.where(first[:, None], snapshot_before, snapshot)
        return place, yaw, covered, snapshot, bonus, stored & ~first
