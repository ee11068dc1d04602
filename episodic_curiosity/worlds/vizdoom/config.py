"""Options of the ViZDoom worlds."""

from dataclasses import dataclass

from episodic_curiosity.worlds.base import WorldConfig


@dataclass(frozen=True, kw_only=True)
class ViZDoomConfig(WorldConfig):
    """ViZDoom games; sizes are (height, width), None is the task's default."""

    stagger: bool = False  # start first episodes at a random step count
    episode_steps: int | None = None  # truncates episodes
    actions: tuple[str, ...] | None = None  # button names joined by +, or idle
    num_workers: int | None = None  # processes that share the games; None: one per core
    timeout: float | None = None  # seconds until a process is considered frozen; None: 60
