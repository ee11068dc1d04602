"""A run's folder: what is in it, who may write to it, and what a killed run leaves there."""

import json
import math
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from episodic_curiosity.runs.metrics_files import read_metrics, read_timing
from episodic_curiosity.runs.record import Record, RunFolderError, read_config
from episodic_curiosity.support.saving import LoadError

CONFIG = {
    "task": "maze/sparse",
    "seed": 0,
    "ppo": {"rate": 1e-4, "sizes": (8, 4)},
    "bonus": None,
}

# A run one can reason about: its state is a walk, its metrics say where it is.
TOY_RUN = """
import os, random, signal, sys, time
from pathlib import Path
import torch
import torch.utils.tensorboard
from episodic_curiosity.runs.record import Record

def run(folder, num_updates, resume, delay=0.0):
    with Record(folder, {"seed": 3}, resume=resume) as record:
        state = record.resume() or {"update": 0, "place": torch.zeros(3)}
        update, place = state["update"], state["place"]
        if update == 0:
            record.checkpoint(0, {"update": update, "place": place})
        while update < num_updates:
            update += 1
            place = torch.sin(place + update)
            record.write(update * 5, {"reward": place[0].item(), "bonus": place[1].item()})
            time.sleep(delay)
            if update % 4 == 0 or update == num_updates:
                record.checkpoint(update, {"update": update, "place": place})

folder = Path(sys.argv[1])
run(folder / "whole", 30, resume=False)
draw, status, num_kills = random.Random(2), 1, 0
while status != 0:
    if (child := os.fork()) == 0:
        run(folder / "killed", 30, resume=True, delay=0.002)
        os._exit(0)
    if num_kills < 12:
        time.sleep(draw.uniform(0.0, 0.03))
        os.kill(child, signal.SIGKILL)
        num_kills += 1
    status = os.waitpid(child, 0)[1]
"""


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "runs" / "x"


def begin(folder, num_updates=3):
    """A run that was stopped after so many updates, its checkpoint made after the second."""
    with Record(folder, CONFIG) as record:
        for update in range(1, num_updates + 1):
            record.write(update * 10, {"reward": update / 2})
            if update == 2:
                record.checkpoint(update, {"weights": torch.arange(update)})


def test_what_is_in_a_folder(folder):
    begin(folder)
    assert {path.name for path in folder.iterdir()} == {
        ".lock",
        "config.json",
        "metrics.jsonl",
        "timing.jsonl",
        "tensorboard",
        "checkpoints",
    }
    header = json.loads((folder / "config.json").read_text())
    assert header["format"] == "episodic-curiosity"
    assert header["version"] == 2
    assert header["code"]
    assert read_config(folder) == CONFIG | {"ppo": {"rate": 1e-4, "sizes": [8, 4]}}
    assert read_metrics(folder) == [{"steps": 10 * n, "reward": n / 2} for n in (1, 2, 3)]


def test_a_line_is_sorted_and_valid_json(folder):
    with Record(folder, {}) as record:
        record.write(7, {"b": math.nan, "a": 0.1, "c": -math.inf, "d": 4})
    line = (folder / "metrics.jsonl").read_text()
    assert line == '{"steps": 7, "a": 0.1, "b": null, "c": null, "d": 4}\n'
    (read,) = read_metrics(folder)
    assert math.isnan(read.pop("b"))
    assert math.isnan(read.pop("c"))
    assert read == {"steps": 7, "a": 0.1, "d": 4}


def test_each_line_can_be_read_at_once(folder):
    with Record(folder, {}) as record:
        record.write(7, {"a": 1.0})
        assert read_metrics(folder) == [{"steps": 7, "a": 1.0}]


def test_time_has_its_own_file(folder):
    begin(folder, num_updates=4)
    timing = read_timing(folder)
    assert [line["steps"] for line in timing] == [10, 20, 30, 40]
    assert sorted(timing[0]) == ["seconds", "steps", "steps_per_second"]
    with Record(folder, CONFIG, resume=True) as record:
        record.write(30, {})
    assert read_timing(folder)[:2] == timing[:2]
    assert read_timing(folder)[2]["seconds"] >= timing[1]["seconds"]


@pytest.mark.parametrize(
    ("steps", "metrics", "error", "message"),
    [
        (20, {"steps": 1.0}, ValueError, "no metric can be called steps"),
        (20, {"a": "1"}, TypeError, "metric a must be a number, got str"),
        (20, {"a": torch.tensor(1.0)}, TypeError, "metric a must be a number, got Tensor"),
        (10, {}, ValueError, "steps must be an integer of at least 11, got 10"),
    ],
)
def test_what_cannot_be_written(folder, steps, metrics, error, message):
    with Record(folder, {}) as record:
        record.write(10, {})
        with pytest.raises(error, match=message):
            record.write(steps, metrics)
        record.checkpoint(1, {})
    assert len(read_metrics(folder)) == len(read_timing(folder)) == 1


def test_a_folder_with_a_run_is_not_overwritten(folder):
    begin(folder)
    before = (folder / "metrics.jsonl").read_bytes()
    message = r"runs/x already holds a run: resume it \(--resume\) or choose another"
    with pytest.raises(RunFolderError, match=message):
        Record(folder, CONFIG)
    assert (folder / "metrics.jsonl").read_bytes() == before


@pytest.mark.parametrize(
    "name", [f"{kind}.safetensors" for kind in ("agent", "r_network", "bonus")]
)
def test_what_somebody_has_saved_is_not_replaced(folder, name):
    folder.mkdir(parents=True)
    (folder / name).write_bytes(b"mine")
    for resume in (False, True):
        with pytest.raises(
            RunFolderError, match=f"runs/x already holds {name}, which belongs to no run"
        ):
            Record(folder, CONFIG, resume=resume)
    assert [path.read_bytes() for path in folder.iterdir()] == [b"mine"]


def test_a_new_run_that_fails_before_its_first_checkpoint_leaves_the_folder_free(folder):
    def fail(record):
        with record:
            record.write(10, {})
            raise MemoryError

    with pytest.raises(MemoryError):
        fail(Record(folder, CONFIG))
    assert not folder.exists()
    with Record(folder, CONFIG | {"seed": 1}) as record:
        record.checkpoint(0, {})
    with pytest.raises(MemoryError):
        fail(Record(folder, CONFIG | {"seed": 1}, resume=True))
    assert read_config(folder)["seed"] == 1


def test_a_run_stopped_before_its_first_checkpoint_can_be_resumed(folder):
    with pytest.raises(KeyboardInterrupt), Record(folder, CONFIG):
        raise KeyboardInterrupt
    Record(folder, CONFIG, resume=True).close()


def test_a_resumed_run_goes_on_from_its_newest_checkpoint(folder):
    begin(folder, num_updates=3)
    with open(folder / "metrics.jsonl", "ab") as file:
        file.write(b'{"steps": 40, "rew')  # killed over the fourth line
    with Record(folder, CONFIG, resume=True) as record:
        assert record.last_checkpoint == folder / "checkpoints" / "000000000002"
        assert record.resume()["weights"].tolist() == [0, 1]
        record.write(25, {"reward": 9.0})
    assert [line["steps"] for line in read_metrics(folder)] == [10, 20, 25]
    assert [line["steps"] for line in read_timing(folder)] == [10, 20, 25]


def test_a_run_killed_before_its_first_checkpoint_begins_anew(folder):
    begin(folder, num_updates=1)
    with Record(folder, CONFIG, resume=True) as record:
        assert record.resume() is None
        assert record.last_checkpoint is None
        record.write(5, {})
    assert read_metrics(folder) == [{"steps": 5}]


def test_there_is_nothing_to_resume_in_a_new_folder(folder):
    with Record(folder, CONFIG, resume=True) as record:
        assert record.resume() is None
    assert read_config(folder)["seed"] == 0


def test_a_changed_config_is_named(folder):
    begin(folder)
    changed = CONFIG | {"seed": 1, "ppo": {"rate": 0.5, "clip": 0.1}, "bonus": {"alpha": 1}}
    with pytest.raises(RunFolderError) as refusal:
        Record(folder, changed, resume=True)
    assert str(refusal.value) == (
        f"{folder} holds a run with another config: seed was 0, now 1; ppo.rate was 0.0001, "
        "now 0.5; ppo.sizes was [8, 4], now absent (and 2 more)"
    )
    assert len(read_metrics(folder)) == 3  # nothing was cut off


def test_the_length_of_a_run_is_fixed(folder):
    with Record(folder, CONFIG | {"steps": 100}) as record:
        record.checkpoint(0, {})
    with pytest.raises(RunFolderError, match=r"steps was 100, now 200; the length of a run is"):
        Record(folder, CONFIG | {"steps": 200}, resume=True)


def test_some_fields_may_differ(folder):
    begin(folder)
    changed = CONFIG | {"seed": 1, "ppo": {"rate": 0.5}}
    with Record(folder, changed, resume=True, may_differ=("seed", "ppo")) as record:
        assert record.resume() is not None
    assert read_config(folder)["seed"] == 0
    with pytest.raises(RunFolderError, match=r"ppo\.rate was 0\.0001, now 0\.5"):
        Record(folder, CONFIG | {"ppo": {"rate": 0.5}}, resume=True, may_differ=("pp",))


def test_one_process_at_a_time(folder):
    with Record(folder, CONFIG):
        with pytest.raises(RunFolderError, match="is being written to by another process"):
            Record(folder, CONFIG, resume=True)
        with pytest.raises(RunFolderError, match="is being written to by another process"):
            Record(folder, CONFIG)
    Record(folder, CONFIG, resume=True).close()


def test_a_refused_folder_is_let_go(folder):
    begin(folder)
    with pytest.raises(RunFolderError):
        Record(folder, CONFIG)
    Record(folder, CONFIG, resume=True).close()


def test_a_folder_that_cannot_be_one(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(RunFolderError, match="file is a file; name a folder"):
        Record(tmp_path / "file", {})
    with pytest.raises(RunFolderError, match=r"cannot be written to \(Not a directory\)"):
        Record(tmp_path / "file" / "deeper", {})


def test_a_run_without_its_config_is_refused(folder):
    begin(folder)
    (folder / "config.json").unlink()
    with pytest.raises(RunFolderError, match="already holds a run"):
        Record(folder, CONFIG)
    with pytest.raises(LoadError, match=r"is no run: it has no config\.json"):
        Record(folder, CONFIG, resume=True)


def test_damaged_lines_are_named(folder):
    begin(folder)
    path = folder / "metrics.jsonl"
    first, second, third = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(first + second[:-5] + b"\n" + third)
    with pytest.raises(LoadError, match=r"metrics\.jsonl was changed in line 2"):
        read_metrics(folder)
    path.write_bytes(first + second + b"[3]\n")
    with pytest.raises(LoadError, match=r"metrics\.jsonl was changed in line 3"):
        read_metrics(folder)
    path.write_bytes(first + second + third[:-1])  # killed over the last one
    assert len(read_metrics(folder)) == 2
    path.write_bytes(first)
    with pytest.raises(LoadError, match="has 1 lines, but had 2 at the newest checkpoint"):
        Record(folder, CONFIG, resume=True)
    with pytest.raises(LoadError, match=r"metrics\.jsonl cannot be read \(No such file"):
        read_metrics(folder / "nowhere")


def test_tensorboard_shows_nothing_twice(folder):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    begin(folder, num_updates=3)
    with Record(folder, CONFIG, resume=True) as record:
        for steps in (30, 40):
            record.write(steps, {"reward": steps / 20})
    shown = EventAccumulator(str(folder / "tensorboard"))
    shown.Reload()
    assert sorted(shown.Tags()["scalars"]) == [
        "1 results/reward",
        "3 training/steps_per_second",
    ]
    events = [(event.step, event.value) for event in shown.Scalars("1 results/reward")]
    assert events == [(10, 0.5), (20, 1.0), (30, 1.5), (40, 2.0)]


@pytest.mark.parametrize("left", ["nothing", "a file"])
def test_a_deleted_folder_of_tensorboard_does_not_end_the_run(folder, left, capsys):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    with Record(folder, CONFIG) as record:
        for number in range(6):
            record.write(number + 1, {"reward": 0.5})
            record.checkpoint(number, {"n": number})  # flushes
            if number == 2:
                shutil.rmtree(folder / "tensorboard")
                if left == "a file":
                    (folder / "tensorboard").touch()
    assert len(read_metrics(folder)) == 6
    said = capsys.readouterr().err
    if left == "a file":
        assert said.startswith("no files for TensorBoard (")
        assert said.count("\n") == 1
        return
    assert said == ""
    shown = EventAccumulator(str(folder / "tensorboard"))
    shown.Reload()
    assert [event.step for event in shown.Scalars("1 results/reward")] == [4, 5, 6]


def test_without_tensorboard_it_goes_on_and_says_so(folder, monkeypatch, capsys):
    monkeypatch.delitem(sys.modules, "torch.utils.tensorboard", raising=False)
    monkeypatch.setitem(sys.modules, "tensorboard", None)
    begin(folder)
    assert len(read_metrics(folder)) == 3
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert said.startswith("no files for TensorBoard")


def test_a_system_without_another_thread_for_tensorboard(folder, monkeypatch, capsys):
    """TensorBoard writes in one; a limit on memory or processes can refuse it."""

    def refuse(_):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr("threading.Thread.start", refuse)
    begin(folder)
    assert len(read_metrics(folder)) == 3
    assert capsys.readouterr().err == "no files for TensorBoard (can't start new thread)\n"


@pytest.mark.parametrize("value", ["[" * 99_999 + "]" * 99_999, "1" + "0" * 400, "NaN"])
def test_a_line_that_json_stumbles_over(folder, value):
    begin(folder)
    path = folder / "timing.jsonl"
    path.write_text(path.read_text().replace('"seconds": ', f'"seconds": {value}, "x": ', 1))
    for read in (read_timing, read_metrics):
        with pytest.raises(LoadError, match=r"timing\.jsonl is damaged in line 1$"):
            read(folder)
    with pytest.raises(LoadError, match=r"timing\.jsonl is damaged in line 1$"):
        Record(folder, CONFIG, resume=True)


def test_killed_and_resumed_it_ends_with_the_same_bytes(tmp_path):
    result = subprocess.run(
        [sys.executable, "-W", "error", "-c", TOY_RUN, str(tmp_path)],
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert result.returncode == 0, result.stderr
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    assert len(read_metrics(whole)) == 30
    same = [Path("config.json"), Path("metrics.jsonl")]
    for number in (28, 30):
        checkpoint = Path("checkpoints") / f"{number:012d}"
        same.append(checkpoint / "state.safetensors")
    for name in same:
        assert (killed / name).read_bytes() == (whole / name).read_bytes(), name
