"""What was received from a stranger runs nothing, writes nowhere else and exhausts nothing."""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import gymnasium
import pytest

import episodic_curiosity as ec
from episodic_curiosity.cli import main as cli
from episodic_curiosity.experiments.results import Key, Result
from episodic_curiosity.runs.metrics_files import read_metrics
from episodic_curiosity.runs.record import read_config, write_config
from episodic_curiosity.runs.train import train
from tests.runs.tiny_runs import tiny_run

CURIOSITY = Path(sys.executable).with_name("curiosity")
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
        ec.load(gym_run)
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

    def test_tasks_of_random_play_count_too(self, sent, capsys):
        train(tiny_run("ppo+ec", num_updates=1), sent.with_name("ec"), progress=False)
        config = read_config(sent.with_name("ec"))
        config["r_network"]["random_play"]["tasks"] = ["maze/sparse"]
        write_config(sent.with_name("ec"), config)
        cli.main(["evaluate", str(sent.with_name("ec")), "--episodes", "1", "--device", "cpu"])
        config["r_network"]["source"] = "/etc"
        write_config(sent.with_name("ec"), config)
        said = refused(capsys, "evaluate", sent.with_name("ec"))
        assert "uses the path /etc (r_network.source)" in said


class TestScenarios:
    """A ViZDoom .cfg may name any program to start and any file to log to."""

    pytest.importorskip("vizdoom")

    @pytest.fixture(scope="class")
    @classmethod
    def doom_run(cls, tmp_path_factory):
        """A run on a scenario that lies in its own folder, as it would be sent."""
        import vizdoom

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

    @pytest.mark.parametrize("line", ["vizdoom_path = {trap}", "vizdoomPath={trap}"])
    def test_no_scenario_chooses_the_program(self, doom_run, tmp_path, capsys, line):
        marker, trap = tmp_path / "marker", tmp_path / "trap"
        trap.write_text(f"#!/bin/sh\ntouch {marker}\n")
        trap.chmod(0o755)
        folder = Path(shutil.copytree(doom_run, tmp_path / "run"))
        tamper(folder, doom_run, line.format(trap=trap))
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
        config = read_config(sent)
        write_config(sent, config | {"steps": config["steps"]})
        said = refused(capsys, "train", "--resume", "--out", sent)
        assert f"{sent / name} is a symbolic link to {elsewhere}" in said
        assert contents(elsewhere) == before

    def test_what_is_saved_replaces_links(self, sent, tmp_path):
        victim = tmp_path / "victim"
        victim.write_text("precious")
        names = ("agent.json", "agent.safetensors", ".agent.json.new", ".agent.safetensors.new")
        for name in names:
            (sent / name).unlink(missing_ok=True)
            (sent / name).symlink_to(victim)
        ec.Agent((5,), 2).save(sent)
        assert victim.read_text() == "precious"
        assert ec.load(sent).config.num_actions == 2


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
        assert "6 lines of metrics, agent.json, agent.safetensors" in said
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
        header = json.loads((sent / "agent.json").read_text())
        header["config"]["num_actions"] = 3_000_000
        (sent / "agent.json").write_text(json.dumps(header))
        program = f"""
import resource
import episodic_curiosity as ec
ec.Agent((3, 36, 36), 2)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    ec.load({str(sent)!r})
except ec.LoadError as error:
    print(error)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""
        said = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, check=True
        ).stdout.splitlines()
        assert "wanted torch.float32 (3000000, 512)" in said[0]
        assert int(said[1]) < 100_000  # kilobytes; the weights would be 6 million

    @pytest.mark.parametrize(
        "name", ["agent.json", "agent.safetensors", "config.json", "metrics.jsonl"]
    )
    def test_a_pipe_does_not_hang(self, sent, name):
        (sent / name).unlink()
        os.mkfifo(sent / name)
        command = ["train", "--resume", "--out"] if name == "metrics.jsonl" else ["evaluate"]
        ended = subprocess.run(
            [CURIOSITY, *command, sent], capture_output=True, text=True, timeout=300
        )
        assert ended.returncode == 2
        assert f"curiosity: {sent / name} is no regular file" in ended.stderr

    def test_a_file_that_is_too_large_is_not_read(self, sent, capsys):
        os.truncate(sent / "agent.json", 10**12)  # sparse: it takes no room
        assert "at most 16,777,216 are read" in refused(capsys, "evaluate", sent)


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


@pytest.mark.parametrize("start", ["script", "module"])
def test_nothing_is_imported_from_the_current_folder(maze_run, tmp_path, start):
    for name in ("torch", "numpy", "gymnasium", "numba", "tyro", "rich", "safetensors", "PIL"):
        (tmp_path / f"{name}.py").write_text(TRAP.format(marker=str(tmp_path / "marker")))
    command = [CURIOSITY] if start == "script" else [sys.executable, "-P", "-m", ec.__name__]
    evaluate = [*command, "evaluate", maze_run, "--episodes", "1", "--device", "cpu"]
    ended = subprocess.run(evaluate, cwd=tmp_path, capture_output=True, text=True)
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
        env=os.environ | {"CLUSTER_TEST": str(tmp_path)},
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
