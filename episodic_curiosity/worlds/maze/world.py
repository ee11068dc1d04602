"""MazeWorld: N mazes behind the World protocol.

Shapes: N environments.
"""

import hashlib
from collections.abc import Mapping
from functools import partial
from math import prod
from typing import Any

import torch
from torch import Tensor

from episodic_curiosity.support.checks import (
    check_actions,
    check_at_least,
    check_size,
    check_type,
    first_difference,
)
from episodic_curiosity.support.compiling import fused
from episodic_curiosity.support.machine import check_memory
from episodic_curiosity.support.randomness import random_below, random_bits, seed_words
from episodic_curiosity.worlds.base import Picture, Split, Step, WorldSpec
from episodic_curiosity.worlds.lab.elements import CellKind
from episodic_curiosity.worlds.lab.tasks import ORACLE_CELL
from episodic_curiosity.worlds.maze.ahead import Ahead, begin_ahead
from episodic_curiosity.worlds.maze.overhead import overhead_of
from episodic_curiosity.worlds.maze.render import snapshot
from episodic_curiosity.worlds.maze.render.renderer import Renderer
from episodic_curiosity.worlds.maze.render.scene import Scene
from episodic_curiosity.worlds.maze.rules.advance import Advance, advance, compile_advance, keep
from episodic_curiosity.worlds.maze.rules.levels import find_pool, make_levels
from episodic_curiosity.worlds.maze.rules.rules import Purpose, Rules, TaskSignals
from episodic_curiosity.worlds.maze.rules.state import MazeState, blank_state, scene_of
from episodic_curiosity.worlds.maze.tasks import TASKS, change_task

LAYOUT_DECIDES = {"maze_size", "rooms", "room_size"}
ORIGIN_HEIGHT = 24.125  # height of a body's origin above the floor


class MazeWorld:
    """One of the maze tasks; `step` works in place, so that a CUDA graph can replay it."""

    def __init__(
        self,
        task: str,
        *,
        num_envs: int,
        seed: int,
        device: torch.device,
        split: Split,
        observation_size: tuple[int, int] = (84, 84),
        view_size: tuple[int, int] | None = None,
        num_levels: int | None = None,
        level_seed: int = 0,
        layout: str | None = None,
        stagger: bool = False,
        final_frames: bool = True,
        **changes: object,
    ) -> None:
        """Sizes are (height, width); `changes` are the options of tasks.change_task.

        `level_seed` decides the levels, `seed` the episodes on them. `stagger` begins the first
        episodes at random step counts. Without `final_frames`, a step returns `final_snapshot`
        in place of final frames: a GPU would draw all frames twice in every step.
        """
        check_at_least("level_seed", level_seed, 0)
        if num_levels is not None:
            check_at_least("num_levels", num_levels, 1)
        observation_size = check_size("observation_size", observation_size)
        view_size = check_size(
            "view_size", observation_size if view_size is None else view_size
        )
        check_type("stagger", stagger, bool)
        check_type("final_frames", final_frames, bool)
        frames = 3 * num_envs * (prod(observation_size) + prod(view_size))
        what = f"a world of {num_envs} mazes"
        check_memory(what, frames, device, "lower `num_envs` or the sizes")
        if layout is not None and (clash := sorted(LAYOUT_DECIDES & changes.keys())):
            raise ValueError(f"a custom layout cannot be combined with {', '.join(clash)}")
        self._task = change_task(TASKS[task], changes)
        self._device = device
        self._stagger, self._final_frames = stagger, final_frames
        on_cpu = self._device.type == "cpu"
        self._ahead = Ahead(None, None)
        if not on_cpu and layout is None:
            self._ahead = begin_ahead(
                task,
                changes,
                observation_size,
                num_envs=num_envs,
                num_levels=num_levels,
                device=self._device,
            )
        self._pool = find_pool(
            self._task, layout=layout, num_levels=num_levels, level_seed=level_seed, split=split
        )
        self._levels = make_levels(self._task, self._pool, self._device)
        self._rules = Rules(self._task, self._levels, always=not on_cpu)
        self._advance: Advance = (
            partial(advance, self._rules) if on_cpu else compile_advance(self._rules, num_envs)
        )
        renderer = partial(
            Renderer, self._task.theme, self._pool, device=device, num_frames=num_envs
        )
        self._draw_observation = renderer(
            *observation_size, before_fill=self._ahead.wait_for_pictures
        )
        self._draw_view = self._draw_observation
        if view_size != observation_size:
            self._draw_view = renderer(*view_size)
        self._height = torch.full(
            (num_envs, 1), self._task.floor + ORIGIN_HEIGHT, device=self._device
        )
        self._state = self._unborn(num_envs, seed)
        self._begun = False
        drawn = (self._task, layout, self._levels.num_levels, level_seed, split)
        digest = hashlib.sha256(repr(drawn).encode()).digest()
        self._identity = torch.tensor(int.from_bytes(digest[:7], "big"))
        self._out_of_range = torch.zeros((), dtype=torch.bool, device=self._device)
        self.spec = WorldSpec(
            task=f"maze/{task}",
            num_envs=num_envs,
            device=self._device,
            observation_shape=(3, *observation_size),
            observation_dtype=torch.uint8,
            view_shape=(3, *view_size),
            view_dtype=torch.uint8,
            num_actions=len(self._task.action_names),
            action_names=self._task.action_names,
            episode_steps=self._task.episode_steps,
            can_restore=True,
            can_redraw=True,
            can_capture=True,
            can_capture_redraw=True,
            snapshot_bytes=snapshot.num_bytes(self._rules.num_sprites),
            has_position=True,
            oracle_cell=ORACLE_CELL,
        )

    def reset(self, seed: int | None = None) -> Step:
        """Begins a new episode everywhere; a seed restarts the sequence of episodes."""
        if seed is not None:
            keep(self._state, self._unborn(self.spec.num_envs, seed))
        state = self._rules.new_episode(self._state)
        if self._stagger:
            phase = random_below(self._task.episode_steps, state.key, Purpose.PHASE)
            state = state._replace(clock=phase, spawned_at=phase)
        keep(self._state, state)
        self._begun = True
        step = self.observe()
        return step._replace(first=torch.ones_like(step.first))

    def step(self, actions: Tensor) -> Step:
        """Steps every environment; the `final_...` fields may be None if no episode ended."""
        self._check_begun()
        actions = self._checked(actions)
        self._ahead.wait_for_rules()
        outcome, final = self._advance(self._state, actions)
        ended = outcome.terminated | outcome.truncated
        step = self._emit(outcome, ended)
        if final is None:
            return step
        step = step._replace(final_position=self._position(final.position))
        if not self._final_frames:
            return step._replace(final_snapshot=final.snapshot)
        observation, view = self._frames(self._unpack(final.snapshot), ended)
        return step._replace(final_observation=observation, final_view=view)

    def observe(self) -> Step:
        """Returns the current observations without acting."""
        self._check_begun()
        nothing = torch.zeros_like(self._state.yaw)
        no = nothing.bool()
        return self._emit(TaskSignals(nothing, no, no.clone()), no.clone())

    def place(self, position: Tensor, yaw: Tensor) -> Step:
        """Moves bodies to (N, 2) or (N, 3) positions, at rest, facing (N,) degrees."""
        self._check_begun()
        count = self.spec.num_envs
        for name, value in (("position", position), ("yaw", yaw)):
            check_type(name, value, Tensor)
        if position.shape not in ((count, 2), (count, 3)) or yaw.shape != (count,):
            raise ValueError(
                f"positions must have shape ({count}, 2) or ({count}, 3) and yaws "
                f"({count},), got {tuple(position.shape)} and {tuple(yaw.shape)}"
            )
        if not yaw.isfinite().all():
            raise ValueError("yaws must be finite, got NaN or infinity")
        position = position[:, :2].to(self._device, torch.float32)
        outside = ~self._on_floor(position)
        if outside.any():
            raise ValueError(f"there is no floor at {position[outside][0].tolist()}")
        keep(
            self._state,
            self._state._replace(
                position=position,
                velocity=torch.zeros_like(position),
                yaw=yaw.to(self._device, torch.float32) % 360.0,
            ),
        )
        return self.observe()

    def scene(self) -> Scene:
        """Returns the inputs of the current frames; the next step overwrites these tensors."""
        self._check_begun()
        return scene_of(self._state)

    def overhead(self, env: int = 0, **marks: Any) -> Picture:
        """Draws one level from above, (H, W, 3) bytes; marks as in draw_overhead."""
        return overhead_of(self._task.theme, self._pool, self.scene(), env, **marks)

    def snapshot(self) -> Tensor:
        """Returns the current views as (N, at most 256) bytes, for `redraw`."""
        return snapshot.pack(self.scene())

    def redraw(self, snapshots: Tensor) -> Tensor:
        """Draws the views of any number of snapshots, exactly as they were drawn before."""
        return self._draw_view.draw(self._checked_scene(snapshots))

    def redraw_observation(self, snapshots: Tensor) -> Tensor:
        """Draws the observations of any number of snapshots, including `final_snapshot`."""
        return self._draw_observation.draw(self._checked_scene(snapshots))

    def state(self) -> dict[str, Tensor]:
        """Returns a copy of the complete state; `load_state` resumes from it bit for bit."""
        self._check_begun()
        self.check()
        fields = {name: field.clone() for name, field in self._state._asdict().items()}
        return fields | {"identity": self._identity.clone()}

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        """Resumes from the state of a world of the same task, options and size."""
        wanted = self._state._asdict() | {"identity": self._identity}
        if difference := first_difference(state, wanted):
            raise ValueError(f"not a state of {self.spec.task}: it {difference}")
        if int(state["identity"]) != int(self._identity):
            raise ValueError("the state is from a world with another task, options or levels")
        fields = {name: field for name, field in state.items() if name != "identity"}
        keep(self._state, MazeState(**fields))
        self._begun = True

    def check(self) -> None:
        """Raises if an input since the last check was invalid; synchronises with the GPU."""
        if bool(self._out_of_range):
            self._out_of_range.zero_()
            raise ValueError(
                f"an action was outside 0 .. {self.spec.num_actions - 1}, or a snapshot was "
                "from another world"
            )

    def close(self) -> None:
        """Raises pending errors of a GPU world; compilation in other processes continues."""
        self.check()

    def _unborn(self, num_envs: int, seed: int) -> MazeState:
        """The state before the first episode."""
        numbers = torch.arange(num_envs, device=self._device)
        key = random_bits(numbers, *seed_words(seed))
        return blank_state(key, self._rules.num_sprites)

    def _check_begun(self) -> None:
        if not self._begun:
            raise RuntimeError("call reset() first: no episode has begun")

    def _on_floor(self, position: Tensor) -> Tensor:
        """True for each of the (N, 2) positions that is on a floor of its level: (N,) bool."""
        ground = self._levels.ground
        height, width = self._pool.cells.shape[1:]
        column, row = ((position.T - ground.origin) / ground.cell).floor().long().unbind()
        inside: Tensor = (column >= 0) & (column < width) & (row >= 0) & (row < height)
        row, column = row.clamp(0, height - 1), column.clamp(0, width - 1)
        kind = self._levels.cells[self._state.level, row * width + column]
        return inside & (kind != CellKind.WALL) & (kind != CellKind.VOID)

    def _checked(self, actions: Tensor) -> Tensor:
        """Returns valid indices; on a GPU, invalid ones are raised by the next `check`."""
        count = self.spec.num_actions
        check_actions("actions", actions, self.spec.num_envs)
        if actions.device != self._device:
            raise ValueError(f"actions must be on {self._device}, got {actions.device}")
        if self._device.type == "cpu":
            outside = (actions < 0) | (actions >= count)
            if outside.any():
                raise ValueError(
                    f"actions must be in 0 .. {count - 1}, got {int(actions[outside][0])}"
                )
            return actions
        return _within(actions, count, self._out_of_range)

    def _unpack(self, snapshots: Tensor) -> Scene:
        return snapshot.unpack(snapshots, self._state.sprite.shape[1])

    def _checked_scene(self, snapshots: Tensor) -> Scene:
        """Unpacks and checks snapshots; on a GPU, invalid ones are raised by `check`."""
        check_type("snapshots", snapshots, Tensor)
        scene = self._unpack(snapshots.to(self._device))
        scene, is_bad = snapshot.within_bounds(scene, self._levels.num_levels)
        if self._device.type == "cpu" and is_bad:
            raise ValueError("snapshots must be from this world, got values out of range")
        self._out_of_range |= is_bad
        return scene

    def _emit(self, outcome: TaskSignals, first: Tensor) -> Step:
        observation, view = self._frames(self.scene())
        return Step(
            observation=observation,
            view=view,
            reward=outcome.reward,
            first=first,
            terminated=outcome.terminated,
            truncated=outcome.truncated,
            position=self._position(self._state.position),
        )

    def _frames(self, scene: Scene, where: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Draws observations and views; a CPU draws only the rows of the mask `where`."""
        observation = self._draw(self._draw_observation, scene, where)
        if self._draw_view is self._draw_observation:
            return observation, observation
        return observation, self._draw(self._draw_view, scene, where)

    def _draw(self, renderer: Renderer, scene: Scene, where: Tensor | None) -> Tensor:
        if where is None or self._rules.always:
            return renderer.draw(scene)
        rows = where.nonzero().squeeze(1)
        frames = renderer.draw(scene, rows)
        return frames.new_zeros(len(where), *frames.shape[1:]).index_copy_(0, rows, frames)

    def _position(self, position: Tensor) -> Tensor:
        return torch.cat((position, self._height), dim=1)


@fused
def _within(actions: Tensor, count: int, was_outside: Tensor) -> Tensor:
    """The actions as valid indices; notes whether some were not."""
    was_outside |= ((actions < 0) | (actions >= count)).any()
    return actions.long().clamp(0, count - 1)
