"""What a run can tell DeepMind Lab."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from episodic_curiosity.worlds.base import WorldConfig


@dataclass(frozen=True, kw_only=True)
class DMLabConfig(WorldConfig):
    """The games of DeepMind Lab; sizes are height and width, None is the task's own."""

    stagger: bool = False  # let the first episodes begin at any point of their clock
    episode_steps: int | None = None  # the clock ends an episode after so many, at the latest
    actions: str | None = None  # nine, no-fire or three, each also with +idle
    frame_size: tuple[int, int] | None = None  # what Lab draws and the rest is made of
    level_cache: Path | None = None  # a folder for compiled levels, to be shared by runs
    redraw_starts: bool = False  # very-sparse without the authors' patch: from the layout
    renderer: Literal["software", "hardware"] = "software"  # hardware: a GPU draws
    pictures: Path | None = None  # a folder of images for a television
    # Seconds until a process counts as frozen, enough for all levels to be compiled at once;
    # None: by the environments for each core.
    timeout: float | None = None

    def __post_init__(self) -> None:
        """A relative folder for levels means the one it was when it was named."""
        super().__post_init__()
        if self.level_cache is not None:
            object.__setattr__(self, "level_cache", self.level_cache.absolute())
