"""Packages outside this one bring a family of worlds and a bonus, found by entry points."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from episodic_curiosity.bonus.registry import methods

ROOT = Path(__file__).parent.parent
SOURCES = ROOT / "tests" / "outside"
TINY = """
    --preset cpu --seed 3 --device cpu --steps 320
    --world.num-envs 4 --ppo.num-steps 10 --ppo.num-minibatches 2 --ppo.num-epochs 2
    --record.checkpoint-every 3
"""

pytestmark = pytest.mark.slow


def install(site: Path, name: str, group: str, *points: str) -> None:
    """What pip leaves of a distribution: its metadata and its entry points."""
    folder = site / f"{name.replace('-', '_')}-1.5.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.5\n")
    lines = [f"[episodic_curiosity.{group}]", *points]
    (folder / "entry_points.txt").write_text("\n".join(lines) + "\n")


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    """A folder of installed packages, with the corridors and the counts in it."""
    site = tmp_path_factory.mktemp("site")
    for name in ("corridor_worlds", "count_bonus"):
        shutil.copytree(SOURCES / name, site / name)
    install(site, "corridor-worlds", "families", "corridor = corridor_worlds.family:FAMILY")
    install(site, "count-bonus", "methods", "count = count_bonus.count:METHOD")
    return site


def python(site: Path, *words: object, **variables: str) -> subprocess.CompletedProcess[str]:
    path = f"{site}{os.pathsep}{ROOT}"
    env = os.environ | {"PYTHONPATH": path, "OMP_NUM_THREADS": "1"} | variables
    command = [sys.executable, *map(str, words)]
    return subprocess.run(command, env=env, cwd=site, capture_output=True, text=True)


COMMANDS = """
import json, sys
from episodic_curiosity.cli.main import main

for words in json.loads(sys.argv[1]):
    try:
        main(words)
    except SystemExit as stop:  # of --help
        if stop.code:
            raise
    print(end="\\0")
"""


def curiosity(site: Path, *commands: Sequence[object]) -> list[str]:
    """What commands print that one process executes: its start takes longer than they do."""
    words = json.dumps([list(map(str, command)) for command in commands])
    done = python(site, "-c", COMMANDS, words)
    assert done.returncode == 0, done.stderr
    *printed, end = done.stdout.split("\0")
    assert (len(printed), end) == (len(commands), "")
    return printed


def test_they_are_listed(site):
    train = ("train", "--task")
    told = curiosity(
        site,
        ("tasks",),
        ("methods",),
        ("train", "--help"),
        (*train, "corridor/end", "--method", "ppo", "--help"),
        (*train, "maze/sparse", "--method", "ppo+count", "--help"),
    )
    tasks, methods = (each.splitlines() for each in told[:2])
    assert "corridor/end             +1 at the eastern end of a corridor" in tasks
    assert methods[0].startswith("ppo ")
    assert "ppo+count    pays for views of which few alike were seen" in methods
    helped, corridor, count = (" ".join(each.replace("│", " ").split()) for each in told[2:])
    assert "gym/..., corridor/..." in helped
    assert ", ppo+count" in helped
    assert "Trains ppo on corridor/end. Hyper-parameters: the family corridor" in corridor
    assert "--world.length INT cells (default: 9)" in corridor
    assert "--ppo.entropy-coefficient FLOAT" in corridor
    assert "(default: 0.02)" in corridor
    assert "Trains ppo+count on maze/sparse. Hyper-parameters: those of ppo+ec" in count
    assert "--bonus.scale FLOAT of what was never seen before (default: 0.05)" in count
    assert "(default: 0.015)" in count


MAZE = "--world.maze-size 9 --world.rooms 2 --world.num-levels 3 --world.episode-steps 20"


@pytest.mark.parametrize(
    ("task", "method", "options"),
    [
        ("corridor/end", "ppo", ""),
        ("corridor/end", "ppo+count", ""),
        ("maze/sparse", "ppo+count", f"{MAZE} --world.observation-size 36 36"),
    ],
)
def test_it_trains_resumes_is_evaluated_and_filmed(site, tmp_path, task, method, options):
    whole, stopped = tmp_path / "whole", tmp_path / "stopped"
    film = tmp_path / "film.gif"
    words = ("train", "--task", task, "--method", method, *TINY.split(), *options.split())
    resumed = []
    if task == "corridor/end":
        command = ("-m", "episodic_curiosity", *words, "--out", stopped)
        done = python(site, *command, CORRIDOR_STOPS_AFTER="35")
        assert done.returncode == 130, done.stderr
        resumed = [("train", "--resume", "--out", stopped)]
    *_, report, told = curiosity(
        site,
        *resumed,
        (*words, "--out", whole),
        ("evaluate", whole, "--episodes", "8", "--device", "cpu"),
        ("watch", whole, "--out", film, "--height", "96", "--device", "cpu"),
    )
    if resumed:
        weights = [(run / "agent.safetensors").read_bytes() for run in (whole, stopped)]
        assert weights[0] == weights[1]
    assert report.startswith(f"{task}: 8 episodes")
    assert "coverage" in report
    assert film.stat().st_size > 1000
    assert "episode 1: " in told


@pytest.mark.parametrize(
    ("package", "summary"),
    [
        ("corridor_worlds", "13 passed, 3 skipped"),  # it redraws, halves and finishes nothing
        ("count_bonus", "52 passed, 14 skipped"),  # there is no GPU
    ],
)
def test_what_they_bring_conforms(site, package, summary):
    tests = site / package / "conformance.py"
    words = ("-q", "-p", "no:cacheprovider", "-W", "ignore::pytest.PytestUnknownMarkWarning")
    done = python(site, "-m", "pytest", *words, tests, CUDA_VISIBLE_DEVICES="")
    assert done.returncode == 0, done.stdout
    assert summary in done.stdout


def test_a_package_that_cannot_be_used_is_named_in_one_sentence(tmp_path):
    (tmp_path / "faulty.py").write_text(
        "from dataclasses import replace\n"
        "from episodic_curiosity.worlds.registry import find_family\n"
        "TAKEN = replace(find_family('maze/sparse'))\n"
        "NONE = 'maze'\n"
    )
    install(
        tmp_path,
        "faulty-worlds",
        "families",
        "absent = no_such_module:FAMILY",
        "taken = faulty:TAKEN",
        "none = faulty:NONE",
        "lost = faulty:LOST",
    )
    done = python(tmp_path, "-m", "episodic_curiosity", "tasks")
    assert done.returncode == 0
    assert done.stdout.startswith("maze/sparse ")
    start = "the family {!r} of the package faulty-worlds 1.5 cannot be used: "
    reasons = {
        "absent": "ModuleNotFoundError: No module named 'no_such_module'",
        "taken": "ValueError: there is already a family 'maze': choose another name",
        "none": "TypeError: family must be a Family, got str",
        "lost": "AttributeError: module 'faulty' has no attribute 'LOST'",
    }
    said = [start.format(name) + reason for name, reason in reasons.items()]
    assert sorted(done.stderr.splitlines()) == sorted(said)

    done = python(tmp_path, "-m", "episodic_curiosity", "train", "--task", "absent/x")
    assert done.returncode == 2
    (line,) = (line for line in done.stderr.splitlines() if line.startswith("curiosity: "))
    assert line.startswith(
        "curiosity: there is no task 'absent/x'; choose one of maze/sparse, "
    )
    assert all(sentence in line for sentence in said)
    # What is built in needs no entry point, and is not held up by a faulty one.
    make = "make_world('maze/dense-2', num_envs=1, seed=0)"
    done = python(tmp_path, "-c", f"from episodic_curiosity import make_world; {make}")
    assert (done.returncode, done.stderr) == (0, "")


def test_a_bonus_that_cannot_be_used_is_named_in_one_sentence(tmp_path):
    shutil.copytree(SOURCES / "count_bonus", tmp_path / "count_bonus")
    (tmp_path / "faulty.py").write_text(
        """if True:
        from dataclasses import dataclass, replace
        from count_bonus.count import METHOD
        from episodic_curiosity import Bonus, BonusConfig
        TAKEN = replace(METHOD, name="ppo+ec")
        NONE = METHOD.bonus
        class Half(Bonus):
            def pay(self, now): ...
        @dataclass(frozen=True, kw_only=True)
        class Bare(BonusConfig):
            scale: float
        def __getattr__(name):
            changes = {
                "NAME": {"name": "count"},
                "LINE": {"line": ""},
                "HALF": {"bonus": Half},
                "CLASS": {"bonus": dict},
                "CONFIG": {"config": dict},
                "BARE": {"config": Bare},
            }
            return replace(METHOD, **changes[name])
        """
    )
    names = ("taken", "none", "name", "line", "half", "class", "config", "bare")
    points = [f"{name} = faulty:{name.upper()}" for name in names]
    install(tmp_path, "faulty-bonus", "methods", *points)
    done = python(tmp_path, "-m", "episodic_curiosity", "methods")
    assert done.returncode == 0
    assert [line.split()[0] for line in done.stdout.splitlines()] == list(methods())
    start = "the method {!r} of the package faulty-bonus 1.5 cannot be used: "
    reasons = {
        "taken": "ValueError: there is already a method 'ppo+ec': choose another name",
        "none": "TypeError: method must be a Method, got ABCMeta",
        "name": "ValueError: a method's name must be like ppo+count, in lower case, "
        "got 'count'",
        "line": "ValueError: the method ppo+count must have a line that says what it pays",
        "half": "TypeError: the bonus of ppo+count must define for_run, Half does not",
        "class": "TypeError: the bonus of ppo+count must be a subclass of Bonus, "
        "got <class 'dict'>",
        "config": "TypeError: the config of ppo+count must be a subclass of BonusConfig, "
        "got <class 'dict'>",
        "bare": "ValueError: the config of ppo+count must have defaults, got none for scale",
    }
    said = [start.format(name) + reason for name, reason in reasons.items()]
    assert sorted(done.stderr.splitlines()) == sorted(said)

    words = ("train", "--task", "maze/sparse", "--method", "ppo+count")
    done = python(tmp_path, "-m", "episodic_curiosity", *words)
    assert done.returncode == 2
    (line,) = (line for line in done.stderr.splitlines() if line.startswith("curiosity: "))
    assert line.startswith("curiosity: method must be one of ppo, ppo+1, ")
    assert all(sentence in line for sentence in said)
