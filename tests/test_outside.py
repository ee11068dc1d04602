"""A package outside this one brings a family of worlds, found by its entry point."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCES = ROOT / "tests" / "outside"
TINY = """
    --task corridor/end --method ppo --preset cpu --seed 3 --device cpu --steps 320
    --world.num-envs 4 --ppo.num-steps 10 --ppo.num-minibatches 2 --ppo.num-epochs 2
    --record.checkpoint-every 3
"""

pytestmark = pytest.mark.slow


def install(site: Path, name: str, *points: str) -> None:
    """What pip leaves of a distribution: its metadata and its entry points."""
    folder = site / f"{name.replace('-', '_')}-1.5.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.5\n")
    lines = ["[episodic_curiosity.families]", *points]
    (folder / "entry_points.txt").write_text("\n".join(lines) + "\n")


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    """A folder of installed packages, with the corridors in it."""
    site = tmp_path_factory.mktemp("site")
    shutil.copytree(SOURCES / "corridor_worlds", site / "corridor_worlds")
    install(site, "corridor-worlds", "corridor = corridor_worlds.family:FAMILY")
    return site


def python(site: Path, *words: object, **variables: str) -> subprocess.CompletedProcess[str]:
    path = f"{site}{os.pathsep}{ROOT}"
    env = os.environ | {"PYTHONPATH": path, "OMP_NUM_THREADS": "1"} | variables
    command = [sys.executable, *map(str, words)]
    return subprocess.run(command, env=env, cwd=site, capture_output=True, text=True)


def curiosity(site: Path, *words: object, **variables: str) -> str:
    done = python(site, "-m", "episodic_curiosity", *words, **variables)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_it_is_listed(site):
    lines = curiosity(site, "tasks").splitlines()
    assert "corridor/end             +1 at the eastern end of a corridor" in lines
    helped = " ".join(curiosity(site, "train", "--help").replace("│", " ").split())
    assert "gym/..., corridor/..." in helped
    helped = curiosity(site, "train", "--task", "corridor/end", "--method", "ppo", "--help")
    helped = " ".join(helped.replace("│", " ").split())
    assert "Trains ppo on corridor/end. Hyper-parameters: the family corridor" in helped
    assert "--world.length INT cells (default: 9)" in helped
    assert "--ppo.entropy-coefficient FLOAT" in helped
    assert "(default: 0.02)" in helped


def test_it_trains_resumes_is_evaluated_and_filmed(site, tmp_path):
    whole, stopped = tmp_path / "whole", tmp_path / "stopped"
    curiosity(site, "train", *TINY.split(), "--out", whole)
    command = ("-m", "episodic_curiosity", "train", *TINY.split(), "--out", stopped)
    done = python(site, *command, CORRIDOR_STOPS_AFTER="35")
    assert done.returncode == 130, done.stderr
    curiosity(site, "train", "--resume", "--out", stopped)
    weights = [(run / "agent.safetensors").read_bytes() for run in (whole, stopped)]
    assert weights[0] == weights[1]

    report = curiosity(site, "evaluate", stopped, "--episodes", "8", "--device", "cpu")
    assert report.startswith("corridor/end: 8 episodes")
    assert "coverage" in report
    film = tmp_path / "film.gif"
    told = curiosity(site, "watch", stopped, "--out", film, "--height", "96", "--device", "cpu")
    assert film.stat().st_size > 1000
    assert "episode 1: " in told


def test_its_worlds_conform(site):
    tests = site / "corridor_worlds" / "conformance.py"
    done = python(site, "-m", "pytest", "-q", "-p", "no:cacheprovider", tests)
    assert done.returncode == 0, done.stdout
    assert "13 passed, 1 skipped" in done.stdout  # it cannot redraw


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
