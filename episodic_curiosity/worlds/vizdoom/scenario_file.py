"""Reads ViZDoom's .cfg files, restricted to settings that cannot affect the system.

ViZDoom's own reader obeys `vizdoom_path` (the program to start) and `game_args` (any option of
the engine, such as the path of its log file). This reader accepts game settings by name, skips
settings that the world overrides, and rejects all others.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from episodic_curiosity.support.checks import short
from episodic_curiosity.support.files import is_bare, read_file

MAX_BYTES = 1_000_000
LONGEST_NAME = 255  # of a file
REWARDS = (
    "living_reward", "death_penalty", "death_reward", "map_exit_reward", "kill_reward",
    "secret_reward", "item_reward", "frag_reward", "hit_reward", "hit_taken_reward",
    "hit_taken_penalty", "damage_made_reward", "damage_taken_reward", "damage_taken_penalty",
    "health_reward", "armor_reward",
)  # fmt: skip
NUMBERS = ("doom_skill", "episode_start_time", "episode_timeout")
SWITCHES = (
    "render_corpses", "render_decals", "render_effects_sprites", "render_particles",
    "render_screen_flashes",
)  # fmt: skip
# Set by the world, or unused.
SKIPPED = (
    "audio_buffer_enabled", "audio_buffer_size", "audio_sampling_rate",
    "automap_buffer_enabled", "automap_mode", "automap_render_objects_as_sprites",
    "automap_render_textures", "automap_rotate", "available_game_variables", "console_enabled",
    "depth_buffer_enabled", "labels_buffer_enabled", "mode", "notifications_buffer_enabled",
    "notifications_buffer_size", "objects_info_enabled", "render_all_frames",
    "render_crosshair", "render_hud", "render_messages", "render_minimal_hud", "render_weapon",
    "screen_format", "screen_resolution", "sectors_info_enabled", "seed", "sound_enabled",
    "ticrate", "window_visible",
)  # fmt: skip
WADS = ("doom_scenario_path", "doom_game_path")
GAME_ARGS = ("+sv_noautoaim 1",)  # the only ones that ViZDoom's scenarios use
MAP_NAME = re.compile(r"[A-Za-z0-9_]{1,8}")
KNOWN = (*REWARDS, *NUMBERS, *SWITCHES, *SKIPPED, *WADS, "doom_map", "available_buttons")
KEYS = {name.replace("_", ""): name for name in (*KNOWN, "game_args")}
# A key, = or +=, and braces (maybe on later lines) or the rest of the line.
ENTRY = re.compile(r"(\w+)\s*(\+?=)(?:\s*(\{[^}]*\})|([^\n]*))\s*")


@dataclass
class ScenarioFile:
    """The game's settings in a .cfg file."""

    # Names of DoomGame's setters without set_, and their values.
    settings: dict[str, float | int | bool | str] = field(default_factory=dict)
    wads: dict[str, Path] = field(default_factory=dict)  # the WADS that are set
    buttons: list[str] = field(default_factory=list)
    game_args: list[str] = field(default_factory=list)


def read_scenario(path: Path, shipped: Path) -> ScenarioFile:
    """Reads a .cfg file; wads are in its folder, or ViZDoom's own in or above `shipped`."""
    scenario = ScenarioFile()
    for name, value, is_added in _entries(path):
        try:
            _take(scenario, name, value, is_added, path, shipped)
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from None
    return scenario


def check_wad(file: Path) -> None:
    """Raises unless the file is a wad: the engine may execute or ignore other files."""
    if not file.is_file():
        raise ValueError(f"there is no file {file}")
    with file.open("rb") as opened:
        magic = opened.read(4)
    if magic not in (b"IWAD", b"PWAD"):
        raise ValueError(f"{file} is not a wad: it begins with {magic!r}")


def _entries(path: Path) -> Iterator[tuple[str, str, bool]]:
    """Yields the keys, as spelt in KEYS, their values, and whether += adds to earlier ones."""
    text = read_file(path, MAX_BYTES).decode(errors="replace")
    text = re.sub(r"#[^\n]*", "", text).strip()
    at = 0
    while at < len(text):
        match = ENTRY.match(text, at)
        if match is None:
            line = text[at:].partition("\n")[0]
            raise ValueError(f"{path} is not a ViZDoom configuration: {line!r}")
        at = match.end()
        spelt, equals, braced, plain = match.groups()
        name = KEYS.get(spelt.replace("_", "").lower())
        if name is None:
            raise ValueError(
                f"{path} sets {spelt}, which is not passed to ViZDoom: remove that line"
            )
        yield name, (braced or plain).strip(), equals == "+="


def _take(
    scenario: ScenarioFile, name: str, value: str, is_added: bool, path: Path, shipped: Path
) -> None:
    if name in REWARDS:
        scenario.settings[name] = _number(name, value, float)
    elif name in NUMBERS:
        scenario.settings[name] = _number(name, value, int)
    elif name in SWITCHES:
        if value.lower() not in ("true", "false", "1", "0"):
            raise ValueError(f"{name} must be true or false, got {value!r}")
        scenario.settings[name] = value.lower() in ("true", "1")
    elif name == "doom_map":
        if not MAP_NAME.fullmatch(value):
            raise ValueError(f"doom_map must be a map's name, got {value!r}")
        scenario.settings[name] = value
    elif name == "available_buttons":
        earlier = scenario.buttons if is_added else []
        scenario.buttons = earlier + value.strip("{}").upper().split()
    elif name == "game_args":
        if value not in GAME_ARGS:
            raise ValueError(
                f"game_args must be {' or '.join(GAME_ARGS)}, others are not passed to "
                f"ViZDoom, got {value!r}"
            )
        scenario.game_args.append(value)
    elif name in WADS:
        if "\n" in value or len(value) > LONGEST_NAME:
            raise ValueError(f"{name} must be a file's name, got {short(value)}")
        places = [path.parent / value]
        if is_bare(value):
            places += [shipped / value, shipped.parent / value]
        file = next((place for place in places if place.is_file()), places[0])
        check_wad(file)
        scenario.wads[name] = file.absolute()


def _number(name: str, value: str, kind: type[float] | type[int]) -> float | int:
    try:
        return kind(value)
    except ValueError:
        raise ValueError(f"{name} must be a number, got {value!r}") from None
