"""What a run can tell ViZDoom."""

from dataclasses import dataclass

from episodic_curiosity.worlds.base import WorldConfig


@dataclass(frozen=True, kw_only=True)
class ViZDoomConfig(WorldConfig):
    """The games of ViZDoom; sizes are height and width, None is the task's own."""

    stagger: bool = False  # let the first episodes begin at any point of their clock
    episode_steps: int | None = None  # the clock ends an episode after so many
    actions: tuple[str, ...] | None = None  # names of buttons, joined by +, or idle
    num_workers: int | None = None  # processes that share the games out; None: by the cores
    timeout: float | None = None  # seconds until a process counts as frozen; None: 60
