"""The record of the corridors."""

from dataclasses import dataclass

from episodic_curiosity import Family
from episodic_curiosity.worlds.base import WorldConfig


@dataclass(frozen=True, kw_only=True)
class CorridorConfig(WorldConfig):
    """Corridors, one cell wide."""

    length: int = 9  # cells
    episode_steps: int = 6  # at most


FAMILY = Family(
    name="corridor",
    tasks={"end": "+1 at the eastern end of a corridor"},
    config=CorridorConfig,
    make="corridor_worlds.world:CorridorWorld",
    simulated_on="device",
    frames="shared",
    settings="gym",
    ppo={"entropy_coefficient": 0.02},
)
