"""One in-place step of the rules; on a GPU, one function compiled to a few kernels.

Shapes: N environments.
"""

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import torch
from torch import Tensor

from episodic_curiosity.support.compiling import compile_varying, compiled_size, mark_varying
from episodic_curiosity.worlds.maze.render import snapshot
from episodic_curiosity.worlds.maze.rules.rules import Rules, TaskSignals
from episodic_curiosity.worlds.maze.rules.state import MazeState, scene_of
from episodic_curiosity.worlds.maze.tasks import MazeTask


class Final(NamedTuple):
    """The final states of the episodes that a step ended; other rows are undefined."""

    snapshot: Tensor  # (N, bytes) uint8
    position: Tensor  # (N, 2) float32


Advance = Callable[[MazeState, Tensor], tuple[TaskSignals, Final | None]]  # takes (N,) actions


def compile_advance(rules: Rules, num_envs: int, backend: str = "inductor") -> Advance:
    """Returns the step function for a GPU, compiled at its first call.

    It is compiled for one number of rows per task; a world with fewer rows pads its own.
    """
    size = compiled_size(("rules", rules.task, backend), num_envs)
    compiled = _compiled(rules.task, size, backend)
    for tensor in (*rules.levels, rules.levels.ground.corners):
        if isinstance(tensor, Tensor):
            mark_varying(tensor)  # (L, ...)

    def advance_all(state: MazeState, actions: Tensor) -> tuple[TaskSignals, Final]:
        reward, terminated, truncated, packed, position = compiled(rules, state, actions)
        return TaskSignals(reward, terminated, truncated), Final(packed, position)

    if size == num_envs:
        return advance_all

    def advance_filled_up(state: MazeState, actions: Tensor) -> tuple[TaskSignals, Final]:
        rows = torch.arange(size, device=actions.device).clamp(max=num_envs - 1)
        filled = MazeState(*(field[rows] for field in state))
        outcome, final = advance_all(filled, actions[rows])
        keep(state, MazeState(*(field[:num_envs] for field in filled)))
        return (
            TaskSignals(*(field[:num_envs] for field in outcome)),
            Final(*(field[:num_envs] for field in final)),
        )

    return advance_filled_up


@cache
def _compiled(
    task: MazeTask,  # noqa: ARG001 - part of the cache key:
    size: int,  # noqa: ARG001 - torch stops recompiling a function after 8 variants
    backend: str,
) -> Callable[..., Any]:
    return compile_varying(
        _plain_advance, backend=backend, fixed=(MazeState, Tensor), tuned=False
    )


def keep(state: MazeState, new: MazeState) -> None:
    """Copies `new` into the tensors of `state`."""
    for held, field in zip(state, new, strict=True):
        if held is not field:
            held.copy_(field)


def advance(
    rules: Rules, state: MazeState, actions: Tensor
) -> tuple[TaskSignals, Final | None]:
    """One step in place; `Final` is None if no episode ended, which only a CPU finds out."""
    command, fire = rules.commands[:, actions], rules.fires[actions]
    outcome, last, following = rules.turn(state, command, fire)
    final = None
    if last is not following:
        # Packed before `keep`: `last` shares its unchanged tensors with `state`.
        final = Final(snapshot.pack(scene_of(last)), last.position.clone())
    keep(state, following)
    return outcome, final


def _plain_advance(rules: Rules, state: MazeState, actions: Tensor) -> tuple[Tensor, ...]:
    """Returns a plain tuple: torch.compile does not always preserve named ones."""
    outcome, final = advance(rules, state, actions)
    assert final is not None
    return (*outcome, *final)
