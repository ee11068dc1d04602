"""Which cells are run, and which are not; the runs themselves are pretended."""

import dataclasses
import fcntl
import json
import os
import subprocess
import sys
import time

import pytest

from episodic_curiosity import harness
from episodic_curiosity.cells import Cell
from episodic_curiosity.harness import Settings, cell_lock, run_cell, run_cells, run_folder
from episodic_curiosity.measuring import Measured
from episodic_curiosity.results import Result, load_results

HOLD = """
import sys, time
from pathlib import Path
from episodic_curiosity.harness import cell_lock
with cell_lock(Path(sys.argv[1])) as is_ours:
    print(is_ours, flush=True)
    time.sleep(600)
"""


def a_cell(seed=0, method="ppo"):
    return Cell(
        table="table1",
        task="maze/sparse",
        method=method,
        preset="cpu",
        steps=10_000,
        seed=seed,
    )


def pretended(cell):
    result = Result(
        **cell.key._asdict(),
        config=cell.run().to_dict(),
        code="x",
        command="y",
        curve=[],
        metrics={},
        action_shares={},
    )
    return Measured(result, {"seconds": 1.0})


@pytest.fixture
def settings(tmp_path):
    return Settings(results=tmp_path / "results", runs=tmp_path / "runs", device="cpu")


@pytest.fixture
def measured(monkeypatch):
    """The seeds that were measured; seed 13 fails."""
    seeds = []

    def measure(cell, folder, *, episodes, device, progress):
        assert (episodes, device, progress) == (100, "cpu", False)
        if cell.seed == 13:
            raise FloatingPointError("a loss is NaN")
        seeds.append(cell.seed)
        (folder / "checkpoints").mkdir(parents=True)
        (folder / "checkpoints" / "large").write_bytes(b"x")
        (folder / "agent.safetensors").write_bytes(b"x")
        return pretended(cell)

    monkeypatch.setattr(harness, "measure", measure)
    monkeypatch.setattr(harness, "PATIENCE", 0.0)
    return seeds


def states(outcomes):
    return [(outcome.cell.seed, outcome.state) for outcome in outcomes]


def test_what_is_done_is_skipped(settings, measured, capsys):
    assert states(run_cells([a_cell(0)], settings)) == [(0, "done")]
    assert states(run_cells([a_cell(0), a_cell(1)], settings)) == [(0, "skipped"), (1, "done")]
    assert measured == [0, 1]
    assert [result.seed for result in load_results(settings.results).results] == [0, 1]
    said = capsys.readouterr().err
    assert "[1/2] table1 maze/sparse:ppo:0 (cpu, 10,000 steps): already done" in said
    assert "[2/2] table1 maze/sparse:ppo:1 (cpu, 10,000 steps): done in 0 s" in said


def test_only_what_others_use_is_kept_of_a_run(settings, measured):
    run_cells([a_cell()], settings)
    folder = run_folder(a_cell(), settings.runs)
    assert folder == settings.runs / "table1" / "maze-sparse__ppo__cpu__10000__s0"
    assert {path.name for path in folder.iterdir()} == {
        "agent.safetensors",
        "result.json",
        "result.timing.json",
    }
    assert len(measured) == 1


def test_a_cell_that_fails_does_not_stop_the_others(settings, measured, capsys):
    outcomes = run_cells([a_cell(13), a_cell(1)], settings)
    assert states(outcomes) == [(13, "failed"), (1, "done")]
    assert [outcome.is_good for outcome in outcomes] == [False, True]
    assert outcomes[0].message == "failed: FloatingPointError: a loss is NaN"
    assert "Traceback" in capsys.readouterr().err
    assert measured == [1]
    assert list(settings.results.rglob("*s13*")) == []


def test_a_damaged_result_is_set_aside_and_measured_again(settings, measured, capsys):
    run_cells([a_cell()], settings)
    path = settings.results / a_cell().key.path
    whole = path.read_bytes()
    for folder_is_left in (True, False):  # from the run's folder, or anew
        path.write_bytes(whole[:100])
        if not folder_is_left:
            run_folder(a_cell(), settings.runs).rename(settings.runs / "away")
        assert states(run_cells([a_cell()], settings)) == [(0, "done")]
        assert path.read_bytes() == whole
        assert "set aside: " in capsys.readouterr().err
        assert path.with_name(f"{path.name}.damaged").read_bytes() == whole[:100]
    assert measured == [0, 0]


def test_a_result_of_another_config_is_neither_counted_nor_replaced(settings, measured):
    run_cells([a_cell()], settings)
    path = settings.results / a_cell().key.path
    result = Result.read(path)
    config = json.loads(json.dumps(result.config))
    config["ppo"]["gamma"] = 0.5
    older = dataclasses.replace(result, config=config).to_bytes()
    path.write_bytes(older)
    (outcome,) = run_cells([a_cell()], settings)
    assert outcome.state == "stale"
    assert "ppo.gamma was 0.5, now 0.99" in outcome.message
    assert str(a_cell().key.path) in outcome.message
    assert path.read_bytes() == older
    assert measured == [0]


def test_what_cannot_be_run_is_said_before_anything_is(settings, measured):
    short = dataclasses.replace(a_cell(1), steps=10)
    with pytest.raises(ValueError, match="10 steps are too few"):
        run_cells([a_cell(0), short], settings)
    assert measured == []
    with pytest.raises(ValueError, match="episodes must be a whole number of at least 1"):
        dataclasses.replace(settings, episodes=0)


def test_what_another_process_is_at_is_left_to_it(settings, measured):
    path = settings.results / a_cell(0).key.path
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path)], stdout=subprocess.PIPE, text=True
    )
    try:
        assert holder.stdout.readline() == "True\n"
        outcomes = run_cells([a_cell(0), a_cell(1)], settings)
        assert states(outcomes) == [(1, "done"), (0, "busy")]
        assert measured == [1]
    finally:
        holder.kill()  # as sudden as it gets: its lock's file stays
        holder.communicate()
    assert list(path.parent.glob(".*.lock"))
    assert states(run_cells([a_cell(0)], settings)) == [(0, "done")]
    assert list(path.parent.glob(".*.lock")) == []


def test_a_lock_that_was_removed_meanwhile_is_no_lock(tmp_path, monkeypatch):
    """Whoever opened the file before its holder removed it must not believe it has the cell."""
    path, raced = tmp_path / "cell.json", []
    flock = fcntl.flock

    def remove_first(file, how):
        if not raced:
            raced.append(True)
            os.unlink(tmp_path / ".cell.lock")
        flock(file, how)

    monkeypatch.setattr(fcntl, "flock", remove_first)
    with cell_lock(path) as is_ours:
        assert is_ours
        assert (tmp_path / ".cell.lock").exists()
        with cell_lock(path) as is_theirs:
            assert not is_theirs
    assert not (tmp_path / ".cell.lock").exists()


def test_waiting_ends_when_the_other_process_does(settings, measured, monkeypatch):
    monkeypatch.setattr(harness, "PATIENCE", 60.0)
    path = settings.results / a_cell(0).key.path
    until = HOLD.replace("time.sleep(600)", "time.sleep(1.5)")
    holder = subprocess.Popen(
        [sys.executable, "-c", until, str(path)], stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout.readline() == "True\n"
    began = time.monotonic()
    assert states(run_cells([a_cell(0)], settings)) == [(0, "done")]
    assert time.monotonic() - began < 30
    holder.communicate(timeout=10)
    assert measured == [0]


def test_one_cell_by_itself(settings, measured):
    assert run_cell(a_cell(), settings).state == "done"
    assert measured == [0]
