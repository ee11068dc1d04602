"""MuJoCo's ant: the options of a run and the record of the family."""

from dataclasses import dataclass
from typing import Any

from episodic_curiosity.worlds.base import Split, WorldConfig
from episodic_curiosity.worlds.family import Family


@dataclass(frozen=True, kw_only=True)
class AntConfig(WorldConfig):
    """MuJoCo's ant: body features for the policy, the head camera for curiosity."""

    stagger: bool = False  # start first episodes at a random step count
    episode_steps: int | None = None  # truncates episodes; None: 1000
    gentle_play: float = 1.0  # bound on random actions of every second ant
    floor_period: int | None = None  # tiles after which the floor repeats; None: never

    def options(self, split: Split) -> dict[str, Any]:
        """As for every world, but `view_size` is passed if None, too: it disables rendering."""
        return super().options(split) | {"view_size": self.view_size, "final_frames": False}


FAMILY = Family(
    name="ant",
    tasks={
        "no-reward": "a four-legged body on a coloured floor, no reward; 1000 steps",
        "escape-circle": "+1 at each circle around the start, from radius 10 outwards",
    },
    config=AntConfig,
    make="episodic_curiosity.worlds.ant.world:AntWorld",
    simulated_on="host",
    frames="views",
    can_redraw=True,
    scenery="episodic_curiosity.worlds.ant.scenery:open_scenery",
    television="unswitched",
)
