"""Which cells are run, and which are not; the runs themselves are pretended."""

import dataclasses
import fcntl
import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from episodic_curiosity.experiments import runner
from episodic_curiosity.experiments.cells import Cell
from episodic_curiosity.experiments.measure import Measured
from episodic_curiosity.experiments.results import Key, Result, load_results, write_measured
from episodic_curiosity.experiments.runner import RunnerConfig, cell_lock, run_cell, run_cells
from episodic_curiosity.experiments.status import find_status, kept_path, run_folder
from episodic_curiosity.runs.record import Record
from episodic_curiosity.support.version import code_version

VIZDOOM = "episodic_curiosity.worlds.vizdoom"
HOLD = """
import sys, time
from pathlib import Path
from episodic_curiosity.experiments.runner import cell_lock
with cell_lock(Path(sys.argv[1])) as is_ours:
    print(is_ours, flush=True)
    time.sleep(600)
"""


def a_cell(seed=0, method="ppo"):
    return Cell(key=Key("table1", "maze/sparse", method, None, "cpu", 10_000, seed))


def pretended(cell, episodes=512):
    played = {"num_values": episodes, "mean": 1.0, "deviation": 0.0, "low": 1.0, "high": 1.0}
    result = Result(
        key=cell.key,
        config=cell.run().to_dict(),
        code=code_version(),
        command="y",
        curve=[],
        metrics={"length": played},
        action_shares={},
    )
    return Measured(result, {"seconds": 1.0})


@pytest.fixture
def settings(tmp_path):
    return RunnerConfig(results=tmp_path / "results", runs=tmp_path / "runs", device="cpu")


@pytest.fixture
def measured(monkeypatch):
    """The seeds that were measured; seed 13 fails."""
    seeds = []

    def measure(cell, folder, *, episodes, device, progress):
        assert (episodes, device, progress) == (512, "cpu", False)
        if cell.key.seed == 13:
            raise FloatingPointError("a loss is NaN")
        seeds.append(cell.key.seed)
        if not (folder / "agent.safetensors").exists():  # else it has been trained
            with Record(folder, cell.run().to_dict(), resume=True) as record:
                record.checkpoint(1, {})
            (folder / "agent.safetensors").write_bytes(b"x")
        return pretended(cell)

    monkeypatch.setattr(runner, "measure", measure)
    monkeypatch.setattr(runner, "PATIENCE", 0.0)
    return seeds


def states(outcomes):
    return [(outcome.cell.key.seed, outcome.state) for outcome in outcomes]


def test_what_is_done_is_skipped(settings, measured, capsys):
    assert states(run_cells([a_cell(0)], settings)) == [(0, "done")]
    assert states(run_cells([a_cell(0), a_cell(1)], settings)) == [(0, "skipped"), (1, "done")]
    assert measured == [0, 1]
    assert [result.key.seed for result in load_results(settings.results).results] == [0, 1]
    said = capsys.readouterr().err
    assert "[1/2] table1 maze/sparse:ppo:0 (cpu, 10,000 steps): already done" in said
    assert "[2/2] table1 maze/sparse:ppo:1 (cpu, 10,000 steps): done in " in said


def test_only_what_others_use_is_kept_of_a_run(settings, measured):
    run_cells([a_cell()], settings)
    folder = run_folder(a_cell(), settings.runs)
    assert folder == settings.runs / "table1" / "maze-sparse__ppo__cpu__10000__s0"
    left = {path.name for path in folder.iterdir() if not path.name.startswith(".")}
    assert left - {"tensorboard"} == {
        "agent.safetensors",
        "config.json",
        "metrics.jsonl",
        "timing.jsonl",
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


@pytest.mark.parametrize("is_misnamed", [False, True])
def test_a_damaged_result_is_set_aside_and_measured_again(
    is_misnamed, settings, measured, capsys
):
    run_cells([a_cell()], settings)
    path = settings.results / a_cell().key.path
    whole = path.read_bytes()
    other = pretended(a_cell(1)).result.to_bytes()
    damaged = other if is_misnamed else whole[:100]
    path.write_bytes(damaged)
    assert look(a_cell(), settings).state == "damaged"
    assert states(run_cells([a_cell()], settings)) == [(0, "done")]
    assert path.read_bytes() == whole
    aside = path.with_name(f"{path.name}.damaged")
    assert aside.read_bytes() == damaged
    assert f"set aside as {aside}: " in capsys.readouterr().err
    assert measured == [0, 0]


def test_what_cannot_be_read_is_left_alone(settings, measured):
    run_cells([a_cell()], settings)
    path = settings.results / a_cell().key.path
    newer = path.read_bytes().replace(b'"version": 1', b'"version": 2')
    path.write_bytes(newer)
    assert look(a_cell(), settings).state == "unreadable"
    (outcome,) = run_cells([a_cell()], settings)
    assert outcome.state == "failed"
    assert "in format 2; this is" in outcome.message
    assert path.read_bytes() == newer
    assert measured == [0]


def test_a_folder_that_takes_nothing_does_not_stop_the_others(settings, measured, monkeypatch):
    write = runner.write_measured

    def full(path, *arguments):
        if path.is_relative_to(settings.results) and "s0" in path.name:
            raise OSError(28, "No space left on device", str(path))
        write(path, *arguments)

    monkeypatch.setattr(runner, "write_measured", full)
    outcomes = run_cells([a_cell(0), a_cell(1)], settings)
    assert states(outcomes) == [(0, "failed"), (1, "done")]
    assert "No space left on device" in outcomes[0].message
    assert measured == [0, 1]
    monkeypatch.undo()
    # What was measured waits in the run's folder.
    (outcome,) = run_cells([a_cell(0)], settings)
    assert (outcome.state, outcome.message) == ("done", "found in the run's folder")
    assert not kept_path(a_cell(0), settings.runs).exists()


def test_a_damaged_result_that_cannot_be_renamed_fails_its_cell_alone(
    settings, measured, monkeypatch
):
    run_cells([a_cell()], settings)
    path = settings.results / a_cell().key.path
    path.write_bytes(b"")

    def refuse(path):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(runner, "set_aside", refuse)
    outcomes = run_cells([a_cell(0), a_cell(1)], settings)
    assert states(outcomes) == [(0, "failed"), (1, "done")]
    assert "Permission denied" in outcomes[0].message
    assert measured == [0, 1]


def test_what_waits_in_a_runs_folder_is_taken_only_if_it_is_the_same(settings, measured):
    kept, waiting = kept_path(a_cell(), settings.runs), pretended(a_cell())
    for other in (
        dataclasses.replace(waiting.result, code="older"),
        pretended(a_cell(), episodes=100).result,
        pretended(a_cell(1)).result,
    ):
        write_measured(kept, other, waiting.timing)
        assert look(a_cell(), settings).state == "missing"
    run_cells([a_cell()], settings)
    assert measured == [0]


def test_a_removed_result_is_measured_again(settings, measured):
    run_cells([a_cell()], settings)
    (settings.results / a_cell().key.path).unlink()
    assert states(run_cells([a_cell()], settings)) == [(0, "done")]
    assert measured == [0, 0]


def outdated(cell):
    """The config of a cell as it was once."""
    config = json.loads(json.dumps(cell.run().to_dict()))
    config["ppo"]["gamma"] = 0.5
    return config


def follow(advice):
    """Does what a message says after "remove"."""
    words = advice.partition("; remove ")[2].partition(" to ")[0]
    for name in words.split(" and "):
        shutil.rmtree(name) if os.path.isdir(name) else os.unlink(name)


def test_a_result_of_another_config_is_neither_counted_nor_replaced(settings, measured):
    """What to remove is said, and after that it is measured again."""
    run_cells([a_cell()], settings)
    path, folder = settings.results / a_cell().key.path, run_folder(a_cell(), settings.runs)
    older = dataclasses.replace(Result.read(path), config=outdated(a_cell())).to_bytes()
    path.write_bytes(older)
    shutil.rmtree(folder)
    with Record(folder, outdated(a_cell())) as record:
        record.checkpoint(1, {})
    (outcome,) = run_cells([a_cell()], settings)
    assert outcome.state == "stale"
    assert "ppo.gamma was 0.5, now 0.99" in outcome.message
    assert path.read_bytes() == older
    assert measured == [0]
    assert look(a_cell(), settings) == ("stale", outcome.message, 0)
    follow(outcome.message)
    assert states(run_cells([a_cell()], settings)) == [(0, "done")]
    assert measured == [0, 0]


def test_a_run_that_was_begun_as_another_is_not_gone_on_with(settings, measured):
    folder = run_folder(a_cell(), settings.runs)
    with Record(folder, outdated(a_cell())) as record:
        record.checkpoint(1, {})
    (outcome,) = run_cells([a_cell()], settings)
    assert outcome.state == look(a_cell(), settings).state == "stale"
    assert f"{folder} holds a run with another config" in outcome.message
    assert measured == []
    follow(outcome.message.replace("remove it", f"remove {folder}"))
    assert states(run_cells([a_cell()], settings)) == [(0, "done")]


def test_a_cell_that_cannot_be_run_asks_for_no_run_to_be_removed(settings):
    impossible = Cell(key=a_cell().key._replace(steps=1))
    with Record(run_folder(impossible, settings.runs), {}) as record:
        record.checkpoint(1, {})
    with pytest.raises(ValueError, match="1 steps are too few"):
        find_status(impossible, settings.results, settings.runs, 512)


def test_too_few_episodes_do_not_count(settings, measured):
    path = settings.results / a_cell().key.path
    write_measured(path, *pretended(a_cell(), episodes=100))
    (outcome,) = run_cells([a_cell()], settings)
    assert outcome.state == look(a_cell(), settings).state == "stale"
    assert "was measured on 100 test episodes, 512 are wanted" in outcome.message
    fewer = dataclasses.replace(settings, episodes=100)
    assert states(run_cells([a_cell()], fewer)) == [(0, "skipped")]
    assert measured == []
    follow(outcome.message)
    assert states(run_cells([a_cell()], settings)) == [(0, "done")]


def look(cell, settings):
    return find_status(cell, settings.results, settings.runs, settings.episodes)


def test_what_cannot_be_run_is_said_before_anything_is(settings, measured):
    short = Cell(key=a_cell(1).key._replace(steps=10))
    with pytest.raises(ValueError, match="10 steps are too few"):
        run_cells([a_cell(0), short], settings)
    assert measured == []
    with pytest.raises(ValueError, match="episodes must be an integer of at least 1"):
        dataclasses.replace(settings, episodes=0)


def test_what_is_not_here_is_said_once_and_before_anything(settings, measured, monkeypatch):
    monkeypatch.setitem(sys.modules, "vizdoom", None)
    for name in [name for name in sys.modules if name.startswith(VIZDOOM)]:
        monkeypatch.delitem(sys.modules, name)
    doom = Cell(key=a_cell(1).key._replace(table="vizdoom", task="vizdoom/sparse"))
    with pytest.raises(ImportError, match=r"pip install 'episodic-curiosity\[vizdoom\]'"):
        run_cells([a_cell(0), doom], settings)
    if not torch.cuda.is_available():
        wanted = dataclasses.replace(settings, device="cuda")
        with pytest.raises(ValueError, match="device 'cuda' cannot be used here"):
            run_cells([a_cell(0)], wanted)
    assert measured == []
    run_cells([a_cell(0)], settings)
    # Where nothing is left to measure, nothing is needed.
    assert states(run_cells([a_cell(0)], settings)) == [(0, "skipped")]


def test_speed_is_taken_from_the_run_of_table_1(settings, measured, monkeypatch):
    monkeypatch.setattr(runner, "measure_speed", lambda cell, *_: pretended(cell))
    timed = Cell(key=a_cell().key._replace(table="speed"), measure="speed")
    assert states(run_cells([timed, a_cell()], settings)) == [(0, "done"), (0, "skipped")]
    assert measured == [0]
    failing = dataclasses.replace(timed, key=timed.key._replace(seed=13))
    (outcome,) = run_cells([failing], settings)
    assert outcome.state == "failed"
    assert outcome.message.startswith("needs table1 maze/sparse:ppo:13: failed: FloatingPoint")


def test_a_run_that_another_process_is_at_is_left_to_it(settings, measured):
    """It may have the same runs and other results."""
    beside = settings.runs / a_cell().key.path.with_suffix(".run.json")
    with cell_lock(beside):
        assert states(run_cells([a_cell()], settings)) == [(0, "busy")]
    assert measured == []
    assert states(run_cells([a_cell()], settings)) == [(0, "done")]
    assert list(settings.runs.rglob("*.run.lock")) == []


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
    monkeypatch.setattr(runner, "PATIENCE", 600.0)
    path = settings.results / a_cell(0).key.path
    until = HOLD.replace("time.sleep(600)", "time.sleep(1.5)")
    holder = subprocess.Popen(
        [sys.executable, "-c", until, str(path)], stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout.readline() == "True\n"
    assert states(run_cells([a_cell(0)], settings)) == [(0, "done")]
    holder.communicate(timeout=600)
    assert measured == [0]


def test_one_cell_by_itself(settings, measured):
    assert run_cell(a_cell(), settings).state == "done"
    assert measured == [0]


def test_a_run_begun_on_another_device_is_gone_on_with(settings):
    cell = a_cell()
    begun = cell.run().to_dict() | {"device": "cuda"}
    with Record(run_folder(cell, settings.runs), begun) as record:
        record.write(1_024, {"reward": 0.0})
        record.checkpoint(1, {"number": 1})
    assert look(cell, settings) == ("interrupted", "", 1_024)


def test_a_fit_that_does_not_fit_the_time_left_is_not_begun(settings, measured):
    """A training run resumes, the fit of an R-network alone would be lost."""
    fit = dataclasses.replace(a_cell(0, "ppo+ec"), measure="r-network")
    late = dataclasses.replace(settings, deadline=time.monotonic() + 0.01)
    (outcome,) = run_cells([fit], late)
    assert (outcome.state, outcome.is_good, measured) == ("postponed", False, [])
    assert outcome.message.startswith("not begun: it takes about ")
    assert states(run_cells([a_cell(1)], late)) == [(1, "done")]
    early = dataclasses.replace(settings, deadline=time.monotonic() + 1e6)
    assert states(run_cells([fit], early)) == [(0, "done")]


def test_the_documented_example_of_python(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    asked = []
    monkeypatch.setattr(runner, "run_cells", lambda *given: asked.append(given))
    page = (Path(__file__).parents[2] / "docs" / "tables.md").read_text()
    (example,) = re.findall(
        r"## From Python\n\n(?:<!--.*?-->\n)?```python\n(.*?)```", page, re.DOTALL
    )
    exec(example, {})
    ((cells, _),) = asked
    assert [cell.run().bonus.beta for cell in cells] == [1.0, 1.0, 1.0]
