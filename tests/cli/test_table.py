"""`curiosity table`: what it lists, plans, runs and refuses."""

import dataclasses
import subprocess
import sys
import time
from pathlib import Path

import pytest

from episodic_curiosity.cli import main as cli
from episodic_curiosity.cli.table import table
from episodic_curiosity.experiments import on_ray, runner, side_by_side, sources
from episodic_curiosity.experiments.cells import Cell
from episodic_curiosity.experiments.forecast import forecast
from episodic_curiosity.experiments.results import write_measured
from episodic_curiosity.experiments.runner import Outcome
from episodic_curiosity.experiments.status import run_folder
from episodic_curiosity.experiments.tables import EXPERIMENTS
from episodic_curiosity.runs.record import Record
from tests.experiments.test_cells import find
from tests.experiments.test_runner import a_cell, outdated, pretended

BARE = """
import sys
for name in ("tyro", "rich", "tensorboard", "gymnasium", "numba", "ray", "vizdoom", "mujoco"):
    sys.modules[name] = None  # as if it were not installed
from episodic_curiosity.cli.table import table
import episodic_curiosity.experiments.runner
table(["table1", "--seeds", "1", "--dry-run"])
"""


@pytest.fixture(autouse=True)
def committed(monkeypatch):
    """Whatever the state of the tree that is tested."""
    monkeypatch.setattr(sources, "is_committed", lambda: True)


@pytest.fixture
def asked(monkeypatch):
    """What was to be run; nothing is."""
    asked = []

    def note(cells, *arguments):
        asked.append((cells, *arguments))
        states = {13: "failed", 14: "busy"}
        return [Outcome(cell, states.get(cell.key.seed, "done"), "") for cell in cells]

    monkeypatch.setattr(runner, "run_cells", note)
    monkeypatch.setattr(on_ray, "run_cells_on_ray", note)
    return asked


def test_the_list_names_every_experiment(tmp_path, capsys):
    with pytest.raises(ValueError, match="--list counts the cells of all tables, got table9"):
        table(["table9", "--list"])
    table(["--list", "--out", str(tmp_path)])
    lines = capsys.readouterr().out.splitlines()
    assert (
        lines[0] == f"cells measured with preset cpu, with any seed and steps, in {tmp_path}:"
    )
    assert [line.split()[0] for line in lines[1:]] == [*EXPERIMENTS, "claims"]
    assert "Table S12" in lines[11]


def test_the_list_counts_what_is_measured(tmp_path, capsys):
    """A cell counts once, whatever its seeds and steps."""
    for seed in (0, 3):
        cell = a_cell(seed)
        write_measured(tmp_path / cell.key.path, *pretended(cell))
    table(["--list", "--out", str(tmp_path)])
    counts = [line[40:50].strip() for line in capsys.readouterr().out.splitlines()[1:]]
    assert counts[:3] == ["1 of 35", "0 of 9", "0 of 6"]


def test_before_anything_is_measured_the_list_counts_nothing(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    table(["--list"])
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "cells measured with preset cpu, with any seed and steps, in results:"
    assert lines[1][40:50].strip() == "0 of 35"


def test_the_list_is_of_the_preset_with_most_results(capsys):
    results = Path(__file__).parents[2] / "results"  # of preset gpu
    for options, preset in (([], "gpu"), (["--preset", "turbo"], "turbo")):
        table(["--list", "--out", str(results), *options])
        assert capsys.readouterr().out.startswith(f"cells measured with preset {preset}, ")


def test_a_whole_table_is_asked_for(asked):
    line = "table1 --world maze --seeds 2 --steps 20_000_000 --preset gpu --out somewhere"
    cli.main(["table", *line.split()])
    ((cells, settings),) = asked
    assert cells == list(EXPERIMENTS["table1"].cells("maze", "gpu", 20_000_000, 2))
    assert settings.results == Path("somewhere")
    assert settings.episodes == 512
    assert settings.progress


def test_single_cells_are_asked_for(asked):
    line = "threshold --cell maze/no-reward:ppo+ec@k-2:3 --cell maze/very-sparse:ppo+ec:0"
    table([*line.split(), "--device", "cpu", "--episodes", "200"])
    ((cells, settings),) = asked
    assert [cell.key.label for cell in cells] == [
        "maze/no-reward:ppo+ec@k-2:3",
        "maze/very-sparse:ppo+ec:0",
    ]
    assert [cell.key.table for cell in cells] == ["threshold", "table1"]
    assert (cells[0].key.preset, cells[0].key.steps) == ("cpu", 200_000)
    assert (settings.device, settings.episodes) == ("cpu", 200)


def test_every_cells_own_command_asks_for_it(asked):
    for experiment in EXPERIMENTS.values():
        for cell in experiment.cells(experiment.worlds[0], "gpu", 20_000_000, 1):
            owner = EXPERIMENTS[cell.key.table]
            table([owner.name, "--cell", cell.key.label, "--preset", "gpu"])
            assert asked.pop()[0] == [cell]


def test_a_cluster_is_asked_for(asked):
    line = "table1 --seeds 1 --ray 10.0.0.1:6379 --ray-cpus 2 --ray-gpus 0.5"
    table(line.split())
    ((cells, settings, address, request),) = asked
    assert len(cells) == 35
    assert address == "10.0.0.1:6379"
    assert (request.num_cpus, request.num_gpus) == (2.0, 0.5)
    assert not settings.progress


def test_claims_are_measured_from_the_tables(asked):
    table(["claims", "--seeds", "1", "--preset", "gpu"])
    ((cells, _),) = asked
    assert {cell.key.table for cell in cells} == {"table1", "speed"}


def test_a_cell_that_failed_is_the_commands_failure(asked):
    with pytest.raises(SystemExit) as stopped:
        table(["table1", "--cell", "maze/sparse:ppo:13"])
    assert stopped.value.code == 1
    assert len(asked) == 1


def test_what_others_are_at_has_an_exit_code_of_its_own(asked):
    busy = ["--cell", "maze/sparse:ppo:14"]
    for failed, code in (([], 3), (["--cell", "maze/sparse:ppo:13"], 1)):
        with pytest.raises(SystemExit) as stopped:
            table(["table1", *busy, *failed])
        assert stopped.value.code == code
    assert len(asked) == 2


@pytest.mark.parametrize(
    ("committed", "is_said"), [(True, False), (None, False), (False, True)]
)
def test_sources_that_are_not_committed_are_noted(
    asked, monkeypatch, capsys, committed, is_said
):
    monkeypatch.setattr(sources, "is_committed", lambda: committed)
    cli.main(["table", "table1"])
    assert len(asked) == 1
    assert ("the sources are not committed" in capsys.readouterr().err) == is_said


def test_control_c_is_answered_once(monkeypatch, capsys):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(runner, "run_cells", interrupt)
    with pytest.raises(SystemExit) as stopped:
        cli.main(["table", "table1"])
    assert stopped.value.code == 130
    said = capsys.readouterr().err
    assert said == "stopped; run the same command again to continue\n"


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("", ("name a table", "table1", "television-sparse", "claims")),
        ("tabel1", ("the table must be one of", "table1", "'tabel1'")),
        ("table1 --world mars", ("the world of table1", "maze, dmlab", "'mars'")),
        ("ant --world maze", ("the world of ant must be one of ant",)),
        ("claims --world ant", ("the world of claims", "vizdoom, maze, dmlab")),
        ("claims --cell maze/sparse:ppo:0", ("--cell is for a table",)),
        ("table1 --preset huge", ("preset must be one of paper, gpu, turbo, cpu",)),
        ("table1 --preset=", ("preset must be one of", "got ''")),
        ("table1 --cell maze/sparse:ppo", ("--cell must be TASK:METHOD:SEED",)),
        ("table1 --cell maze/sparse:ppo:x", ("--cell must be TASK:METHOD:SEED",)),
        ("table1 --cell maze/sprase:ppo:0", ("the task of table1", "maze/sparse", "sprase")),
        ("table1 --cell maze/sparse:ppo+1:0", ("the method of table1", "ppo+icm", "'ppo+1'")),
        ("threshold --cell maze/no-reward:ppo+ec@k-6:0", ("ppo+ec@k-2", "'ppo+ec@k-6'")),
        ("table1 --seeds 0", ("--seeds must be an integer of at least 1",)),
        ("table1 --steps 10 --seeds 1", ("10 steps are too few",)),
        ("table1 --seeds 100000000 --dry-run", ("--seeds must be at most 1,000",)),
        ("table1 --episodes 99", ("--episodes must be an integer of at least 100",)),
        ("table1 --cell maze/sparse:ppo:0 --seeds 2", ("--seeds is for a complete table",)),
        ("table1 --cell maze/sparse:ppo:0 --world maze", ("--world is for a complete table",)),
        ("table1 --ray-gpus 1", ("--ray-gpus is for a cluster",)),
        ("table1 --ray-cpus 0", ("--ray-cpus is for a cluster",)),
        ("table1 --ray auto --device cuda", ("needs num_gpus above 0 per cell",)),
        ("table1 --ray auto --ray-cpus 0", ("num_cpus must be a finite number above 0",)),
        ("table1 --sedes 3", ("--sedes",)),
        ("table1 --device tpu", ("tpu", "cuda")),
    ],
)
def test_a_mistake_is_a_sentence_with_the_choices(line, words, tmp_path, capsys):
    folders = ["--out", str(tmp_path / "results"), "--runs", str(tmp_path / "runs")]
    with pytest.raises(SystemExit) as stopped:
        cli.main(["table", *line.split(), *folders])
    assert stopped.value.code == 2
    said = capsys.readouterr().err
    assert len(said.splitlines()) == 1
    for word in words:
        assert word in said
    assert not list(tmp_path.iterdir())


def test_a_plan_says_what_is_left_and_touches_nothing(tmp_path, capsys):
    results, runs = tmp_path / "results", tmp_path / "runs"
    cells = [a_cell(seed) for seed in range(7)]
    timing = {"seconds": 20.0, "steps_per_second": 600.0, "evaluation_seconds": 10.0}
    for cell in (cells[0], cells[1], cells[4], cells[5], cells[6]):
        write_measured(results / cell.key.path, pretended(cell).result, timing)
    damaged = results / cells[1].key.path
    damaged.write_bytes(damaged.read_bytes()[:50])
    stale = dataclasses.replace(pretended(cells[4]).result, config=outdated(cells[4]))
    write_measured(results / cells[4].key.path, stale, timing)
    misnamed = results / cells[5].key.path
    misnamed.write_bytes(pretended(cells[0]).result.to_bytes())
    newer = results / cells[6].key.path
    newer.write_bytes(newer.read_bytes().replace(b'"version": 1', b'"version": 2'))
    with Record(run_folder(cells[2], runs), cells[2].run().to_dict()) as record:
        record.write(4_000, {"reward": 1.0})
        record.checkpoint(1, {})
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    labels = [word for cell in cells for word in ("--cell", cell.key.label)]
    folders = ["--out", str(results), "--runs", str(runs)]
    table(["table1", "--dry-run", "--steps", "10_000", *labels, *folders])
    lines = capsys.readouterr().out.splitlines()
    # 10,000 steps took 20 s, their test 10 s.
    assert lines[0].endswith("cpu, 10,000 steps: done")
    assert lines[1].endswith("damaged, 10,000 steps left, about 0:00:30")
    assert lines[2].endswith("interrupted, 6,000 steps left, about 0:00:22")
    assert lines[3].endswith("missing, 10,000 steps left, about 0:00:30")
    assert "stale, not measured: " in lines[4]
    assert "ppo.gamma was 0.5, now 0.99" in lines[4]
    assert lines[5].endswith("damaged, 10,000 steps left, about 0:00:30")
    assert "unreadable, not measured: " in lines[6]
    assert lines[7].startswith("4 of 7 cells to measure: about 0:01:52 one after another, ")
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before


def test_a_plan_without_anything_measured_is_rough(tmp_path):
    cells = list(EXPERIMENTS["table1"].cells("maze", "gpu", 20_000_000, 1))
    cells += EXPERIMENTS["accuracy"].cells("maze", "gpu", 20_000_000, 1)
    entries = forecast(cells, tmp_path, tmp_path)
    assert all(entry.is_rough for entry in entries)
    by_label = {entry.cell.key.label: entry for entry in entries}
    ppo, ec, eco = (by_label[f"maze/sparse:{name}:0"] for name in ("ppo", "ppo+ec", "ppo+eco"))
    # Of 96 environments, 200 slots of 512 numbers of 4 bytes, in three checkpoints; ECO's
    # 720,000 steps.
    assert ec.peak_bytes - ppo.peak_bytes > 3 * 96 * 200 * 512 * 4
    assert eco.peak_bytes - ec.peak_bytes > 3 * 720_000 * 256
    assert by_label["maze/sparse:ppo+ec@mlp:0"].steps_left == 2_500_000  # random play alone


def test_a_plan_counts_the_frames_of_worlds_that_cannot_redraw(tmp_path):
    def peak(task, method, preset="gpu"):
        key = a_cell().key._replace(task=task, method=method, preset=preset, steps=20_000_000)
        (entry,) = forecast([Cell(key=key)], tmp_path, tmp_path)
        return entry.peak_bytes

    # ECO's history, and what its older checkpoint may refer to: twice 250 updates of 3,072.
    frames = (720_000 + 2 * 250 * 3_072) * 84 * 84 * 3
    for task in ("dmlab/sparse", "vizdoom/sparse"):
        assert frames < peak(task, "ppo+eco") < frames + 1e9
    assert peak("maze/sparse", "ppo+eco") < 3e9
    # CartPole shows four floats.
    floats = peak("gym/CartPole-v1", "ppo+eco") - (720_000 + 2 * 250 * 3_072) * 16
    assert 0 < floats < 1e9


def test_a_fit_alone_is_planned_by_fits_alone(tmp_path):
    agent = find("table1", "ppo+ec")
    mlp, dot = find("accuracy", "mlp"), find("accuracy", "shared dot")
    write_measured(
        tmp_path / agent.key.path,
        pretended(agent).result,
        {"seconds": 100.0, "steps_per_second": 1.0, "evaluation_seconds": 0.0},
    )
    assert forecast([mlp], tmp_path, tmp_path)[0].is_rough
    accuracy = {"num_values": 1, "mean": 0.9, "deviation": None, "low": 0.9, "high": 0.9}
    result = dataclasses.replace(pretended(mlp).result, metrics={"accuracy": accuracy})
    write_measured(tmp_path / mlp.key.path, result, {"seconds": 50.0})
    (entry,) = forecast([dot], tmp_path, tmp_path)
    assert (entry.seconds, entry.is_rough) == (50.0, False)
    # Speed is that of Table 1's runs: of one that is done nothing is left to train.
    (entry,) = forecast([find("speed", "ppo+ec")], tmp_path, tmp_path)
    assert (entry.state, entry.steps_left, entry.seconds) == ("missing", 0, 0.0)


@pytest.mark.parametrize("option", ["--out", "--runs"])
def test_a_file_is_no_folder(option, tmp_path, capsys):
    file = tmp_path / "file"
    file.write_text("mine")
    with pytest.raises(SystemExit) as stopped:
        cli.main(["table", "table1", "--dry-run", option, str(file)])
    assert stopped.value.code == 2
    said = capsys.readouterr().err
    assert said == f"curiosity: {option} must be a folder, got the file {file}\n"
    assert file.read_text() == "mine"


def test_as_a_module_a_mistake_is_a_sentence_too():
    command = [sys.executable, "-m", "episodic_curiosity.cli.table", "tabel1"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 2
    assert result.stderr.startswith("curiosity: the table must be one of table1, ")
    assert len(result.stderr.splitlines()) == 1


def test_nothing_but_torch_is_needed():
    result = subprocess.run(
        [sys.executable, "-c", BARE], capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
    assert "35 of 35 cells to measure" in result.stdout


def test_a_budget_stops_runs_as_ctrl_c_does(monkeypatch, tmp_path, capsys):
    def run_cells(_, settings):
        assert settings.deadline is not None
        time.sleep(60)

    monkeypatch.setattr(runner, "run_cells", run_cells)
    with pytest.raises(SystemExit) as stopped:
        table(
            [
                "table1",
                "--cell",
                "maze/sparse:ppo:0",
                "--budget",
                "0.2s",
                "--out",
                str(tmp_path),
            ]
        )
    assert stopped.value.code == 4
    said = capsys.readouterr().err
    assert said == "the budget is used up; run the same command again to continue\n"


def test_side_by_side_starts_the_same_command(monkeypatch, tmp_path):
    asked = []
    monkeypatch.setattr(side_by_side, "run_side_by_side", lambda *given: asked.append(given))
    line = f"table1 --cell maze/sparse:ppo:0 --side-by-side 3 --budget 9m --out {tmp_path}"
    cli.main(["table", *line.split()])
    ((cells, settings, number, command),) = asked
    assert ([cell.key.label for cell in cells], number) == (["maze/sparse:ppo:0"], 3)
    kept = f"table1 --cell maze/sparse:ppo:0 --budget 9m --out {tmp_path}"
    assert command[1:] == ["-P", "-m", "episodic_curiosity.cli.table", *kept.split()]
    assert settings.deadline is not None


def test_more_processes_than_memory_are_refused(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(side_by_side, "free_bytes", lambda _: 4_000_000_000)
    line = (
        f"table1 --seeds 1 --side-by-side 9 --device cpu --out {tmp_path} --runs {tmp_path}/r"
    )
    with pytest.raises(SystemExit):
        cli.main(["table", *line.split()])
    assert capsys.readouterr().err == (
        "curiosity: 9 runs side by side need about 13.5 GB, cpu has 4.0 GB free: "
        "try --side-by-side 2\n"
    )


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("--budget soon", "must be like 90s, 9m or 2h, got 'soon'"),
        ("--budget 0m", "must be like 90s, 9m or 2h, got '0m'"),
        ("--budget 99999999h", "must be at most a year, got '99999999h'"),
        ("--side-by-side 0", "--side-by-side must be an integer of at least 1, got 0"),
        ("--side-by-side 2 --ray auto", "--side-by-side is for this machine"),
        ("--budget 9m --ray auto", "--budget is for this machine, not for --ray"),
    ],
)
def test_options_of_time_and_processes_that_cannot_work(options, said, capsys):
    with pytest.raises(SystemExit):
        cli.main(["table", "table1", *options.split()])
    assert said in capsys.readouterr().err
