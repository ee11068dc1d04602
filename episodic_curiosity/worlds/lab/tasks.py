"""The paper's seven tasks: the part shared by our mazes and DeepMind Lab.

The numbers are from the paper's section 4 and appendix.
"""

from dataclasses import dataclass

from episodic_curiosity.support.checks import check_choice

ORACLE_CELL = 30.0  # side of a Grid-Oracle cell, in units

_NINE = (
    "forward",
    "back",
    "strafe left",
    "strafe right",
    "look left",
    "look right",
    "look left + forward",
    "look right + forward",
    "fire",
)
_SETS = {"nine": _NINE, "no-fire": _NINE[:8], "three": ("forward", "look left", "look right")}
ACTION_SETS = _SETS | {f"{name}+idle": (*names, "idle") for name, names in _SETS.items()}


@dataclass(frozen=True, kw_only=True)
class LabTask:
    """A level of DMLab-30 with the paper's changes."""

    line: str
    level: str
    actions: str = "nine"
    reward_scale: float = 1.0
    min_goal_distance: int = 0  # least path length from start to goal, in cells


_GOALS = "explore_goal_locations_large"
LAB_TASKS = {
    "sparse": LabTask(
        line="+10 at the goal of a random maze, then a new start in the same maze; 1800 steps",
        level=_GOALS,
    ),
    "very-sparse": LabTask(
        line="sparse, with starts at least 10 cells from the goal",
        level=_GOALS,
        min_goal_distance=10,
    ),
    "sparse-doors": LabTask(
        line="sparse, with random doors that change at every start",
        level="explore_obstructed_goals_large",
    ),
    "no-reward": LabTask(
        line="sparse without reward; the score is the number of cells covered",
        level=_GOALS,
        reward_scale=0.0,
    ),
    "no-reward-no-fire": LabTask(
        line="no-reward without the fire action",
        level=_GOALS,
        reward_scale=0.0,
        actions="no-fire",
    ),
    "dense-1": LabTask(
        line="keys and doors +1, the goal +50 and the end of the episode; 900 steps",
        level="rooms_keys_doors_puzzle",
    ),
    "dense-2": LabTask(
        line="good objects +1, bad objects -1, the tenth ends the episode; 900 steps",
        level="rooms_collect_good_objects_train",
    ),
}


def find_actions(name: str) -> tuple[str, ...]:
    """Returns the action names of a set, in the order of their indices."""
    check_choice("actions", name, ACTION_SETS)
    return ACTION_SETS[name]
