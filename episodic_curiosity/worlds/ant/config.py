"""What a run can tell the ant."""

from dataclasses import dataclass
from typing import Any

from episodic_curiosity.worlds.base import Split, WorldConfig


@dataclass(frozen=True, kw_only=True)
class AntConfig(WorldConfig):
    """MuJoCo's ant; the policy sees its body, curiosity what its head camera sees."""

    stagger: bool = False  # let the first episodes begin at any point of their clock
    episode_steps: int | None = None  # the clock ends an episode after so many
    gentle_play: float = 1.0  # every second ant's random play keeps within so much of a motor

    def options(self, split: Split) -> dict[str, Any]:
        """As for every world; without a view nothing is drawn, which few methods mind."""
        return super().options(split) | {"view_size": self.view_size, "final_frames": False}
