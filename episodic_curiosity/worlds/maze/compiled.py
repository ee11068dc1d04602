"""A turn of the rules as one compiled function, for a GPU: a few kernels instead of 500."""

from collections.abc import Callable
from types import FunctionType

import torch
from torch import Tensor

from episodic_curiosity.worlds.maze.rules import Outcome, Rules
from episodic_curiosity.worlds.maze.state import MazeState

Turn = Callable[[MazeState, Tensor, Tensor], tuple[Outcome, MazeState, MazeState]]
Tensors = tuple[Tensor, ...]


def compile_turn(rules: Rules, backend: str = "inductor") -> Turn:
    """`rules.turn`, compiled at its first call."""
    # torch.compile counts recompilations per code object: every world has its own.
    own = FunctionType(_plain_turn.__code__.replace(), _plain_turn.__globals__)
    compiled = torch.compile(own, backend=backend, fullgraph=True, dynamic=False)

    def turn(
        state: MazeState, command: Tensor, fire: Tensor
    ) -> tuple[Outcome, MazeState, MazeState]:
        outcome, last, following = compiled(rules, state, command, fire)
        return Outcome(*outcome), MazeState(*last), MazeState(*following)

    return turn


def _plain_turn(
    rules: Rules, state: MazeState, command: Tensor, fire: Tensor
) -> tuple[Tensors, Tensors, Tensors]:
    """A turn that returns plain tuples; torch.compile does not always hand named ones back."""
    outcome, last, following = rules.turn(state, command, fire)
    return (*outcome,), (*last,), (*following,)
