"""Similarity -> bonus: what curiosity pays, one module per bonus."""

from typing import Protocol

from torch import Tensor

from episodic_curiosity.worlds import Step


class Bonus(Protocol):
    """Rates what N environments have just emitted."""

    def bonus(self, step: Step, action: Tensor | None = None) -> Tensor:
        """(N,) float32, for the action that led to this step; updates what is remembered."""
