"""MazeWorld: N mazes behind the World protocol.

Shapes: N environments, A actions.
"""

import operator
from collections.abc import Mapping

import torch
from torch import Tensor

from episodic_curiosity.randomness import random_below, random_bits
from episodic_curiosity.worlds import SPLITS, Split, Step, WorldSpec
from episodic_curiosity.worlds.maze import snapshot
from episodic_curiosity.worlds.maze.compiled import Turn, compile_turn
from episodic_curiosity.worlds.maze.levels import find_pool, make_levels
from episodic_curiosity.worlds.maze.render import Renderer
from episodic_curiosity.worlds.maze.rules import Outcome, Purpose, Rules
from episodic_curiosity.worlds.maze.scene import Cell, Scene
from episodic_curiosity.worlds.maze.state import MazeState, blank_state, scene_of
from episodic_curiosity.worlds.maze.tasks import (
    COMMANDS,
    ORACLE_CELL,
    change_task,
    find_task,
)

ORIGIN_HEIGHT = 24.125  # of a body's origin above the floor
MASK_32 = 0xFFFFFFFF


class MazeWorld:
    """One of the maze tasks; `step` mutates it in place, so that a CUDA graph can replay it."""

    def __init__(
        self,
        task: str,
        *,
        num_envs: int,
        seed: int,
        device: torch.device | str = "cpu",
        split: Split = "train",
        observation_size: tuple[int, int] = (84, 84),
        view_size: tuple[int, int] | None = None,
        num_levels: int | None = None,
        level_seed: int = 0,
        layout: str | None = None,
        stagger: bool = False,
        **changes: object,
    ) -> None:
        """Sizes are (height, width); `changes` are the options of tasks.change_task.

        Worlds with different seeds play different episodes on the same levels, those
        of `level_seed`; `stagger` lets the first episodes begin at any point of their clock.
        """
        if split not in SPLITS:
            raise ValueError(f"there is no split {split!r}; choose one of {', '.join(SPLITS)}")
        if operator.index(num_envs) < 1:
            raise ValueError(f"num_envs must be at least 1, got {num_envs}")
        if not 0 <= operator.index(seed) < 1 << 63:
            raise ValueError(f"a seed is a whole number from 0 to 2**63 - 1, got {seed}")
        self._task = change_task(find_task(task), changes)
        self._device = torch.device(device)
        self._stagger = stagger
        names = self._task.action_names
        commands = [COMMANDS[name] for name in names]
        self._commands = torch.tensor(
            [[c.forward, c.right, c.turn] for c in commands], device=self._device
        ).T.contiguous()  # (3, A)
        self._fires = torch.tensor([c.fire for c in commands], device=self._device)
        pool = find_pool(
            self._task, layout=layout, num_levels=num_levels, level_seed=level_seed, split=split
        )
        self._levels = make_levels(self._task, pool, self._device)
        self._rules = Rules(
            self._task,
            self._levels,
            can_fire=any(command.fire for command in commands),
            always=self._device.type != "cpu",
        )
        on_cpu = self._device.type == "cpu"
        self._turn: Turn = self._rules.turn if on_cpu else compile_turn(self._rules)
        self._draw_observation = self._renderer(observation_size)
        self._draw_view = self._draw_observation
        if view_size not in (None, observation_size):
            self._draw_view = self._renderer(view_size)
        self._height = torch.full(
            (num_envs, 1), self._task.floor + ORIGIN_HEIGHT, device=self._device
        )
        numbers = torch.arange(num_envs, device=self._device)
        key = random_bits(numbers, seed & MASK_32, seed >> 32)
        self._state = blank_state(key, self._rules.num_sprites)
        self._begun = False
        self._out_of_range = torch.zeros((), dtype=torch.bool, device=self._device)
        self.spec = WorldSpec(
            task=f"maze/{task}",
            num_envs=num_envs,
            device=self._device,
            observation_shape=(3, *observation_size),
            observation_dtype=torch.uint8,
            view_shape=(3, *(view_size or observation_size)),
            view_dtype=torch.uint8,
            num_actions=len(names),
            action_names=names,
            episode_steps=self._task.episode_steps,
            can_restore=True,
            can_redraw=True,
            has_position=True,
            oracle_cell=ORACLE_CELL,
        )

    def reset(self) -> Step:
        """Begins a new episode everywhere."""
        state = self._rules.new_episode(self._state)
        if self._stagger:
            phase = random_below(self._task.episode_steps, state.key, Purpose.PHASE)
            state = state._replace(clock=phase, spawned_at=phase)
        self._keep(state)
        self._begun = True
        step = self.observe()
        return step._replace(first=torch.ones_like(step.first))

    def step(self, actions: Tensor) -> Step:
        """Acts once everywhere; the final_... fields are None while no episode ends."""
        if not self._begun:
            raise RuntimeError("call reset() before the first step()")
        actions = self._checked(actions)
        outcome, last, state = self._turn(
            self._state, self._commands[:, actions], self._fires[actions]
        )
        ended = outcome.terminated | outcome.truncated
        if last is state:
            self._keep(state)
            return self._emit(outcome, ended)
        # Drawn first: `last` shares with the present state what the step left as it was.
        final_observation, final_view = self._frames(scene_of(last), ended)
        final_position = self._position(last)
        self._keep(state)
        return self._emit(outcome, ended)._replace(
            final_observation=final_observation,
            final_view=final_view,
            final_position=final_position,
        )

    def observe(self) -> Step:
        """What there is to see now, without acting."""
        nothing = torch.zeros_like(self._state.yaw)
        no = nothing.bool()
        return self._emit(Outcome(nothing, no, no.clone()), no.clone())

    def place(self, position: Tensor, yaw: Tensor) -> Step:
        """Puts bodies at (N, 2) or (N, 3) positions, at rest, looking along (N,) degrees."""
        count = self.spec.num_envs
        if position.shape not in ((count, 2), (count, 3)) or yaw.shape != (count,):
            raise ValueError(
                f"place wants positions of shape ({count}, 2) and yaws of shape ({count},), "
                f"got {tuple(position.shape)} and {tuple(yaw.shape)}"
            )
        position = position[:, :2].to(self._device, torch.float32)
        outside = ~self._on_floor(position)
        if outside.any():
            raise ValueError(f"there is no floor at {position[outside][0].tolist()}")
        self._keep(
            self._state._replace(
                position=position,
                velocity=torch.zeros_like(position),
                yaw=yaw.to(self._device, torch.float32) % 360.0,
            )
        )
        return self.observe()

    def scene(self) -> Scene:
        """What the present pictures depend on."""
        return scene_of(self._state)

    def snapshot(self) -> Tensor:
        """The present views as (N, at most 256) bytes, for `redraw`."""
        return snapshot.pack(self.scene())

    def redraw(self, snapshots: Tensor) -> Tensor:
        """The views of any number of snapshots, exactly as they were drawn then."""
        num_sprites = self._state.sprite.shape[1]
        scene = snapshot.unpack(snapshots.to(self._device), num_sprites)
        if self._device.type == "cpu":
            return self._draw_view.draw(scene)
        # A GPU's kernels are compiled for batches of N: draw in such batches, repeating a row.
        size, count = self.spec.num_envs, len(snapshots)
        frames = []
        for start in range(0, count, size):
            rows = torch.arange(start, start + size, device=self._device).clamp(max=count - 1)
            batch = Scene(*(field[rows] for field in scene))
            frames.append(self._draw_view.draw(batch))
        return torch.cat(frames)[:count]

    def state(self) -> dict[str, Tensor]:
        """A copy of everything; `load_state` continues from it bit for bit."""
        self.check()
        return {name: field.clone() for name, field in self._state._asdict().items()}

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        """Continues where a world of the same task, options and size was."""
        if state.keys() != set(MazeState._fields):
            wrong = sorted(state.keys() ^ set(MazeState._fields))
            raise ValueError(
                f"this is no state of a maze world: {', '.join(wrong)} do not match"
            )
        for name, field in self._state._asdict().items():
            if state[name].shape != field.shape:
                raise ValueError(
                    f"the state's {name} has shape {tuple(state[name].shape)}, "
                    f"this world's {tuple(field.shape)}"
                )
        self._keep(MazeState(**state))
        self._begun = True

    def check(self) -> None:
        """Raises if an action since the last check was out of range; waits for the GPU."""
        if bool(self._out_of_range):
            self._out_of_range.zero_()
            raise ValueError(f"an action was not one of 0 .. {self.spec.num_actions - 1}")

    def close(self) -> None:
        """Nothing is held that must be given back; late errors of a GPU world are raised."""
        self.check()

    def _renderer(self, size: tuple[int, int]) -> Renderer:
        height, width = size
        return Renderer(self._task.theme, self._levels.stage, height, width, self._device)

    def _on_floor(self, position: Tensor) -> Tensor:
        """Which of (N, 2) positions are on some floor of their row's level: (N,) bool."""
        ground, cells = self._levels.ground, self._levels.stage.cells
        column, row = ((position.T - ground.origin) / ground.cell).floor().long().unbind()
        height, width = cells.shape[1:]
        inside = (column >= 0) & (column < width) & (row >= 0) & (row < height)
        row, column = row.clamp(0, height - 1), column.clamp(0, width - 1)
        kind = cells[self._state.level, row, column]
        return inside & (kind != Cell.WALL) & (kind != Cell.VOID)

    def _checked(self, actions: Tensor) -> Tensor:
        """Valid indices; on a GPU a bad one is noted and raised by the next `check`."""
        wanted, count = (self.spec.num_envs,), self.spec.num_actions
        if actions.shape != wanted or actions.dtype not in (torch.int64, torch.int32):
            raise ValueError(
                f"actions must be integers of shape {wanted}, got {actions.dtype} of shape "
                f"{tuple(actions.shape)}"
            )
        if actions.device.type != self._device.type:
            raise ValueError(f"actions must be on {self._device}, got {actions.device}")
        outside = (actions < 0) | (actions >= count)
        if self._device.type == "cpu":
            if outside.any():
                raise ValueError(
                    f"action {int(actions[outside][0])} is not one of 0 .. {count - 1}"
                )
            return actions
        self._out_of_range |= outside.any()
        return actions.clamp(0, count - 1)

    def _keep(self, state: MazeState) -> None:
        for held, new in zip(self._state, state, strict=True):
            if held is not new:
                held.copy_(new)

    def _emit(self, outcome: Outcome, first: Tensor) -> Step:
        observation, view = self._frames(self.scene())
        return Step(
            observation=observation,
            view=view,
            reward=outcome.reward,
            first=first,
            terminated=outcome.terminated,
            truncated=outcome.truncated,
            position=self._position(self._state),
        )

    def _frames(self, scene: Scene, where: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Observations and views; where few rows are wanted, a CPU draws only those."""
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

    def _position(self, state: MazeState) -> Tensor:
        return torch.cat((state.position, self._height), dim=1)
