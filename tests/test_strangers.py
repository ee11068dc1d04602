"""What was received from a stranger runs nothing, writes nowhere else and exhausts nothing."""

import json
import os
import shutil
import signal
import subprocess
import sys
import warnings
from dataclasses import dataclass, replace
from pathlib import Path

import gymnasium
import pytest

import episodic_curiosity as ec
from episodic_curiosity.bonus.constant import ConstantConfig
from episodic_curiosity.cli import main as cli
from episodic_curiosity.experiments.cells import Cell
from episodic_curiosity.experiments.results import Key, Result
from episodic_curiosity.experiments.runner import RunnerConfig, run_cell
from episodic_curiosity.runs.checkpoints import Checkpoints
from episodic_curiosity.runs.metrics_files import read_metrics
from episodic_curiosity.runs.record import read_config, write_config
from episodic_curiosity.runs.stored_run import loads
from episodic_curiosity.runs.train import train
from episodic_curiosity.worlds.registry import what_it_loads
from tests.runs.tiny_runs import tiny_run
from tests.support.headers import read_header, write_header

pytestmark = pytest.mark.slow

# A relative PYTHONPATH would make the current folder one to import from.
ENVIRONMENT = os.environ | {"PYTHONPATH": str(Path(__file__).parents[1])}
CURIOSITY = Path(sys.executable).with_name("curiosity")
GYM_WORLD = tiny_run("ppo", "gym/CartPole-v1").to_dict()["world"]
TRAP = "from pathlib import Path; Path({marker!r}).write_text('run')\n"


@pytest.fixture(scope="module")
def maze_run(tmp_path_factory):
    """A run of a stranger's, on a maze."""
    folder = tmp_path_factory.mktemp("sent") / "maze"
    train(tiny_run("ppo", num_updates=6), folder, progress=False)
    return folder


@pytest.fixture
def sent(maze_run, tmp_path):
    """A copy of it that can be tampered with."""
    return Path(shutil.copytree(maze_run, tmp_path / "sent", symlinks=True))


def refused(capsys, *words: object) -> str:
    """What `curiosity` says where it does not do as told, in one sentence."""
    with pytest.raises(SystemExit) as stop:
        cli.main([str(word) for word in words])
    assert stop.value.code == 2
    said = capsys.readouterr().err
    sentences = [line for line in said.splitlines() if line.startswith("curiosity: ")]
    assert len(sentences) == 1, said
    assert "Traceback" not in said
    return sentences[0]


def commands(folder: Path, tmp_path: Path) -> list[list[object]]:
    """All that reads the run of a folder."""
    return [
        ["evaluate", folder, "--episodes", 1, "--device", "cpu"],
        ["watch", folder, "--out", tmp_path / "film.gif", "--frames", 2, "--device", "cpu"],
        ["train", "--resume", "--out", folder],
    ]


class TestModules:
    """gym/MODULE:ID imports MODULE."""

    @pytest.fixture
    def planted(self, tmp_path, monkeypatch):
        """A module that anybody could import, and the mark that it leaves."""
        marker = tmp_path / "marker"
        (tmp_path / "site").mkdir()
        entry = "gymnasium.envs.classic_control:CartPoleEnv"
        register = f"import gymnasium\ngymnasium.register('Planted-v0', {entry!r})\n"
        monkeypatch.delitem(gymnasium.registry, "Planted-v0", raising=False)
        (tmp_path / "site" / "planted.py").write_text(
            TRAP.format(marker=str(marker)) + register
        )
        monkeypatch.syspath_prepend(tmp_path / "site")
        monkeypatch.delitem(sys.modules, "planted", raising=False)
        return marker

    @pytest.fixture
    def gym_run(self, tmp_path):
        folder = tmp_path / "gym"
        train(tiny_run("ppo", "gym/CartPole-v1", num_updates=1), folder, progress=False)
        write_config(folder, read_config(folder) | {"task": "gym/planted:Planted-v0"})
        return folder

    def test_no_command_imports_what_a_folder_names(self, gym_run, planted, tmp_path, capsys):
        for command in commands(gym_run, tmp_path):
            said = refused(capsys, *command)
            assert "imports the Python module planted (task gym/planted:Planted-v0)" in said
            assert "add --trust" in said
        ec.load_agent(gym_run)
        assert not planted.exists()

    def test_with_trust_it_is_imported(self, gym_run, planted, capsys):
        evaluate = ["evaluate", str(gym_run), "--episodes", "1", "--device", "cpu"]
        cli.main([*evaluate, "--trust"])
        assert "gym/planted:Planted-v0: 1 episodes" in capsys.readouterr().out
        assert planted.exists()

    def test_what_the_user_names_needs_no_trust(self, gym_run, planted, capsys):
        out = ["--out", gym_run, "--device", "cpu"]
        refused(capsys, "train", "--resume", *out, "--task", "gym/planted:Planted-v0")
        assert planted.exists()

    def test_a_report_imports_nothing_that_results_name(self, planted, tmp_path):
        task = "gym/planted:Planted-v0"
        run = tiny_run("ppo", "gym/CartPole-v1", num_updates=1)
        write_result(tmp_path / "results", task=task, config=run.to_dict() | {"task": task})
        page = tmp_path / "page.html"
        cli.main(["report", str(tmp_path / "results"), "--out", str(page)])
        assert page.exists()
        assert not planted.exists()

    def test_all_that_a_run_loads_is_named(self):
        run = tiny_run("ppo+ec", "gym/CartPole-v1")
        play = replace(run.r_network.random_play, tasks=("gym/first:A-v0", "gym/second:B-v0"))
        run = replace(
            run, r_network=replace(run.r_network, source=Path("/etc"), random_play=play)
        )
        assert list(loads(run, to_train=True)) == [
            "imports the Python module first (task gym/first:A-v0)",
            "imports the Python module second (task gym/second:B-v0)",
            "uses the path /etc (r_network.source)",
        ]
        assert list(loads(run, to_train=False)) == []  # to play needs none of them

    @pytest.mark.parametrize("to_train", [True, False])
    def test_a_path_of_the_bonus_is_named(self, to_train):
        """A film makes the bonus from the stored config."""

        @dataclass(frozen=True, kw_only=True)
        class WithFile(ConstantConfig):
            file: Path = Path("/etc")

        run = replace(tiny_run("ppo+1"), bonus=WithFile())
        assert list(loads(run, to_train=to_train)) == ["uses the path /etc (bonus.file)"]

    @pytest.mark.parametrize(
        ("task", "what"),
        [
            ("gym/a.b:C-v0", "imports the Python module a.b"),
            ("gym/a:b:C-v0", "imports the Python module a:b"),
            ("gym/CartPole-v1", None),
            ("vizdoom/basic.cfg", None),
            ("vizdoom/sparse", None),
            ("vizdoom/./basic.cfg", "plays the file ./basic.cfg"),
            ("vizdoom/../x.wad", "plays the file ../x.wad"),
            ("dmlab/sparse", None),
            ("dmlab/sparse+noise", None),
            ("dmlab/contributed/dmlab30/rooms_watermaze", None),
            ("dmlab//tmp/evil.lua", "runs the level script /tmp/evil.lua"),
            ("dmlab/../evil", "runs the level script ../evil"),
            ("maze/sparse", None),
        ],
    )
    def test_what_a_task_loads(self, task, what):
        assert what_it_loads(task) == what


class TestScenarios:
    """A ViZDoom .cfg may name any program to start and any file to log to."""

    @pytest.fixture(scope="class")
    @classmethod
    def doom_run(cls, tmp_path_factory):
        """A run on a scenario that lies in its own folder, as it would be sent."""
        vizdoom = pytest.importorskip("vizdoom")

        folder = tmp_path_factory.mktemp("doom") / "run"
        shipped = Path(vizdoom.scenarios_path)
        folder.mkdir(parents=True)
        shutil.copy(shipped / "basic.wad", folder)
        shutil.copy(shipped / "basic.cfg", folder)
        run = tiny_run("ppo", f"vizdoom/{folder / 'basic.cfg'}", num_updates=1)
        run = replace(run, world=replace(run.world, num_envs=2, episode_steps=8))
        train(run, folder, progress=False)
        return folder

    def test_a_scenario_is_played_with_trust_alone(self, doom_run, tmp_path, capsys):
        for command in commands(doom_run, tmp_path):
            said = refused(capsys, *command)
            assert f"plays the file {doom_run / 'basic.cfg'}" in said
        evaluate = ["evaluate", str(doom_run), "--episodes", "1", "--device", "cpu"]
        cli.main([*evaluate, "--trust"])  # the real engine
        assert "basic.cfg: 1 episodes" in capsys.readouterr().out

    @pytest.mark.parametrize("line", ["vizdoom_path = trap", "vizdoomPath=trap"])
    def test_no_scenario_chooses_the_program(self, doom_run, tmp_path, capsys, line):
        marker = tmp_path / "marker"
        folder = Path(shutil.copytree(doom_run, tmp_path / "run"))
        trap = folder / "trap"  # ViZDoom takes a path from the .cfg's folder
        trap.write_text(f"#!/bin/sh\ntouch {marker}\n")
        trap.chmod(0o755)
        tamper(folder, doom_run, line)
        for command in commands(folder, tmp_path):
            said = refused(capsys, *command, "--trust")
            assert "which is not passed to ViZDoom: remove that line" in said
        assert not marker.exists()

    def test_no_scenario_passes_arguments(self, doom_run, tmp_path, capsys):
        victim = tmp_path / "victim"
        victim.write_text("precious")
        folder = Path(shutil.copytree(doom_run, tmp_path / "run"))
        tamper(folder, doom_run, f"game_args += +logfile {victim}")
        for command in commands(folder, tmp_path):
            said = refused(capsys, *command, "--trust")
            assert "game_args must be +sv_noautoaim 1, others are not passed to ViZDoom" in said
        assert victim.read_text() == "precious"


def tamper(folder: Path, doom_run: Path, line: str) -> None:
    """Points a copied run to its own scenario, and adds a line to that."""
    with (folder / "basic.cfg").open("a") as file:
        file.write(f"\n{line}\n")
    task = f"vizdoom/{folder / 'basic.cfg'}"
    assert read_config(folder)["task"] == f"vizdoom/{doom_run / 'basic.cfg'}"
    write_config(folder, read_config(folder) | {"task": task})


class TestLinks:
    """A symbolic link in a folder would have another file written."""

    @pytest.mark.parametrize("name", [".evaluation.json.new", "evaluation.json"])
    def test_an_evaluation_is_written_into_the_folder(self, sent, tmp_path, name, capsys):
        victim = tmp_path / "victim"
        victim.write_text("precious")
        (sent / name).symlink_to(victim)
        cli.main(["evaluate", str(sent), "--episodes", "1", "--device", "cpu"])
        assert "1 episodes" in capsys.readouterr().out
        assert victim.read_text() == "precious"
        assert not (sent / "evaluation.json").is_symlink()
        assert json.loads((sent / "evaluation.json").read_text())["split"] == "test"

    @pytest.mark.parametrize(
        "name", [".lock", "metrics.jsonl", "timing.jsonl", "checkpoints", "tensorboard"]
    )
    def test_a_run_is_not_resumed_into_another_place(self, sent, tmp_path, name, capsys):
        elsewhere = tmp_path / "elsewhere"
        os.replace(sent / name, elsewhere)
        (sent / name).symlink_to(elsewhere)
        before = contents(elsewhere)
        said = refused(capsys, "train", "--resume", "--out", sent)
        assert f"{sent / name} must be a file or folder, got a symbolic link to" in said
        assert contents(elsewhere) == before

    @pytest.mark.parametrize("name", ["results", "runs"])
    def test_a_table_is_not_written_into_another_place(self, tmp_path, name):
        cell = Cell(key=Key("t", "maze/sparse", "ppo", None, "cpu", 10_000, 0))
        folders = {"results": tmp_path / "results", "runs": tmp_path / "runs"}
        elsewhere = tmp_path / "elsewhere"
        elsewhere.mkdir()
        folders[name].mkdir()
        (folders[name] / "t").symlink_to(elsewhere)
        outcome = run_cell(cell, RunnerConfig(**folders, device="cpu"))
        assert outcome.state == "failed"
        assert (
            f"{folders[name] / 't'} must be a file or folder, got a symbolic link"
            in outcome.message
        )
        assert list(elsewhere.iterdir()) == []

    def test_what_is_saved_replaces_links(self, sent, tmp_path):
        victim = tmp_path / "victim"
        victim.write_text("precious")
        for name in ("agent.safetensors", ".agent.safetensors.new"):
            (sent / name).unlink(missing_ok=True)
            (sent / name).symlink_to(victim)
        ec.Agent((5,), 2).save(sent)
        assert victim.read_text() == "precious"
        assert ec.load_agent(sent).config.num_actions == 2


def contents(path: Path) -> dict[str, bytes]:
    files = [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file()]
    return {str(file): file.read_bytes() for file in files}


class TestResuming:
    """What was edited or taken away is noticed before anything is cut off."""

    def test_without_checkpoints_nothing_is_erased(self, sent, capsys):
        shutil.rmtree(sent / "checkpoints")
        before = contents(sent)
        said = refused(capsys, "train", "--resume", "--out", sent)
        assert "it has no checkpoints" in said
        assert "6 lines of metrics, agent.safetensors" in said
        assert contents(sent) == before

    def test_an_emptied_folder_of_checkpoints_is_no_new_run(self, sent, capsys):
        (sent / "agent.safetensors").unlink()
        shutil.rmtree(sent / "checkpoints")
        (sent / "checkpoints").mkdir()
        before = contents(sent)
        assert "it has no checkpoints" in refused(capsys, "train", "--resume", "--out", sent)
        assert contents(sent) == before

    def test_an_edited_config_is_noticed(self, sent, capsys):
        header = json.loads((sent / "config.json").read_text())
        header["config"]["ppo"]["learning_rate"] *= 2
        (sent / "config.json").write_text(json.dumps(header))
        for command in commands(sent, sent.parent):
            assert "config.json was changed after it was written" in refused(capsys, *command)
        resume = ["train", "--resume", "--out", str(sent), "--accept-changes"]
        cli.main(resume)
        assert read_config(sent) == header["config"]
        assert len(read_metrics(sent)) == 6

    def test_any_flipped_bit_of_the_metrics_is_noticed(self, sent, capsys):
        path = sent / "metrics.jsonl"
        content = path.read_bytes()
        for number in range(60):
            flipped = bytearray(content)
            flipped[len(content) * number // 60] ^= 1 << number % 8
            path.write_bytes(flipped)
            with pytest.raises(ec.LoadError, match=r"metrics\.jsonl|timing\.jsonl"):
                read_metrics(sent)
            if number % 20 == 0:
                said = refused(capsys, "train", "--resume", "--out", sent)
                assert "metrics.jsonl" in said or "timing.jsonl" in said
        assert path.read_bytes() == flipped  # nothing was cut off

    def test_edited_metrics_are_accepted_knowingly(self, sent):
        lines = (sent / "metrics.jsonl").read_text().splitlines()
        lines[0] = lines[0].replace('"steps": 40', '"steps": 41')
        (sent / "metrics.jsonl").write_text("\n".join(lines) + "\n")
        cli.main(["train", "--resume", "--out", str(sent), "--accept-changes"])
        assert read_metrics(sent)[0]["steps"] == 41

    @pytest.mark.parametrize("lines", [b'{"steps": 40}\n', b"no JSON\n" * 6])
    def test_metrics_that_cannot_be_accepted_cost_nothing(self, sent, lines, capsys):
        (sent / "metrics.jsonl").write_bytes(lines)
        before = contents(sent)
        said = refused(capsys, "train", "--resume", "--out", sent, "--accept-changes")
        assert "metrics.jsonl" in said
        changed = {name for name, content in contents(sent).items() if before[name] != content}
        assert changed <= {str(sent / "config.json")}

    def test_changes_are_accepted_of_a_run_that_is_resumed(self, capsys):
        for flag in ("--trust", "--accept-changes"):
            said = refused(capsys, "train", "--task", "maze/sparse", flag)
            assert "need --resume" in said


class TestVersions:
    """What another release or another layout wrote is refused by both their names."""

    def test_a_run_of_an_earlier_release(self, sent, capsys):
        header = json.loads((sent / "config.json").read_text())
        del header["sha256"]
        header |= {"version": 1, "code": "0.1.0"}
        (sent / "config.json").write_text(json.dumps(header))
        for command in commands(sent, sent.parent):
            said = refused(capsys, *command)
            assert "was written by episodic-curiosity 0.1.0 in format 1" in said
            assert f"this is {ec.__version__}, which reads format 2" in said

    def test_a_checkpoint_of_another_layout(self, sent, monkeypatch, capsys):
        monkeypatch.setattr("episodic_curiosity.support.saving.__version__", "9.8.7")
        monkeypatch.setattr(
            "episodic_curiosity.agent.ppo.PPO.load_state_dict", lambda _, state: state["more"]
        )
        said = refused(capsys, "train", "--resume", "--out", sent)
        assert "does not fit this run: KeyError: 'more'" in said
        assert f"(written by episodic-curiosity {ec.__version__}, this is 9.8.7)" in said


class TestSizes:
    """A few bytes that ask for gigabytes, and files that never end."""

    def test_weights_are_compared_before_they_are_allocated(self, sent):
        header = read_header(sent / "agent.safetensors")
        header["config"]["num_actions"] = 3_000_000
        write_header(sent / "agent.safetensors", header)
        program = f"""
import resource
import episodic_curiosity as ec
ec.Agent((3, 36, 36), 2)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    ec.load_agent({str(sent)!r})
except ec.LoadError as error:
    print(error)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""
        said = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, check=True
        ).stdout.splitlines()
        assert "wanted torch.float32 (3000000, 512)" in said[0]
        assert int(said[1]) < 100_000  # kilobytes; the weights would be 6 million

    @pytest.mark.parametrize("name", ["agent.safetensors", "config.json", "metrics.jsonl"])
    def test_a_pipe_does_not_hang(self, sent, name, capsys):
        (sent / name).unlink()
        os.mkfifo(sent / name)
        command = ["train", "--resume", "--out"] if name == "metrics.jsonl" else ["evaluate"]

        def give_up(*_):
            raise AssertionError(f"opening {name} hangs")

        before = signal.signal(signal.SIGALRM, give_up)
        signal.alarm(100)
        try:
            said = refused(capsys, *command, sent)
        finally:
            signal.alarm(0)
            signal.signal(signal.SIGALRM, before)
        assert f"curiosity: {sent / name} is not a regular file" in said

    def test_a_file_that_is_too_large_is_not_read(self, sent, capsys):
        os.truncate(sent / "config.json", 10**12)  # sparse: it takes no room
        assert "must have at most 16,777,216 bytes" in refused(capsys, "evaluate", sent)


class TestCheckpoints:
    """A forged checkpoint is answered in a sentence."""

    @pytest.mark.parametrize(
        "changes", [{"lines": "6"}, {"lines": None}, {"steps": 0.5}, {"lines": -1}]
    )
    def test_counts_that_are_none(self, sent, changes, capsys):
        checkpoints = Checkpoints(sent)
        number, state, lines, steps = checkpoints.load_newest()
        shutil.rmtree(sent / "checkpoints")
        checkpoints.save(state, number, **({"lines": lines, "steps": steps} | changes))
        said = refused(capsys, "train", "--resume", "--out", sent)
        assert "is not a checkpoint of a run" in said

    @pytest.mark.parametrize(
        "path", ["number", "metrics", "bonus", "ppo/step", "collector/tally", "agent"]
    )
    def test_a_state_that_lacks_a_part(self, sent, path, capsys):
        checkpoints = Checkpoints(sent)
        number, state, lines, steps = checkpoints.load_newest()
        *outer, name = path.split("/")
        part = state
        for key in outer:
            part = part[key]
        del part[name]
        shutil.rmtree(sent / "checkpoints")
        checkpoints.save(state, number, lines, steps)
        said = refused(capsys, "train", "--resume", "--out", sent)
        assert "does not fit this run" in said

    @pytest.mark.parametrize("change", [{"seconds": None}, {"steps": "many"}])
    def test_a_time_that_is_none(self, sent, change, capsys):
        path = sent / "timing.jsonl"
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        for line in lines:
            for name, value in change.items():
                line[name] = value
                if value is None:
                    del line[name]
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
        said = refused(capsys, "train", "--resume", "--out", sent)
        assert "timing.jsonl is damaged in line 1" in said

    @pytest.mark.parametrize("name", [".000000000001.new", "000000000099"])
    def test_a_file_in_the_place_of_a_folder(self, sent, name):
        (sent / "checkpoints" / name).write_text("x")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # it goes back to the one before
            cli.main(["train", "--resume", "--out", str(sent)])
        assert len(read_metrics(sent)) == 6


def write_result(folder: Path, **changes: object) -> Path:
    """Puts a result among others, as anybody could write one."""
    played = {"num_values": 512, "mean": 1.0, "deviation": 0.0, "low": 1.0, "high": 1.0}
    fields = {
        "table": "mine",
        "task": "maze/sparse",
        "method": "ppo",
        "variant": None,
        "preset": "cpu",
        "steps": 100,
        "seed": 0,
        "config": {},
        "code": "0.1.0",
        "command": "",
        "curve": [],
        "metrics": {"reward": played, "length": played},
        "action_shares": {},
    } | changes
    key = Key(*(fields.pop(name) for name in Key._fields))
    result = Result(key=key, **fields)
    path = folder / result.key.path
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(result.to_bytes())
    return path


def test_markdown_shows_the_text_of_results_as_it_is(tmp_path):
    evil = "<img src=x onerror=alert(1)>[a](javascript:b)|`c`"
    write_result(tmp_path / "results", table=evil.replace("/", ""), preset="<b>")
    (tmp_path / "results" / "mine").mkdir()
    (tmp_path / "results" / "mine" / "<script>__a__b__1__s0.json").write_text("{")
    out = tmp_path / "tables.md"
    cli.main(["report", str(tmp_path / "results"), "--markdown", str(out)])
    text = out.read_text().replace("<br>", "")
    assert "&lt;img src=x onerror=alert(1)&gt;\\[a\\](javascript:b)\\|\\`c\\`" in text
    assert "&lt;script&gt;" in text
    assert "<img" not in text
    assert "<b>" not in text
    assert "<script" not in text


def test_markdown_keeps_text_on_its_line(tmp_path):
    write_result(tmp_path / "results", task="maze/x\r\r# Owned\n~~~\x1b[2J")
    out = tmp_path / "tables.md"
    cli.main(["report", str(tmp_path / "results"), "--markdown", str(out)])
    assert "# Owned" not in out.read_text().splitlines()
    assert "maze/x # Owned \\~\\~\\~\\\\x1b\\[2J" in out.read_text()


@pytest.mark.parametrize(
    "changes",
    [
        {"metrics": []},
        {"code": []},
        {"steps": "100"},
        {"steps": -5},
        {"curve": [{"steps": "a"}]},
        {"curve": [{"steps": 10**400}]},
        {"command": "\ud800"},
        {"variant": 3},
    ],
)
def test_one_bad_result_does_not_stop_a_report(tmp_path, changes, capsys):
    good = write_result(tmp_path / "results")
    bad = good.with_name(good.name.replace("s0", "s1"))
    fields = json.loads(good.read_text()) | {"seed": 1} | changes
    bad.write_text(json.dumps(fields))
    cli.main(["report", str(tmp_path / "results"), "--out", str(tmp_path / "page.html")])
    said = capsys.readouterr().err
    assert f"not counted: {bad} " in said


def test_a_message_does_not_repaint_the_terminal(sent, capsys):
    config = read_config(sent)
    write_config(sent, config | {"task": "gym/\x1b[2Jevil:X-v0", "world": GYM_WORLD})
    said = refused(capsys, "evaluate", sent)
    assert "\x1b" not in said
    assert "\\x1b[2Jevil" in said


@pytest.mark.parametrize("start", ["script", "module"])
def test_nothing_is_imported_from_the_current_folder(maze_run, tmp_path, start):
    for name in ("torch", "numpy", "gymnasium", "numba", "tyro", "rich", "safetensors", "PIL"):
        (tmp_path / f"{name}.py").write_text(TRAP.format(marker=str(tmp_path / "marker")))
    command = [CURIOSITY] if start == "script" else [sys.executable, "-P", "-m", ec.__name__]
    evaluate = [*command, "evaluate", maze_run, "--episodes", "1", "--device", "cpu"]
    ended = subprocess.run(
        evaluate, cwd=tmp_path, env=ENVIRONMENT, capture_output=True, text=True
    )
    assert ended.returncode == 0, ended.stderr
    assert not (tmp_path / "marker").exists()


LOCAL_CLUSTER = """
import glob, importlib.util, os, sys
from episodic_curiosity.experiments.on_ray import _connected

def sockets_of(mark):
    for path in glob.glob("/proc/[0-9]*/environ"):
        try:
            if mark in open(path, "rb").read():
                for file in glob.glob(path.replace("environ", "fd/*")):
                    yield os.readlink(file)
        except OSError:  # it has ended
            continue

with _connected("auto") as ray:
    find = ray.remote(lambda: str(importlib.util.find_spec("planted")))
    print("planted:", ray.get(find.remote()))
    ours = set(sockets_of(b"CLUSTER_TEST=" + os.environb[b"CLUSTER_TEST"]))
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        for line in open(table).read().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and f"socket:[{fields[9]}]" in ours:  # it listens
                print("listens:", fields[1].partition(":")[0])
"""
# 127.0.0.1, alone and within an IPv6 address, as the kernel writes them.
LOOPBACK = {"0100007F", "0000000000000000FFFF00000100007F"}


@pytest.mark.skipif(sys.platform != "linux", reason="sockets are read from /proc")
def test_a_local_cluster_listens_to_this_machine_alone(tmp_path):
    pytest.importorskip("ray")
    (tmp_path / "planted.py").write_text("")
    ended = subprocess.run(
        [sys.executable, "-P", "-c", LOCAL_CLUSTER],
        cwd=tmp_path,
        env=ENVIRONMENT | {"CLUSTER_TEST": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert ended.returncode == 0, ended.stderr
    said = [line.split(": ") for line in ended.stdout.splitlines() if ": " in line]
    assert ["planted", "None"] in said  # workers do not import from the current folder
    addresses = {value for name, value in said if name == "listens"}
    assert addresses
    assert addresses <= LOOPBACK


NUMBA_CACHE = """
import os, pickle, sys
from numba.core import caching
from episodic_curiosity.worlds.maze.render import render_numba

class Trap:
    def __reduce__(self):
        return (os.system, (f"touch {sys.argv[1]}",))

# The index that Numba would look for if its cache were in this folder.
os.environ["NUMBA_CACHE_DIR"] = sys.argv[2]
from numba.core import config
config.CACHE_DIR = sys.argv[2]
cache = caching.FunctionCache(render_numba._render.py_func)
os.makedirs(cache.cache_path, exist_ok=True)
with open(cache._cache_file._index_path, "wb") as file:
    pickle.dump(cache._cache_file._version, file)
    pickle.dump(Trap(), file)
print(cache._cache_file._index_path)
"""


def test_numba_has_no_cache_in_the_current_folder(maze_run, tmp_path):
    """Its index is unpickled."""
    marker, here = tmp_path / "marker", tmp_path / "here"
    here.mkdir()
    command = [sys.executable, "-c", NUMBA_CACHE, str(marker), str(here / "cache")]
    planted = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    assert Path(planted).exists()
    (here / ".numba_config.yaml").write_text("cache_dir: cache\n")
    evaluate = [CURIOSITY, "evaluate", maze_run, "--episodes", "1", "--device", "cpu"]
    ended = subprocess.run(evaluate, cwd=here, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    assert not marker.exists()
