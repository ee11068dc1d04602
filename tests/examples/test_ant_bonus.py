"""The example that carries and turns ants to see what their R-network pays for it."""

import math
from pathlib import Path

import pytest
import torch

import episodic_curiosity as ec
from episodic_curiosity.runs.presets import resolve
from episodic_curiosity.runs.record import write_config
from examples import ant_bonus
from examples.ant_bonus import PLACE, TURN, Motion, moved

pytestmark = pytest.mark.slow

pytest.importorskip("mujoco.batch")


def standing() -> torch.Tensor:
    numbers = torch.zeros(2, 30)
    numbers[:, TURN] = torch.tensor([[1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0]])
    return numbers.view(torch.uint8)


def test_ants_are_carried_along_x_and_turned_about_the_vertical():
    numbers = moved(standing(), Motion(speed=0.5, turn=math.pi / 8), time=4).view(torch.float32)
    assert numbers[:, PLACE].tolist() == [[2.0, 0.0]] * 2
    # A quarter of a turn: of an ant that looks along x, and of one that lies on its back.
    half = math.sqrt(0.5)
    wanted = torch.tensor([[half, 0.0, 0.0, half], [0.0, half, half, 0.0]])
    torch.testing.assert_close(numbers[:, TURN], wanted)
    assert numbers[:, [2, *range(7, 30)]].eq(0).all()


def test_a_whole_turn_shows_what_was_seen_before_it():
    world = ec.make_world("ant/no-reward", num_envs=2, seed=0, view_size=(36, 36))
    view = world.reset().view
    still = world.snapshot()
    quarter, whole = (
        world.redraw(moved(still, Motion(turn=math.pi / 2), time)) for time in (1, 4)
    )
    assert (whole.float() - view).abs().mean() < 1.0
    assert (quarter.float() - view).abs().mean() > 10.0


def make_run(folder: Path, task: str, view_shape: tuple[int, ...]) -> Path:
    config = resolve(task, "ppo+ec", "cpu", 200_000, seed=0).to_dict()
    ec.RNetwork(view_shape=view_shape).save(folder)
    write_config(folder, config)
    return folder


def test_every_motion_has_a_line(tmp_path, capsys, monkeypatch):
    run = make_run(tmp_path, "ant/no-reward", (3, 36, 36))
    monkeypatch.setattr(ant_bonus, "NUM_STEPS", 60)
    monkeypatch.setattr("sys.argv", ["ant_bonus.py", str(run)])
    ant_bonus.main()
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 1 + len(ant_bonus.MOTIONS)
    assert all(line.split()[-2:] == ["0.00", "0.00"] for line in lines[1:])  # never fitted


def test_what_is_no_run_of_an_ant_is_answered_in_a_sentence(tmp_path, monkeypatch):
    make_run(tmp_path / "maze", "maze/sparse", (3, 36, 36))
    make_run(tmp_path / "bodies", "ant/no-reward", (27,))
    wanted = {
        "maze": "holds a run of maze/sparse, wanted one of ant/...",
        "bodies": "takes vectors, wanted one for views",
        "nothing": "there is no folder",
    }
    for folder, message in wanted.items():
        monkeypatch.setattr("sys.argv", ["ant_bonus.py", str(tmp_path / folder)])
        with pytest.raises(SystemExit, match=message):
            ant_bonus.main()
