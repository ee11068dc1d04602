"""One Doom game in a worker process; imported by path (see worlds/processes/worker.py)."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import vizdoom
from numpy.typing import NDArray
from vizdoom import GameVariable, ScreenFormat, ScreenResolution

SHARED_MEMORY = Path("/dev/shm")
POSE = ("POSITION_X", "POSITION_Y", "POSITION_Z", "ANGLE")


class DoomEngine:
    """A `DoomGame` without head-up display; frames are (3, 120, 160) bytes."""

    def __init__(
        self,
        *,
        settings: dict[str, float | int | bool | str],
        game_args: list[str],
        wads: dict[str, str],
        patches: list[tuple[str, str]],
        buttons: list[str],
        actions: list[list[bool]],
        repeat: int,
        ends_when_paid: bool,
        sizes: list[tuple[int, int]] | None,
    ) -> None:
        """`settings` and `wads` are values for DoomGame's setters, as scenario_file reads them.

        `patches` are pairs (old, new) of hexadecimal bytes to replace in a temporary copy of
        the scenario. Each action lists which buttons are pressed, for `repeat` tics. A goal
        touched in the last tic would end the episode only in the next step; with
        `ends_when_paid` the step with the reward ends it. With `sizes`, of frame, observation
        and view, rows have the fields that `Sights` fills.
        """
        self._actions, self._repeat = actions, repeat
        self._ends_when_paid = ends_when_paid
        self._show: Callable[[dict[str, NDArray[Any]]], None] | None = None
        if sizes is not None:
            from .resize import Sights  # needs Numba

            self._show = Sights(*[(height, width) for height, width in sizes])
        self._game = game = vizdoom.DoomGame()
        for name, value in settings.items():
            getattr(game, f"set_{name}")(value)
        for argument in game_args:
            game.add_game_args(argument)
        if "doom_scenario_path" in wads:
            scenario = Path(wads["doom_scenario_path"])
            game.set_doom_scenario_path(patched(scenario, patches))
        if "doom_game_path" in wads:
            game.set_doom_game_path(wads["doom_game_path"])
        game.set_available_buttons([getattr(vizdoom.Button, name) for name in buttons])
        game.set_available_game_variables([getattr(GameVariable, name) for name in POSE])
        game.set_screen_resolution(ScreenResolution.RES_160X120)
        game.set_screen_format(ScreenFormat.CRCGCB)
        game.set_mode(vizdoom.Mode.PLAYER)
        game.set_episode_timeout(0)  # the world truncates episodes and needs the last frame
        for switch_off in (
            game.set_window_visible,
            game.set_sound_enabled,
            game.set_render_hud,
            game.set_render_weapon,
            game.set_render_crosshair,
            game.set_render_messages,
            game.set_depth_buffer_enabled,
            game.set_labels_buffer_enabled,
            game.set_automap_buffer_enabled,
            game.set_audio_buffer_enabled,
            game.set_notifications_buffer_enabled,
            game.set_objects_info_enabled,
            game.set_sectors_info_enabled,
        ):
            switch_off(False)

    def begin(self, seed: int) -> None:
        self._game.set_seed(seed)
        if self._game.is_running():
            self._game.new_episode()
        else:
            self._game.init()
            self._take_names_away()

    def act(self, action: int) -> tuple[float, bool]:
        reward = self._game.make_action(self._actions[action], self._repeat)
        is_goal = self._ends_when_paid and reward > 0.0
        return reward, is_goal or self._game.is_episode_finished()

    def observe(self, row: dict[str, NDArray[Any]]) -> None:
        state = self._game.get_state()
        row["frame"][...] = state.screen_buffer
        row["pose"][...] = state.game_variables
        if self._show is not None:
            self._show(row)

    def close(self) -> None:
        self._game.close()

    def _take_names_away(self) -> None:
        """Unlinks the shared memory, open on both sides by now: it ends with them."""
        for file in SHARED_MEMORY.glob(f"ViZDoom*{self._game.get_instance_id()}"):
            file.unlink()


def patched(scenario: Path, patches: list[tuple[str, str]]) -> str:
    """The path of the scenario, or of a patched copy in the current folder."""
    if not patches:
        return str(scenario)
    content = scenario.read_bytes()
    for old, new in patches:
        found = content.count(bytes.fromhex(old))
        if found != 1:
            raise ValueError(f"{scenario.name} must have the bytes {old} once, got {found}")
        content = content.replace(bytes.fromhex(old), bytes.fromhex(new))
    copy = Path(scenario.name).absolute()
    copy.write_bytes(content)
    return str(copy)
