"""Overhead map of a maze scene."""

from typing import Any

from episodic_curiosity.worlds.base import Picture
from episodic_curiosity.worlds.lab.elements import DoorStyle, Theme
from episodic_curiosity.worlds.lab.overhead import FloorPlan, draw_overhead
from episodic_curiosity.worlds.maze.levels.stored import LevelPool
from episodic_curiosity.worlds.maze.render.scene import Scene


def overhead_of(theme: Theme, pool: LevelPool, scene: Scene, row: int, **marks: Any) -> Picture:
    """Draws the level of one row of a scene from above, with its items and its agent."""
    level = int(scene.level[row])
    kinds, places = scene.sprite[row].tolist(), scene.sprite_position[row].tolist()
    fenced = theme.door_style == DoorStyle.FENCE
    plan = FloorPlan(
        pool.cells[level],
        pool.doors[level],
        pool.door_colours[level] if fenced else None,
        int(scene.open_doors[row]),
    )
    items = [(kind, *place) for kind, place in zip(kinds, places, strict=True) if kind]
    agent = (*scene.position[row].tolist(), float(scene.yaw[row]))
    return draw_overhead(theme, plan, **{"items": items, "agent": agent, **marks})
