"""One step of the rules in place: on a GPU one compiled function, a few kernels for hundreds.

Shapes: N environments.
"""

from collections.abc import Callable
from types import FunctionType
from typing import NamedTuple

import torch
from torch import Tensor

from episodic_curiosity.worlds.maze import snapshot
from episodic_curiosity.worlds.maze.rules import Outcome, Rules
from episodic_curiosity.worlds.maze.state import MazeState, scene_of


class Final(NamedTuple):
    """Where the episodes that a step ended were left; rows that play on are undefined."""

    snapshot: Tensor  # (N, bytes) uint8
    position: Tensor  # (N, 2) float32


Advance = Callable[[MazeState, Tensor, Tensor], tuple[Outcome, Final | None]]


def make_advance(rules: Rules) -> Advance:
    """The step of a CPU: `Final` is None where no episode ended."""

    def advance(
        state: MazeState, command: Tensor, fire: Tensor
    ) -> tuple[Outcome, Final | None]:
        return _advance(rules, state, command, fire)

    return advance


def compile_advance(rules: Rules, backend: str = "inductor") -> Advance:
    """The step of a GPU, compiled at its first call."""
    # torch.compile counts recompilations per code object: every world has its own.
    own = FunctionType(_plain_advance.__code__.replace(), _plain_advance.__globals__)
    compiled = torch.compile(own, backend=backend, fullgraph=True, dynamic=False)

    def advance(state: MazeState, command: Tensor, fire: Tensor) -> tuple[Outcome, Final]:
        reward, terminated, truncated, packed, position = compiled(rules, state, command, fire)
        return Outcome(reward, terminated, truncated), Final(packed, position)

    return advance


def keep(state: MazeState, new: MazeState) -> None:
    """Copies a state into the tensors of another."""
    for held, field in zip(state, new, strict=True):
        if held is not field:
            held.copy_(field)


def _advance(
    rules: Rules, state: MazeState, command: Tensor, fire: Tensor
) -> tuple[Outcome, Final | None]:
    outcome, last, following = rules.turn(state, command, fire)
    final = None
    if last is not following:
        # Packed first: `last` shares with the present state what the step left as it was.
        final = Final(snapshot.pack(scene_of(last)), last.position.clone())
    keep(state, following)
    return outcome, final


def _plain_advance(
    rules: Rules, state: MazeState, command: Tensor, fire: Tensor
) -> tuple[Tensor, ...]:
    """A plain tuple, for torch.compile does not always hand named ones back whole."""
    outcome, final = _advance(rules, state, command, fire)
    assert final is not None
    return (*outcome, *final)
