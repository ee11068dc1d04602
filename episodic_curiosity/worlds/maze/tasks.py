"""The seven maze tasks: levels, rewards and episode lengths.

The numbers are those of DeepMind Lab's levels as the paper uses them (section 4 and appendix).
"""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from episodic_curiosity.support.checks import check_at_least, check_number, check_type
from episodic_curiosity.worlds.lab.elements import TEXT_MAZE, DoorStyle, Theme
from episodic_curiosity.worlds.lab.tasks import LAB_TASKS, find_actions
from episodic_curiosity.worlds.maze.levels.layouts import MazeLayout
from episodic_curiosity.worlds.maze.levels.pool import ROOM_THEME
from episodic_curiosity.worlds.maze.levels.puzzles import PuzzleLayout
from episodic_curiosity.worlds.maze.rules.body import SLAB

LOOK = 20 * 0.1056  # degrees turned per frame


class Command(NamedTuple):
    """The controls that an action holds for the four frames of a step."""

    forward: float = 0.0
    right: float = 0.0
    turn: float = 0.0  # degrees per frame, to the left
    fire: bool = False


COMMANDS = {
    "forward": Command(forward=1.0),
    "back": Command(forward=-1.0),
    "strafe left": Command(right=-1.0),
    "strafe right": Command(right=1.0),
    "look left": Command(turn=LOOK),
    "look right": Command(turn=-LOOK),
    "look left + forward": Command(turn=LOOK, forward=1.0),
    "look right + forward": Command(turn=-LOOK, forward=1.0),
    "fire": Command(fire=True),
    "idle": Command(),
}


@dataclass(frozen=True, kw_only=True)
class MazeTask:
    """One task; `rule` selects between a goal, keys and doors, and objects in a room."""

    rule: Literal["goal", "keys", "objects"] = "goal"
    layout: MazeLayout | PuzzleLayout | None = None  # None: the single room of dense-2
    theme: Theme = TEXT_MAZE
    slab: float = SLAB
    floor: float = 1.0  # height of the floor in DeepMind Lab's coordinates
    episode_steps: int = 1800
    reward_scale: float = 1.0
    actions: str = "nine"
    idle: bool = False  # adds an action that does nothing

    @property
    def action_names(self) -> tuple[str, ...]:
        names = find_actions(self.actions)
        return (*names, "idle") if self.idle and "idle" not in names else names

    @property
    def has_doors(self) -> bool:
        return self.rule == "keys" or (
            isinstance(self.layout, MazeLayout) and self.layout.doors
        )

    @property
    def min_goal_distance(self) -> int:
        return self.layout.min_goal_distance if isinstance(self.layout, MazeLayout) else 0


def _with_goal(name: str, *, doors: bool = False) -> MazeTask:
    task = LAB_TASKS[name]
    return MazeTask(
        layout=MazeLayout(doors=doors, min_goal_distance=task.min_goal_distance),
        reward_scale=task.reward_scale,
        actions=task.actions,
    )


TASKS = {
    "sparse": _with_goal("sparse"),
    "very-sparse": _with_goal("very-sparse"),
    "sparse-doors": _with_goal("sparse-doors", doors=True),
    "no-reward": _with_goal("no-reward"),
    "no-reward-no-fire": _with_goal("no-reward-no-fire"),
    "dense-1": MazeTask(
        rule="keys",
        layout=PuzzleLayout(),
        theme=Theme(door_style=DoorStyle.FENCE),
        episode_steps=900,
    ),
    "dense-2": MazeTask(
        rule="objects", theme=ROOM_THEME, slab=0.0, floor=8.0, episode_steps=900
    ),
}

# Options that change the layout, with the fields they set.
LAYOUT_OPTIONS = {
    "maze_size": ("height", "width"),
    "rooms": ("max_rooms",),
    "room_size": ("room_min", "room_max"),
    "min_goal_distance": ("min_goal_distance",),
    "doors": ("doors",),
}
# Options of MazeWorld itself, and options of the task.
WORLD_OPTIONS = (
    "observation_size",
    "view_size",
    "num_levels",
    "level_seed",
    "layout",
    "stagger",
)
TASK_OPTIONS = ("episode_steps", "actions", "idle", "reward_scale")


def change_task(task: MazeTask, options: Mapping[str, Any]) -> MazeTask:
    """Returns the task with changes such as maze_size=9 or episode_steps=300."""
    layout_changes: dict[str, Any] = {}
    task_changes: dict[str, Any] = {}
    for option, value in options.items():
        if option in TASK_OPTIONS:
            task_changes[option] = value
        elif option in LAYOUT_OPTIONS:
            fields = LAYOUT_OPTIONS[option]
            values = value if isinstance(value, tuple) else (value,) * len(fields)
            if len(values) != len(fields):
                raise ValueError(f"{option} must be 1 or {len(fields)} numbers, got {value!r}")
            layout_changes |= zip(fields, values, strict=True)
        else:
            choices = ", ".join((*WORLD_OPTIONS, *TASK_OPTIONS, *LAYOUT_OPTIONS))
            raise ValueError(f"mazes have no option {option!r}; choose one of {choices}")
    if layout_changes:
        if not isinstance(task.layout, MazeLayout):
            given = ", ".join(option for option in options if option in LAYOUT_OPTIONS)
            raise ValueError(f"only the tasks with a goal have the options {given}")
        task_changes["layout"] = dataclasses.replace(task.layout, **layout_changes)
    task = dataclasses.replace(task, **task_changes)
    check_at_least("episode_steps", task.episode_steps, 1)
    check_number("reward_scale", task.reward_scale)
    check_type("idle", task.idle, bool)
    find_actions(task.actions)
    return task
