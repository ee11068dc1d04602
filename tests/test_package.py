"""The package as people get it: a wheel, in an environment with nothing else in it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.network

ROOT = Path(__file__).parent.parent
CORE = "import episodic_curiosity, episodic_curiosity.agent, episodic_curiosity.bonus.episodic"


def run(*command: str | Path, cwd: Path) -> str:
    # Nothing of the environment the tests run in may leak into the clean one.
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "VIRTUAL_ENV"))}
    result = subprocess.run(
        command, cwd=cwd, env=clean, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def pins(folder: Path) -> Path:
    """The versions of requirements.lock as constraints; its hashes do not matter here."""
    lines = (ROOT / "requirements.lock").read_text().splitlines()
    pinned = [line.rstrip(" \\") for line in lines if "==" in line and "--hash" not in line]
    assert len(pinned) > 50
    file = folder / "pins.txt"
    file.write_text("\n".join(pinned))
    return file


@pytest.fixture(scope="module")
def clean_python(tmp_path_factory) -> Path:
    """An environment with the wheel, torch and numpy, and none of the other dependencies."""
    folder = tmp_path_factory.mktemp("clean")
    run(
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--quiet",
        "--no-deps",
        ROOT,
        "-w",
        ".",
        cwd=folder,
    )
    (wheel,) = folder.glob("episodic_curiosity-*.whl")
    run(sys.executable, "-m", "venv", "venv", cwd=folder)
    python = folder / "venv" / "bin" / "python"
    pip = (python, "-m", "pip", "install", "--quiet", "--constraint", pins(folder))
    run(*pip, "torch", "numpy", cwd=folder)
    run(*pip, "--no-deps", wheel, cwd=folder)
    return python


def test_the_core_needs_torch_and_numpy_alone(clean_python, tmp_path):
    check = f"""{CORE}
import importlib.util, torch
assert importlib.util.find_spec("gymnasium") is None
curiosity = episodic_curiosity.EpisodicCuriosity(episodic_curiosity.RNetwork((3, 16, 16)), 2)
curiosity.begin(torch.zeros(2, 3, 16, 16))
print(curiosity.bonus(torch.zeros(2, 3, 16, 16)).tolist())
"""
    assert run(clean_python, "-W", "error", "-c", check, cwd=tmp_path) == "[0.0, 0.0]\n"


def test_the_wheel_installs_with_its_dependencies(clean_python, tmp_path):
    (wheel,) = clean_python.parent.parent.parent.glob("*.whl")
    pip = (clean_python, "-m", "pip", "install", "--quiet", "--constraint", pins(tmp_path))
    run(*pip, wheel, cwd=tmp_path)
    found = run(clean_python, "-c", f"{CORE}; print(episodic_curiosity.__file__)", cwd=tmp_path)
    assert str(clean_python.parent.parent) in found
    assert (Path(found.strip()).parent / "py.typed").exists()
    assert run(clean_python.parent / "curiosity", "--version", cwd=tmp_path).startswith(
        "curiosity"
    )
