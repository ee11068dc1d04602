"""DMLabWorld: N DeepMind Lab environments behind the World protocol.

Shapes: N environments.
"""

import dataclasses
import logging
import math
import os
import re
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from episodic_curiosity.support.checks import check_at_least, check_choice, check_size
from episodic_curiosity.support.machine import num_cores
from episodic_curiosity.worlds.base import Picture, Split, WorldSpec
from episodic_curiosity.worlds.dmlab.build import check_installed, examine_build
from episodic_curiosity.worlds.dmlab.engine import observed_fields
from episodic_curiosity.worlds.dmlab.levels import (
    FRAMES_PER_SECOND,
    MIN_GOAL_DISTANCE,
    MIXER_SEEDS,
    REPEAT,
    find_level,
)
from episodic_curiosity.worlds.lab.elements import TEXT_MAZE
from episodic_curiosity.worlds.lab.overhead import FloorPlan, draw_overhead
from episodic_curiosity.worlds.lab.tasks import ORACLE_CELL, find_actions
from episodic_curiosity.worlds.lab.text import from_text
from episodic_curiosity.worlds.processes.worker import End
from episodic_curiosity.worlds.processes.workers import Workers
from episodic_curiosity.worlds.processes.world import Array, Fields, WorkerWorld

ENGINE = (Path(__file__).with_name("engine.py"), "LabEngine")
FRAME_SIZE = (120, 160)  # as in the authors' code
LEAST_TIMEOUT = 300.0  # seconds
COMPILING = 40.0  # seconds to compile one level on one core: twice the measured time
RENDERERS = ("software", "hardware")

logger = logging.getLogger(__name__)


class DMLabWorld(WorkerWorld):
    """The paper's tasks or any other level, with one process per environment.

    Policy and curiosity see the same frames, without reticle or head-up display.
    """

    def __init__(
        self,
        task: str,
        *,
        num_envs: int,
        seed: int,
        device: torch.device,
        split: Split,
        observation_size: tuple[int, int] = (84, 84),
        view_size: tuple[int, int] = FRAME_SIZE,
        frame_size: tuple[int, int] = FRAME_SIZE,
        episode_steps: int | None = None,
        actions: str | None = None,
        idle: bool = False,
        stagger: bool = False,
        level_cache: str | Path | None = None,
        redraw_starts: bool = False,
        renderer: Literal["software", "hardware"] = "software",
        timeout: float | None = None,
    ) -> None:
        """Sizes are (height, width); Lab renders `frame_size`, the others are resized from it.

        `actions` names an action set of our mazes; `idle` adds an action that does nothing.
        Any number of worlds may share a `level_cache`. `redraw_starts` enforces a task's least
        distance from start to goal on builds that cannot. `stagger` begins the first
        episodes at random step counts. `timeout`, in seconds, must cover compiling all levels
        in parallel; the default depends on the number of cores.
        """
        check_installed(task)
        check_choice("renderer", renderer, RENDERERS)
        observation_size = check_size("observation_size", observation_size)
        view_size = check_size("view_size", view_size)
        frame_size = _drawable(frame_size)
        level_cache = None if level_cache is None else _writable(Path(level_cache))
        level = find_level(task)
        if episode_steps is not None:
            check_at_least("episode_steps", episode_steps, 1)
            level = dataclasses.replace(level, episode_steps=episode_steps)
        names = find_actions(actions or level.actions)
        names = (*names, "idle") if idle and "idle" not in names else names
        settings = {
            "width": str(frame_size[1]),
            "height": str(frame_size[0]),
            "fps": str(FRAMES_PER_SECOND),
            "mixerSeed": str(MIXER_SEEDS[split]),
        }
        far_starts = 0
        if level.min_goal_distance:
            if _needs_far_starts(task, redraw_starts):
                far_starts = level.min_goal_distance
            else:
                settings[MIN_GOAL_DISTANCE] = str(level.min_goal_distance)
        spec = WorldSpec(
            task=f"dmlab/{task}",
            num_envs=num_envs,
            device=device,
            observation_shape=(3, *observation_size),
            observation_dtype=torch.uint8,
            view_shape=(3, *view_size),
            view_dtype=torch.uint8,
            num_actions=len(names),
            action_names=names,
            episode_steps=level.episode_steps,
            steps_in_two=True,
            can_finish=True,
            has_position=True,
            oracle_cell=ORACLE_CELL,
        )
        options = level.engine_options(
            settings, names, far_starts=far_starts, level_cache=level_cache, renderer=renderer
        )
        workers = Workers(
            ENGINE,
            options,
            observed_fields(*frame_size),
            num_envs=num_envs,
            num_workers=num_envs,
            timeout=_patience(num_envs) if timeout is None else timeout,
            pinned=False,
        )
        super().__init__(spec, workers, seed=seed, split=split, stagger=stagger)
        self._resizes = {
            size: AreaResize(frame_size, size, spec.device)
            for size in {observation_size, view_size} - {frame_size}
        }

    def layout(self, env: int = 0) -> str:
        """Returns one environment's maze as text, north at the top; empty if it has none."""
        written: bytes = self._board.present["layout"][env].tobytes()
        return written.rstrip(b"\0").decode()

    def overhead(self, env: int = 0, **marks: Any) -> Picture:
        """Draws one environment's maze from above, (H, W, 3) bytes; marks as in draw_overhead.

        Open doors and the goal are not marked: Lab does not report them.
        """
        layout = self.layout(env)
        if not layout:
            raise ValueError(f"{self.spec.task} has no maze to draw from above")
        try:
            cells = from_text(re.sub(r"[^*HIPG\s]", " ", layout)).cells[0]
        except ValueError as error:
            raise ValueError(
                f"the maze of {self.spec.task} cannot be drawn from above: {error}"
            ) from None
        plan = FloorPlan(cells, np.zeros_like(cells))
        x, y, _, yaw = self._board.present["pose"][env].tolist()
        return draw_overhead(TEXT_MAZE, plan, **{"agent": (x, y, yaw), **marks})

    def _frames(self, fields: Fields) -> tuple[Tensor, Tensor]:
        drawn = self._to_device(fields["frame"])
        sizes = {
            size: self._resizes[size](drawn) if size in self._resizes else drawn
            for size in {self.spec.observation_shape[1:], self.spec.view_shape[1:]}
        }
        return sizes[self.spec.observation_shape[1:]], sizes[self.spec.view_shape[1:]]

    def _lengths(self) -> Array:
        """Episode lengths in steps: the level's own time limit if it is shorter than ours."""
        steps, remaining = self.spec.episode_steps, self._board.present["remaining"]
        own = np.where(remaining > 0, np.ceil(remaining / REPEAT), steps)
        return np.minimum(own, steps).astype(np.int64)

    def _terminated(self, end: Array) -> Tensor:
        """True for ends by the task; the level's own time limit counts as truncation."""
        remaining = self._board.final["remaining"]  # before the last step
        by_clock = (remaining > 0) & (remaining < REPEAT + 0.5)
        return torch.from_numpy((end == End.BY_TASK) & ~by_clock)


def _drawable(frame_size: tuple[int, int]) -> tuple[int, int]:
    height, width = check_size("frame_size", frame_size)
    if height % 4 or width % 4:
        raise ValueError(
            f"frame_size must be (height, width) in multiples of 4, got {frame_size!r}"
        )
    return height, width


def _writable(folder: Path) -> Path:
    """Creates the folder of a level cache; raises unless it can be written to."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ValueError(
            f"level_cache must be a folder, got {str(folder)!r} ({error.strerror})"
        ) from None
    if not os.access(folder, os.W_OK | os.X_OK):
        raise ValueError(f"level_cache must be a writable folder, got {str(folder)!r}")
    return folder


def _patience(num_envs: int) -> float:
    """Seconds that are enough to compile one level per environment on the cores here."""
    rounds = math.ceil(num_envs / num_cores())
    return max(LEAST_TIMEOUT, COMPILING * rounds)


def _needs_far_starts(task: str, redraw_starts: bool) -> bool:
    """Returns whether starts must be drawn here; raises if the build cannot run the task."""
    build = examine_build()
    if build.is_patched:
        return False
    lacks = f"this build of deepmind_lab lacks the authors' {MIN_GOAL_DISTANCE}"
    if not build.overrides_layouts:
        raise ValueError(
            f"{lacks} and cannot play custom layouts: build it with their patch "
            f"(docs/dmlab.md) or use maze/{task}"
        )
    if not redraw_starts:
        raise ValueError(
            f"{lacks}, which dmlab/{task} needs: build it with their patch (docs/dmlab.md) or "
            "draw starts from the layout with redraw_starts=True (--world.redraw-starts)"
        )
    logger.warning("%s: starts are drawn from the layout instead", lacks)
    return True


class AreaResize:
    """Resizes (n, 3, h, w) bytes to (n, 3, H, W)."""

    def __init__(
        self, old: tuple[int, int], new: tuple[int, int], device: torch.device
    ) -> None:
        self._rows, self._columns = (
            _shares(*sides).to(device) for sides in zip(old, new, strict=True)
        )  # (H, h), (W, w)

    def __call__(self, frames: Tensor) -> Tensor:
        resized = self._rows @ frames.to(torch.float32) @ self._columns.T
        return (resized + 0.5).to(torch.uint8)  # rounded


def _shares(old: int, new: int) -> Tensor:
    """The weight of each old pixel in each new pixel, (new, old)."""
    edges = torch.arange(old + 1, dtype=torch.float64)
    begin = torch.arange(new, dtype=torch.float64)[:, None] * old / new
    end = begin + old / new
    covered = torch.minimum(end, edges[1:]) - torch.maximum(begin, edges[:-1])
    return (covered.clamp(min=0.0) * new / old).to(torch.float32)
