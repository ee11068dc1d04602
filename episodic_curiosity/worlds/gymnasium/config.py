"""What a run can tell a Gymnasium environment."""

from dataclasses import dataclass
from typing import Literal

from episodic_curiosity.worlds.base import WorldConfig

Vectorization = Literal["auto", "sync", "async", "vector_entry_point"]


@dataclass(frozen=True, kw_only=True)
class GymnasiumConfig(WorldConfig):
    """The Gymnasium environments; sizes, of frames, are height and width."""

    vectorization: Vectorization = "auto"  # how copies are stepped
    episode_steps: int | None = None  # None: the environment's own
    oracle_cell: float | None = None  # side of a Grid-Oracle cell, where there are positions
