"""Options of the Gymnasium worlds."""

from dataclasses import dataclass
from typing import Literal

from episodic_curiosity.worlds.base import WorldConfig

Vectorization = Literal["auto", "sync", "async", "vector_entry_point"]


@dataclass(frozen=True, kw_only=True)
class GymnasiumConfig(WorldConfig):
    """Gymnasium environments; sizes of frames are (height, width)."""

    vectorization: Vectorization = "auto"  # how the copies are stepped
    episode_steps: int | None = None  # truncates episodes; None: the environment's limit
    oracle_cell: float | None = None  # side of a Grid-Oracle cell; needs positions
    key: str | None = None  # part of a dictionary of observations; None: "image" or the frame
    grey: bool | None = None  # turns frames grey; None: for Atari
    largest_byte: int | None = None  # scaled to 255; None: 10 for MiniGrid's indices, else 255
    timeout: float | None = None  # seconds until a process is considered frozen; None: 60
