"""The record of MuJoCo's ant."""

from episodic_curiosity.worlds.ant.config import AntConfig
from episodic_curiosity.worlds.family import Family

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
