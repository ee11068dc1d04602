"""The scenarios: MyWayHome with the starts of its sub-tasks, and custom files."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from episodic_curiosity.support.checks import check_at_least
from episodic_curiosity.support.files import is_bare
from episodic_curiosity.worlds.vizdoom.scenario_file import (
    ScenarioFile,
    check_wad,
    read_scenario,
)

try:
    import vizdoom
except ImportError as missing:
    raise ImportError(
        "tasks named vizdoom/... need ViZDoom: pip install 'episodic-curiosity[vizdoom]'"
    ) from missing

REPEAT = 4  # tics per step
MY_WAY_HOME = "my_way_home"
THREE_ACTIONS = ("move-forward", "turn-left", "turn-right")
IDLE = "idle"


@dataclass(frozen=True)
class Start:
    """One of the map's 17 start spots, and the range of the player's angle there."""

    spot: int
    angles: tuple[int, int]  # in 1/65536 of a turn, counter-clockwise from east


# The sub-tasks of Pathak et al. 2017; their maps differ from MyWayHome only in the start.
STARTS = {
    "dense": None,  # any spot, any angle
    "sparse": Start(10, (0, 655)),
    "very-sparse": Start(15, (32112, 33423)),
}


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """A scenario's engine arguments, actions and step limit."""

    engine: dict[str, Any]  # arguments of engine.DoomEngine
    action_names: tuple[str, ...]
    episode_steps: int


def find_scenario(
    task: str, actions: Sequence[str] | None, episode_steps: int | None
) -> Scenario:
    """Finds a sub-task of MyWayHome, or a .cfg or .wad file.

    A bare name is one of the files shipped with ViZDoom, anything else is a path: write ./NAME
    for a file in the current folder.
    """
    if isinstance(actions, str):
        raise ValueError(f"actions must be a sequence of names, got the one name {actions!r}")
    shipped = Path(vizdoom.scenarios_path)
    if task in STARTS:
        found = read_scenario(shipped / f"{MY_WAY_HOME}.cfg", shipped)
        found.settings["living_reward"] = 0.0
        return _scenario(
            task,
            found,
            patches=_patches(STARTS[task]),
            ends_when_paid=True,
            actions=actions or THREE_ACTIONS,
            episode_steps=episode_steps,
        )
    file = shipped / task if is_bare(task) else Path(task)
    if not file.is_file() or file.suffix not in (".cfg", ".wad"):
        names = ", ".join(STARTS)
        raise ValueError(
            f"vizdoom/... must be one of {names}, a .cfg or .wad shipped with ViZDoom by name, "
            f"or the path of another (./NAME in the current folder), got {task!r}"
        )
    if file.suffix == ".wad":
        check_wad(file)
        found = ScenarioFile(wads={"doom_scenario_path": file.absolute()})
        actions = actions or THREE_ACTIONS
    else:
        found = read_scenario(file, shipped)
    return _scenario(task, found, actions=actions, episode_steps=episode_steps)


def _scenario(
    task: str,
    found: ScenarioFile,
    *,
    patches: Sequence[tuple[str, str]] = (),
    ends_when_paid: bool = False,
    actions: Sequence[str] | None,
    episode_steps: int | None,
) -> Scenario:
    if episode_steps is None:
        if (tics := int(found.settings.get("episode_timeout", 0))) == 0:
            raise ValueError(f"{task} sets no time limit: give episode_steps")
        episode_steps = -(-tics // REPEAT)
    check_at_least("episode_steps", episode_steps, 1)
    names = tuple(actions or (name.lower().replace("_", "-") for name in found.buttons))
    pressed = [_buttons(name) for name in names]
    buttons = sorted(set().union(*pressed))
    if not buttons:
        raise ValueError(f"{task} has no buttons to press: give actions")
    return Scenario(
        engine={
            "settings": found.settings,
            "game_args": found.game_args,
            "wads": {name: str(path) for name, path in found.wads.items()},
            "patches": list(patches),
            "buttons": buttons,
            "actions": [[button in action for button in buttons] for action in pressed],
            "repeat": REPEAT,
            "ends_when_paid": ends_when_paid,
        },
        action_names=names,
        episode_steps=episode_steps,
    )


def _buttons(action: str) -> set[str]:
    """The buttons of an action such as "idle", "attack" or "move-forward+turn-left"."""
    if action == IDLE:
        return set()
    buttons = {part.upper().replace("-", "_") for part in action.split("+")}
    for button in sorted(buttons):
        if button not in vizdoom.Button.__members__ or button.endswith("_DELTA"):
            raise ValueError(
                f"actions must be {IDLE!r} or binary buttons, such as "
                f"'move-forward+turn-left', got {action!r}"
            )
    return buttons


def _patches(start: Start | None) -> list[tuple[str, str]]:
    """Byte patches (old, new) of MyWayHome's compiled script that set the start.

    Script 2 pushes a random spot's number and a random angle, each with its bounds. The spot
    becomes a constant, followed by no-ops. The angle's bounds become the two variables that the
    spot no longer needs.
    """
    if start is None:
        return []
    low, high = (angle.to_bytes(4, "little").hex() for angle in start.angles)
    return [
        ("1d021d021d030ea7010f39", f"a7{start.spot:02x}" + 9 * "00"),
        ("b00000030000010039", "a7001d021d03390000"),
        ("160000000a00000011000000", f"16000000{low}{high}"),
    ]
