"""The example that tells what is paid at new and at known places of a maze."""

import dataclasses

import pytest
import torch

from episodic_curiosity.runs.config import Run
from episodic_curiosity.runs.train import train
from examples import maze_bonus
from examples.maze_bonus import by_interval, correlation, kinds_of_place, main, play
from tests.runs.tiny_runs import tiny_run


def with_episodes_of(steps: int) -> Run:
    run = tiny_run("ppo+ec")
    return dataclasses.replace(run, world=dataclasses.replace(run.world, episode_steps=steps))


def test_places_are_new_known_or_known_in_another_direction():
    times = torch.arange(40)
    places = torch.zeros(40, 3, 2)
    places[:, 0, 0] = 100.0 * times  # always on the move
    yaws = torch.zeros(40, 3)
    yaws[:, 1] = 350.0
    yaws[35, 1] = 29.0  # 39 degrees further
    yaws[36, 1] = 31.0  # 41
    kinds = kinds_of_place(places, yaws)
    assert kinds[:, 0].tolist() == [0] * 40
    # The first place is known from step 30 on: then it was left 30 steps before.
    assert kinds[:, 1].tolist() == [0] * 30 + [2] * 5 + [2, 1] + [2] * 3
    assert kinds[:, 2].tolist() == [0] * 30 + [2] * 10


def test_correlation_of_intervals_by_hand(monkeypatch):
    """The means of two steps are 1, 3, 5 and 2, 1, 3; the fifth interval is not complete."""
    monkeypatch.setattr(maze_bonus, "INTERVAL", 2)
    bonus = torch.tensor([[0.0, 2.0, 3.0, 3.0, 5.0, 5.0, 9.0]]).T
    cells = torch.tensor([[2.0, 2.0, 0.0, 2.0, 3.0, 3.0, 0.0]]).T
    means = by_interval(bonus), by_interval(cells)
    assert [each.flatten().tolist() for each in means] == [[1, 3, 5], [2, 1, 3]]
    # Deviations -2, 0, 2 and 0, -1, 1: covariance 2 of sqrt(8 * 2).
    assert correlation(*means).item() == pytest.approx(0.5)


@pytest.mark.slow
def test_a_run_has_a_table(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(maze_bonus, "STEPS", 80)
    monkeypatch.setattr(maze_bonus, "FILLING", 30)
    monkeypatch.setattr(maze_bonus, "INTERVAL", 10)
    train(with_episodes_of(90), tmp_path / "ec", progress=False)
    command = [str(tmp_path / "ec"), "--episodes", "3", "--replacement", "fifo"]
    main(command)
    head, *rows, early, _, last = capsys.readouterr().out.splitlines()
    assert head.split() == ["of", "the", "steps", "mean", "bonus", "paid", "above", "0"]
    assert [row[:28].strip() for row in rows] == list(maze_bonus.KINDS)
    shares = [int(row[28:].split()[0].rstrip("%")) for row in rows]
    assert sum(shares) == pytest.approx(100, abs=1)
    assert early.split()[:4] == ["first", "30", "steps", "38%"]
    assert -1 <= float(last.rpartition(" ")[2]) <= 1

    # All views are stored here, so that only F differs.
    folder, stored = str(tmp_path / "ec"), {"novelty_threshold": -1.0}
    most, tenth = (
        play(folder, 3, {"aggregate": name, **stored}, turns_from=80)
        for name in ("max", "tenth_largest")
    )
    assert (most.bonus <= tenth.bonus).all()
    assert (most.bonus < tenth.bonus).any()

    turning = play(folder, 3, {}, turns_from=0)
    assert not turning.is_new_cell[1:].any()
    assert most.is_new_cell[1:].any()


@pytest.mark.slow
def test_what_has_no_memory_is_refused(tmp_path):
    train(tiny_run("ppo"), tmp_path / "ppo", progress=False)
    with pytest.raises(SystemExit, match="have a memory of views, got ppo"):
        main([str(tmp_path / "ppo")])
    with pytest.raises(SystemExit, match="maze_bonus: "):
        main([str(tmp_path / "nowhere")])


@pytest.mark.slow
def test_what_would_be_another_bonus_is_refused(tmp_path):
    train(tiny_run("ppo+ec-rnd"), tmp_path, progress=False)
    with pytest.raises(SystemExit, match=r"have a memory of views, got ppo\+ec-rnd"):
        main([str(tmp_path), "--episodes", "1"])


@pytest.mark.slow
def test_episodes_that_end_are_refused(tmp_path, monkeypatch):
    """Places of the next level are not places of the last."""
    monkeypatch.setattr(maze_bonus, "STEPS", 40)
    monkeypatch.setattr(maze_bonus, "FILLING", 10)
    train(with_episodes_of(35), tmp_path, progress=False)
    with pytest.raises(SystemExit, match="an episode must last 40 steps, got 35"):
        main([str(tmp_path), "--episodes", "2"])
