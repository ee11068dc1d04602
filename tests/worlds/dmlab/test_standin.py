"""The stand-in behaves as the real module does, where that could surprise."""

import importlib
import sys

import numpy as np
import pytest

LEVEL = "contributed/dmlab30/explore_goal_locations_large"
VIEW = "DEBUG.CAMERA.PLAYER_VIEW_NO_RETICLE"
SIZE = {"width": "32", "height": "24"}


@pytest.fixture
def lab(build):
    build.tell()
    yield importlib.import_module("deepmind_lab")
    del sys.modules["deepmind_lab"]


def action(look: int = 0, move: int = 0) -> np.ndarray:
    return np.array([look, 0, 0, move, 0, 0, 0], np.intc)


@pytest.mark.parametrize(
    ("config", "error", "match"),
    [
        ({"width": 32}, TypeError, "bad argument type"),
        ({b"width": "32"}, TypeError, "bad argument type"),
        ({"minGoalDistance": "10"}, RuntimeError, "Invalid setting 'minGoalDistance'"),
        ({"width": "30"}, RuntimeError, "must be 4"),
        ([], TypeError, "config must be dict"),
    ],
)
def test_settings_are_known_strings(lab, config, error, match):
    with pytest.raises(error, match=match):
        lab.Lab(LEVEL, [VIEW], config=config)


def test_names_are_known(lab):
    with pytest.raises(RuntimeError, match="Invalid levelName flag"):
        lab.Lab("explore_goal_locations_large", [VIEW])
    with pytest.raises(ValueError, match="Unknown observation 'RGB'"):
        lab.Lab(LEVEL, ["RGB"])
    assert not hasattr(lab.Lab(LEVEL, [VIEW]), "fps")


def test_nothing_is_observed_before_or_after_an_episode(lab):
    game = lab.Lab(LEVEL, [VIEW], config=SIZE | {"episodeLengthSeconds": "1"})
    for not_running in range(2):
        assert not game.is_running()
        with pytest.raises(RuntimeError, match="wrong status for call to observations"):
            game.observations()
        with pytest.raises(RuntimeError, match="wrong status to advance"):
            game.step(action())
        if not_running:
            break
        assert game.reset(seed=1) is True
        for _ in range(15):
            game.step(action(), num_steps=4)
    assert game.num_steps() == 60
    assert game.close() is True
    assert game.close() is False


def test_shapes_may_be_dynamic(lab):
    game = lab.Lab(LEVEL, [VIEW], config=SIZE)
    spec = {entry["name"]: entry["shape"] for entry in game.observation_spec()}
    assert spec[VIEW] == (3, 0, 0)
    game.reset(seed=1)
    assert game.observations()[VIEW].shape == (3, 24, 32)
    with pytest.raises(ValueError, match=r"dtype np.intc"):
        game.step(action().astype(np.int64))
    with pytest.raises(OverflowError):
        game.reset(seed=2**31)


def test_a_respawn_makes_the_frame_number_fall(lab):
    game = lab.Lab(LEVEL, ["MAP_FRAME_NUMBER", "DEBUG.POS.TRANS"], config=SIZE)
    game.reset(seed=1)
    game._x, game._y = game._goal[1] * 100.0 + 50.0, (12 - game._goal[0]) * 100.0 + 50.0
    assert game.step(action()) == 10.0
    seen = []
    for _ in range(4):
        seen.append(game.observations()["MAP_FRAME_NUMBER"].item())
        game.step(action())
    assert seen == [1.0, 2.0, 3.0, 0.0]
    assert game.is_running()


def test_the_patch_draws_starts_alone(lab, build):
    """Whichever the goal is; where none of its starts is far enough, nothing can begin."""
    build.tell(patched=True)
    goals, near = [], set()
    for distance in ("0", "12", "1000"):
        game = lab.Lab(LEVEL, ["DEBUG.POS.TRANS"], config=SIZE | {"minGoalDistance": distance})
        drawn = []
        for seed in range(12):
            if distance == "1000":
                with pytest.raises(RuntimeError, match="Failed to start environment"):
                    game.reset(seed=seed)
                assert not game.is_running()
            else:
                game.reset(seed=seed)
                here = game._cell(game._x, game._y)
                near |= {distance} if game._distances(game._goal)[here] < 12 else set()
            drawn.append(game._goal)
        goals.append(drawn)
    assert goals[0] == goals[1] == goals[2]
    assert near == {"0"}
    doors = LEVEL.replace("goal_locations", "obstructed_goals")
    lab.Lab(doors, [], config=SIZE | {"minGoalDistance": "1000"}).reset(seed=1)
