"""ViZDoom's .cfg files as we read them, beside ViZDoom's own reader."""

from pathlib import Path

import pytest

vizdoom = pytest.importorskip("vizdoom")

from episodic_curiosity.worlds.vizdoom.scenario_file import read_scenario  # noqa: E402

SHIPPED = Path(vizdoom.scenarios_path)
SOLD = ("doom.cfg", "doom2.cfg")  # their wads are not ViZDoom's
READABLE = sorted({path.name for path in SHIPPED.glob("*.cfg")} - set(SOLD))
SETTINGS = (
    "living_reward",
    "death_penalty",
    "map_exit_reward",
    "kill_reward",
    "doom_skill",
    "doom_map",
    "episode_timeout",
    "episode_start_time",
)


@pytest.mark.parametrize("name", READABLE)
def test_every_scenario_of_vizdoom_is_read_as_vizdoom_reads_it(name):
    game, ours = vizdoom.DoomGame(), vizdoom.DoomGame()
    assert game.load_config(str(SHIPPED / name))
    scenario = read_scenario(SHIPPED / name, SHIPPED)
    for setting, value in scenario.settings.items():
        getattr(ours, f"set_{setting}")(value)
    for setting in SETTINGS:
        get = f"get_{setting}"
        assert getattr(ours, get)() == getattr(game, get)()
    assert scenario.buttons == [button.name for button in game.get_available_buttons()]
    if path := scenario.wads.get("doom_scenario_path"):
        assert path.parent == SHIPPED


def test_a_wad_that_is_not_there_is_named():
    with pytest.raises(ValueError, match=r"doom2\.cfg: there is no file .*doom2\.wad"):
        read_scenario(SHIPPED / "doom2.cfg", SHIPPED)


@pytest.fixture
def read(tmp_path):
    def read(text: str):
        (tmp_path / "my.cfg").write_text(text)
        return read_scenario(tmp_path / "my.cfg", SHIPPED)

    return read


def test_the_ways_to_write_a_file(read):
    scenario = read(
        """# a comment
        livingReward = -0.5   # another
        Episode_Timeout=300
        available_buttons = { ATTACK
            move_left }
        available_buttons += { TURN_LEFT }
        render_decals = True
        doom_map = map07
        game_args += +sv_noautoaim 1
        screen_resolution = RES_320X240
        doom_scenario_path = basic.wad
        """
    )
    assert scenario.settings == {
        "living_reward": -0.5,
        "episode_timeout": 300,
        "render_decals": True,
        "doom_map": "map07",
    }
    assert scenario.buttons == ["ATTACK", "MOVE_LEFT", "TURN_LEFT"]
    assert scenario.game_args == ["+sv_noautoaim 1"]
    assert scenario.wads == {"doom_scenario_path": SHIPPED / "basic.wad"}


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("vizdoom_path = /bin/sh", "sets vizdoom_path, which is not passed to ViZDoom"),
        ("doom_config_path = /etc/x", "sets doom_config_path, which is not passed"),
        ("game_args = +logfile x", r"got '\+logfile x'"),
        ("game_args = +sv_noautoaim 1 +logfile x", "game_args must be"),
        ("doom_map = map01 +logfile x", "doom_map must be a map's name"),
        ("doom_map = -file", "doom_map must be a map's name"),
        ("living_reward = much", "living_reward must be a number, got 'much'"),
        ("render_decals = maybe", "render_decals must be true or false"),
        ("doom_scenario_path = my.cfg", "is not a wad"),
        ("doom_scenario_path = ../nowhere.wad", "there is no file"),
        ("just words", "is not a ViZDoom configuration: 'just words'"),
    ],
)
def test_what_is_refused(read, text, match):
    with pytest.raises(ValueError, match=match):
        read(text)
