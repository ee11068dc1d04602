"""The command `curiosity`: as it is installed, and in this process with the work left out."""

import subprocess
import sys
import tomllib
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

import episodic_curiosity as ec
from episodic_curiosity.bonus.registry import methods
from episodic_curiosity.cli import errors
from episodic_curiosity.cli import main as cli
from episodic_curiosity.cli.doctor import EXTRAS
from episodic_curiosity.runs.presets import resolve
from episodic_curiosity.runs.record import Record
from episodic_curiosity.support.saving import LoadError
from episodic_curiosity.worlds.registry import known_tasks

ROOT = Path(__file__).parents[2]
COMMAND = str(Path(sys.executable).parent / "curiosity")


def curiosity(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([COMMAND, *arguments], capture_output=True, text=True, check=False)


def test_the_package_is_the_command():
    """Where the script is not on the path, or another Python's is."""
    module = [sys.executable, "-m", "episodic_curiosity", "--version"]
    given = subprocess.run(module, capture_output=True, text=True, check=True)
    assert given.stdout == curiosity("--version").stdout


def test_version():
    assert curiosity("--version").stdout == f"curiosity {ec.__version__}\n"


def test_doctor_says_what_is_here_and_how_fast():
    result = curiosity("doctor")
    assert result.returncode == 0
    assert f"episodic-curiosity {ec.__version__}" in result.stdout
    assert "torch" in result.stdout
    assert "environment steps/s" in result.stdout


def test_doctor_names_extras_that_exist():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    for package, extra in EXTRAS.items():
        named = extras["optional-dependencies"][extra.removeprefix(".[").removesuffix("]")]
        assert any(line.startswith(package) for line in named), package


def test_a_mistake_is_one_line_without_a_traceback():
    result = curiosity("train", "--task", "maze/sprase")
    assert result.returncode == 2
    assert result.stdout == ""
    assert len(result.stderr.splitlines()) == 1
    assert all(word in result.stderr for word in ("maze/sprase", "maze/sparse", "gym/..."))


@pytest.fixture
def calls(monkeypatch):
    """What training, fitting and evaluating were called with; none of them is done."""
    calls = []

    def note(*arguments, **options):
        calls.append((*arguments, options))
        return SimpleNamespace(report=lambda: "the report")

    fake = SimpleNamespace(
        train=note,
        fit=note,
        evaluate_run=note,
        evaluate_r_network=note,
        holds_r_network_alone=lambda folder: folder.parts[0] == "nets",
        remarks_on=lambda folder, **_: ["a remark"] if folder.name == "half" else [],
    )
    for name in ("train", "fit", "evaluate_folder"):
        monkeypatch.setitem(sys.modules, f"episodic_curiosity.runs.{name}", fake)
    monkeypatch.setattr("episodic_curiosity.cli.train.outcome", lambda *_: [])
    return calls


def call(line: str) -> None:
    cli.main(line.split())


def run_of(calls, line: str):
    call(f"train {line}")
    run, _, _ = calls.pop()
    return run


def refused(capsys, line: str) -> str:
    """What is said, in the words of one paragraph, about a line that cannot be done."""
    with pytest.raises(SystemExit) as stop:
        call(line)
    assert stop.value.code == 2
    said = capsys.readouterr()
    assert said.out == ""
    return " ".join(said.err.replace("│", " ").split())


def test_train_resolves_a_run(calls):
    asked = "--task maze/no-reward --method ppo+eco --preset cpu --steps 200_000 --seed 7"
    call(f"train {asked} --out runs/x")
    run, folder, options = calls.pop()
    assert run == resolve("maze/no-reward", "ppo+eco", "cpu", 200_000, 7)
    assert folder == Path("runs/x")
    assert options == {"resume": False, "accept_changes": False, "progress": True}


def test_a_run_has_a_folder_of_its_own_by_default(calls):
    call("train --task maze/sparse+noise --method ppo+icm --seed 3 --resume")
    _, folder, options = calls.pop()
    assert folder == Path("runs/maze-sparse_noise__ppo_icm__s3")
    assert options["resume"]


def test_every_field_can_be_changed_by_its_path(calls):
    run = run_of(
        calls,
        "--task maze/sparse --method ppo+ec --world.maze-size 9 --world.view-size 60 80 "
        "--ppo.learning-rate 1e-3 --bonus.beta 1.0 --r-network.random-play.steps 10_000 "
        "--r-network.random-play.fit.pairs.k 3 --record.checkpoint-every 5 --device cpu "
        "--world.no-stagger --normalise-bonus",
    )
    assert (run.world.maze_size, run.world.view_size, run.world.stagger) == (9, (60, 80), False)
    assert (run.ppo.learning_rate, run.bonus.beta, run.normalise_bonus) == (1e-3, 1.0, True)
    assert run.r_network.random_play.steps == 10_000
    assert run.r_network.random_play.fit.pairs.k == 3
    assert (run.record.checkpoint_every, run.device) == (5, "cpu")


def test_the_r_network_can_be_chosen_given_and_shared(calls):
    line = "--task maze/sparse --method ppo+ec"
    assert run_of(calls, f"{line} --r-network paper").r_network.embedder == "resnet18"
    assert run_of(calls, f"{line} --r_network=paper").r_network.comparator == "mlp"
    changed = run_of(calls, f"{line} --r-network paper --r-network.embedding-size 64").r_network
    assert (changed.embedder, changed.embedding_size) == ("resnet18", 64)
    given = run_of(calls, f"{line} --r-network-from fitted")
    assert (given.r_network.source, given.random_play_steps) == (Path("fitted"), 0)
    shared = run_of(calls, f"{line} --r-network-tasks maze/sparse,maze/dense-1").r_network
    assert shared.random_play.tasks == ("maze/sparse", "maze/dense-1")


def test_a_run_is_resumed_from_its_folder_alone(calls, tmp_path):
    run = resolve("maze/dense-1", "ppo+oracle", "cpu", 50_000, 5)
    with Record(tmp_path, run.to_dict()):
        pass
    call(f"train --resume --out {tmp_path}")
    wanted = {"resume": True, "accept_changes": False, "progress": True}
    assert calls.pop() == (run, tmp_path, wanted)


def test_what_a_resumed_run_is_told_of_its_r_network_is_not_ignored(calls, capsys, tmp_path):
    run = resolve("maze/dense-1", "ppo+ec", "cpu", 50_000, 5)
    with Record(tmp_path / "ec", run.to_dict()):
        pass
    call(f"train --resume --out {tmp_path}/ec --r-network paper")
    resumed, _, _ = calls.pop()
    assert resumed.r_network.embedder == "resnet18"
    run = resolve("maze/dense-1", "ppo", "cpu", 50_000, 5)
    with Record(tmp_path / "ppo", run.to_dict()):
        pass
    line = f"train --resume --out {tmp_path}/ppo --r-network paper"
    assert "ppo has no R-network" in refused(capsys, line)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("docter", "there is no command 'docter' (did you mean doctor?); choose one of train,"),
        ("train", "name a task with --task"),
        ("train --resume", "name the run to resume: --resume --out FOLDER"),
        ("train --resume --method ppo", "name the run to resume: --resume --out FOLDER"),
        ("train --resume --out nowhere", "there is no folder nowhere"),
        ("train --task maze/sparse --method rnd", "(did you mean ppo+rnd?)"),
        ("train maze/sparse --method ppo", "got maze/sparse without --task"),
        ("train --task maze/sparse --method a2c", "method must be one of ppo, ppo+1,"),
        (
            "train --task maze/sparse --preset tpu",
            "preset must be one of paper, gpu, turbo, cpu",
        ),
        ("train --task maze/sparse --steps many", "--steps: must be an integer"),
        ("table table1 --steps 1e6", "such as 1_000_000, got '1e6'"),
        ("train --task maze/sparse --steps 10", "10 steps are too few: one rollout takes"),
        ("train --task maze/sparse --steps", "--steps: expected one argument"),
        (
            f"train --task maze/sparse --steps {10**13}",
            "steps must be at most 1,000,000,000,000",
        ),
        ("train --task maze/sparse --out .", "--out must not be the current folder"),
        ("train --task maze/sparse --ppo.gama 1", "--ppo.gama"),
        ("train --task maze/sparse --ppo.gamma 2", "gamma must be"),
        ("train --task maze/sparse --world.maze-size x", "--world.maze-size"),
        ("train --task gym/CartPole-v1 --world.maze-size 9", "--world.maze-size"),
        ("train --task maze/sparse --method ppo --bonus.alpha 1", "--bonus.alpha"),
        ("train --task maze/sparse --method ppo --r-network fast", "ppo has no R-network"),
        ("train --task maze/sparse --r-network big", "must be one of paper, small, fast"),
        (
            "train --task maze/sparse --r-network-tasks maze/dense-1",
            "fits its R-network online, not to",
        ),
        (
            "train --task maze/sparse --method ppo+ec --r-network-from x "
            "--r-network.embedding-size 7",
            "--r-network.embedding-size is for a new R-network, x has a fitted one",
        ),
        (
            "train --task maze/sparse --method ppo+ec --r-network.source x "
            "--r-network.random-play.steps 700",
            "--r-network.random-play is for a new R-network, x has a fitted one",
        ),
        (
            "train --task maze/sparse --method ppo+ec --r-network fast --r-network-from x",
            "--r-network is for a new R-network",
        ),
        ("fit --task maze/sparse --steps 0 --out x", "steps must be an integer of"),
        ("fit --out x", "name the task of the random play"),
        (
            "fit --task maze/sparse --tasks maze/dense-1 --out x",
            "name the task of the random play",
        ),
        ("fit --task maze/sparse", "--out"),
        ("fit --task maze/sparse --out .", "--out must not be the current folder"),
        ("fit --tasks maze/sparse,maze/none --out x", "there is no task 'maze/none'"),
        ("evaluate", "PATH"),
        ("evaluate runs/x --split tset", "tset"),
        ("tasks maze", "maze"),
    ],
)
def test_what_cannot_be_done_is_said(capsys, calls, line, words):
    assert words in refused(capsys, line)
    assert calls == []


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (OSError("the disk is full of mazes"), "the disk is full of mazes"),
        (PermissionError(13, "Permission denied", "a"), "a: permission denied"),
        (OSError(28, "No space left on device"), "no space left on device"),
        (OSError(5, "Input/output error", 7), "input/output error"),
        (OSError(21, "Is a directory", "a.new", None, "a"), "a: is a directory"),
    ],
)
def test_what_the_system_says_names_the_file_and_no_number(capsys, error, said):
    def fail(_: list[str]) -> None:
        raise error

    with pytest.raises(SystemExit) as stopped:
        errors.call(fail, [])
    assert stopped.value.code == 1
    assert capsys.readouterr().err == f"curiosity: {said}\n"


def test_a_reader_that_has_heard_enough_is_told_nothing_more():
    pipe = subprocess.PIPE
    with subprocess.Popen([COMMAND, "tasks"], stdout=pipe, stderr=pipe) as told:
        told.stdout.close()
        assert told.stderr.read() == b""
    assert told.returncode == 1


def test_fit_takes_one_task_or_several(calls):
    call("fit --task maze/sparse --out r --steps 9_000 --seed 4 --r-network paper")
    run, folder, options = calls.pop()
    assert (run.task, run.seed, folder, options) == (
        "maze/sparse",
        4,
        Path("r"),
        {"progress": True},
    )
    assert (run.r_network.random_play.steps, run.r_network.random_play.tasks) == (9_000, ())
    assert run.r_network.embedder == "resnet18"
    call("fit --tasks maze/sparse,maze/dense-2 --out r --world.num-envs 8")
    run, _, _ = calls.pop()
    assert run.r_network.random_play.tasks == ("maze/sparse", "maze/dense-2")
    assert run.world.num_envs == 8


def test_evaluate_prints_the_report(calls, capsys):
    call("evaluate runs/x --episodes 12 --deterministic --device cpu")
    options = {"episodes": 12, "split": "test", "deterministic": True, "device": "cpu"}
    options |= {"task": None, "trust": False, "progress": True}
    assert calls == [(Path("runs/x"), options)]
    assert capsys.readouterr().out == "the report\n"
    call("evaluate runs/half")
    assert capsys.readouterr().out == "a remark\nthe report\n"


def test_evaluate_takes_another_task(calls):
    call("evaluate runs/x --task dmlab/no-reward")
    _, options = calls.pop()
    assert options["task"] == "dmlab/no-reward"


def test_evaluate_tests_an_r_network_on_random_play(calls, capsys):
    call("evaluate nets/x --task maze/sparse --episodes 12 --device cpu")
    options = {"task": "maze/sparse", "episodes": 12, "split": "test", "device": "cpu"}
    assert calls == [(Path("nets/x"), options | {"progress": True})]
    assert capsys.readouterr().out == "the report\n"
    assert (
        "name the task whose random play the R-network in nets/x is tested on with --task"
        in refused(capsys, "evaluate nets/x")
    )
    asked = "evaluate nets/x --task maze/sparse --deterministic"
    assert "--deterministic is for agents" in refused(capsys, asked)


def test_tasks_and_methods_have_a_line_each(capsys):
    call("tasks")
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[: len(known_tasks())]] == [*known_tasks()]
    assert any(line.startswith("gym/<id>") for line in lines)
    call("methods")
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == [*methods()]


@pytest.mark.parametrize("line", ["", "--help", "-h"])
def test_help_names_every_command(capsys, line):
    call(line)
    said = capsys.readouterr().out
    assert all(f"\n  {name} " in said for name in cli.COMMANDS)


def test_help_shows_what_would_be_used(capsys):
    with pytest.raises(SystemExit) as stop:
        call("train --task maze/sparse --method ppo+ec --preset gpu --help")
    assert stop.value.code == 0
    said = " ".join(capsys.readouterr().out.replace("│", " ").split())
    assert "Trains ppo+ec on maze/sparse. Hyper-parameters: Table S3" in said
    assert "--world.num-envs INT stepped as one batch (default: 96)" in said
    assert "--bonus.alpha FLOAT scale (default: 0.0301724)" in said
    assert "--r-network.random-play.steps INT" in said
    assert "--r-network.online" not in said
    with pytest.raises(SystemExit):
        call("train --help")
    said = " ".join(capsys.readouterr().out.replace("│", " ").split())
    assert "Trains an agent on --task, which is required. Shown here: ppo+eco on maze" in said


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (LoadError("agent.safetensors cannot be read"), 2),
        (MemoryError("the replay takes 80 GB, 16 GB are free"), 2),
        (ImportError("tasks named gym/... need Gymnasium"), 2),
        (FloatingPointError("the policy's loss became nan in update 7"), 1),
        (OSError("runs/x is on a disk that is full"), 1),
    ],
)
def test_a_failure_is_one_line(monkeypatch, capsys, error, code):
    def fail(*_, **__):
        raise error

    fake = SimpleNamespace(train=fail)
    monkeypatch.setitem(sys.modules, "episodic_curiosity.runs.train", fake)
    with pytest.raises(SystemExit) as stop:
        call("train --task maze/sparse")
    assert stop.value.code == code
    assert capsys.readouterr().err == f"curiosity: {error}\n"


@pytest.mark.parametrize("error", [MemoryError(), MemoryError("std::bad_alloc")])
def test_a_full_memory_without_words_gets_some(error, capsys):
    def fail(_):
        raise error

    with pytest.raises(SystemExit) as stop:
        errors.call(fail, [])
    assert stop.value.code == 2
    said = "curiosity: not enough memory: lower the number of environments\n"
    assert capsys.readouterr().err == said


@pytest.mark.parametrize(
    "error",
    [
        torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 80 GiB"),
        RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 8\nat"),
        RuntimeError("could not create a primitive"),  # oneDNN, in a linear layer
        RuntimeError("std::bad_alloc"),
        RuntimeError("CUDA error: out of memory\nCUDA kernel errors might be reported later"),
        RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate`"),
    ],
)
def test_a_full_memory_is_one_line(monkeypatch, capsys, error):
    def fail(*_, **__):
        raise error

    monkeypatch.setitem(
        sys.modules, "episodic_curiosity.runs.train", SimpleNamespace(train=fail)
    )
    with pytest.raises(SystemExit) as stop:
        call("train --task maze/sparse")
    assert stop.value.code == 1
    said = capsys.readouterr().err
    assert said.startswith("curiosity: not enough memory: lower the number of environments (")
    assert said.count("\n") == 1


def test_an_interrupted_run_has_the_shells_exit_code(monkeypatch, capsys):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    fake = SimpleNamespace(train=interrupt)
    monkeypatch.setitem(sys.modules, "episodic_curiosity.runs.train", fake)
    with pytest.raises(SystemExit) as stop:
        call("train --task maze/sparse")
    assert stop.value.code == 130
    assert capsys.readouterr().err == ""
