"""Levels by name: the paper's tasks under the names of our mazes, or any level of Lab."""

import dataclasses
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from episodic_curiosity.worlds.base import Split
from episodic_curiosity.worlds.lab.tasks import LAB_TASKS

FRAMES_PER_SECOND = 60
REPEAT = 4  # frames per step
LONGEST = 300  # seconds; the longest level of DMLab-30
FOLDER = "contributed/dmlab30/"
MIN_GOAL_DISTANCE = "minGoalDistance"  # a setting of the authors' patch

# Mixed into the seeds of each split, so that splits share no level. The authors' values.
MIXER_SEEDS: dict[Split, int] = {
    "r-network": 0,
    "train": 0x3D23BE66,
    "validation": 0x2B79ED94,
    "test": 0x600D5EED,
}

DMLAB_30 = (
    "rooms_collect_good_objects_train",
    "rooms_exploit_deferred_effects_train",
    "rooms_select_nonmatching_object",
    "rooms_watermaze",
    "rooms_keys_doors_puzzle",
    "language_select_described_object",
    "language_select_located_object",
    "language_execute_random_task",
    "language_answer_quantitative_question",
    "lasertag_one_opponent_small",
    "lasertag_three_opponents_small",
    "lasertag_one_opponent_large",
    "lasertag_three_opponents_large",
    "natlab_fixed_large_map",
    "natlab_varying_map_regrowth",
    "natlab_varying_map_randomized",
    "skymaze_irreversible_path_hard",
    "skymaze_irreversible_path_varied",
    "psychlab_arbitrary_visuomotor_mapping",
    "psychlab_continuous_recognition",
    "psychlab_sequential_comparison",
    "psychlab_visual_search",
    "explore_object_locations_small",
    "explore_object_locations_large",
    "explore_obstructed_goals_small",
    "explore_obstructed_goals_large",
    "explore_goal_locations_small",
    "explore_goal_locations_large",
    "explore_object_rewards_few",
    "explore_object_rewards_many",
)
# Test variants of two of them; Lab loads these only with allowHoldOutLevels.
HELD_OUT = ("rooms_collect_good_objects_test", "rooms_exploit_deferred_effects_test")

_SECONDS = {
    "explore_goal_locations_large": 120,
    "explore_goal_locations_small": 90,
    "explore_obstructed_goals_large": 120,
    "explore_obstructed_goals_small": 90,
    "rooms_keys_doors_puzzle": 60,
    "rooms_collect_good_objects_train": 60,
    "rooms_collect_good_objects_test": 60,
}

# Values for look right, look up, strafe right, forward, fire, jump and crouch.
ACTIONS = {
    "forward": (0, 0, 0, 1, 0, 0, 0),
    "back": (0, 0, 0, -1, 0, 0, 0),
    "strafe left": (0, 0, -1, 0, 0, 0, 0),
    "strafe right": (0, 0, 1, 0, 0, 0, 0),
    "look left": (-20, 0, 0, 0, 0, 0, 0),
    "look right": (20, 0, 0, 0, 0, 0, 0),
    "look left + forward": (-20, 0, 0, 1, 0, 0, 0),
    "look right + forward": (20, 0, 0, 1, 0, 0, 0),
    "fire": (0, 0, 0, 0, 1, 0, 0),
    "idle": (0, 0, 0, 0, 0, 0, 0),
}


@dataclass(frozen=True, kw_only=True)
class Level:
    """A level of Lab with the changes of a task."""

    path: str  # as Lab looks it up
    episode_steps: int  # at most; the level may end earlier
    actions: str = "nine"
    reward_scale: float = 1.0
    min_goal_distance: int = 0  # least path length from start to goal, in cells
    settings: dict[str, str] = field(default_factory=dict)

    def engine_options(
        self,
        settings: dict[str, str],
        action_names: tuple[str, ...],
        *,
        far_starts: int = 0,
        level_cache: str | Path | None = None,
        renderer: str = "software",
    ) -> dict[str, Any]:
        """Returns the arguments of engine.LabEngine."""
        return {
            "level": self.path,
            "settings": self.settings | settings,
            "actions": [ACTIONS[name] for name in action_names],
            "repeat": REPEAT,
            "reward_scale": self.reward_scale,
            "far_starts": far_starts,
            "level_cache": None if level_cache is None else os.path.abspath(level_cache),
            "renderer": renderer,
        }


def find_level(task: str) -> Level:
    """Returns a level by task of the paper, by name in DMLab-30 or by path."""
    played = LAB_TASKS.get(task)
    name = task if played is None else played.level
    is_ours = name in DMLAB_30 or name in HELD_OUT
    level = Level(
        path=FOLDER + name if is_ours else name,
        episode_steps=_SECONDS.get(name, LONGEST) * FRAMES_PER_SECOND // REPEAT,
        settings={"allowHoldOutLevels": "true"} if name in HELD_OUT else {},
    )
    if played is None:
        return level
    return dataclasses.replace(
        level,
        actions=played.actions,
        reward_scale=played.reward_scale,
        min_goal_distance=played.min_goal_distance,
    )
