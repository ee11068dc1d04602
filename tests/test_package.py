"""The package as people get it: a wheel, in an environment with nothing else in it."""

import os
import subprocess
import sys
from importlib.metadata import Distribution, distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

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


def with_all_they_need(*names: str) -> list[Distribution]:
    """These packages and those that they need, as they are installed here."""
    found: dict[tuple[str, frozenset[str]], Distribution] = {}
    left = [Requirement(name) for name in names]
    while left:
        wanted = left.pop()
        if (key := (wanted.name, frozenset(wanted.extras))) not in found:
            found[key] = distribution(wanted.name)
            extras = [{"extra": extra} for extra in ("", *wanted.extras)]
            left += [
                needed
                for needed in map(Requirement, found[key].requires or ())
                if needed.marker is None or any(map(needed.marker.evaluate, extras))
            ]
    return list(found.values())


def link(package: Distribution, packages: Path) -> None:
    """Links what is installed here into the packages of another environment."""
    for name in {file.parts[0] for file in package.files or ()} - {"..", "__pycache__"}:
        if not (packages / name).exists():  # several packages share a namespace
            (packages / name).symlink_to(Path(str(package.locate_file(name))))


@pytest.fixture(scope="module")
def clean_python(tmp_path_factory) -> Path:
    """An environment with the wheel, torch and numpy, and none of the other dependencies.

    Torch is gigabytes: it and what it needs are links.
    """
    folder = tmp_path_factory.mktemp("clean")
    wheel = ("wheel", "--quiet", "--no-deps", "--wheel-dir", folder, ROOT)
    run(sys.executable, "-m", "pip", *wheel, cwd=folder)
    run(sys.executable, "-m", "venv", "--without-pip", "venv", cwd=folder)
    python = folder / "venv" / "bin" / "python"
    (packages,) = folder.glob("venv/lib/python*/site-packages")
    for package in with_all_they_need("torch", "numpy"):
        link(package, packages)
    install(python, "--no-deps")
    return python


def install(python: Path, *options: str | Path) -> None:
    """Installs the wheel."""
    folder = python.parents[2]
    (wheel,) = folder.glob("episodic_curiosity-*.whl")
    command = ("install", "--quiet", "--no-compile", *options, wheel)
    run(sys.executable, "-m", "pip", "--python", python, *command, cwd=folder)


def pins(folder: Path) -> Path:
    """The versions of requirements.lock as constraints; its hashes do not matter here.

    Of what is linked, the versions that are there: pip must not replace it.
    """
    lines = (ROOT / "requirements.lock").read_text().splitlines()
    pinned = [line.rstrip(" \\") for line in lines if "==" in line and "--hash" not in line]
    assert len(pinned) > 50
    linked = {each.name.lower(): each.version for each in with_all_they_need("torch", "numpy")}
    pinned = [line for line in pinned if line.partition("==")[0] not in linked]
    file = folder / "pins.txt"
    file.write_text("\n".join(pinned + [f"{name}=={linked[name]}" for name in linked]))
    return file


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
    install(clean_python, "--constraint", pins(tmp_path))
    code = f"{CORE}; import gymnasium; print(episodic_curiosity.__file__)"
    found = run(clean_python, "-c", code, cwd=tmp_path)
    assert str(clean_python.parent.parent) in found
    assert (Path(found.strip()).parent / "py.typed").exists()
    assert run(clean_python.parent / "curiosity", "--version", cwd=tmp_path).startswith(
        "curiosity"
    )
