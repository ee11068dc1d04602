"""How `make` installs: every file by its hash, and torch for machines without a GPU.

The packages are stand-ins on an index in a folder; the Makefile is the real one.
"""

import hashlib
import os
import re
import shutil
import subprocess
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
METADATA = "Metadata-Version: 2.1\nName: {}\nVersion: {}\n"
WHEEL = "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
BACKEND = f"""
import pathlib, zipfile
def build_editable(folder, config_settings=None, metadata_directory=None):
    name = "mine-1.0-py3-none-any.whl"
    with zipfile.ZipFile(pathlib.Path(folder) / name, "w") as file:
        file.writestr("mine-1.0.dist-info/METADATA", {METADATA.format("mine", "1.0")!r})
        file.writestr("mine-1.0.dist-info/WHEEL", {WHEEL!r})
        file.writestr("mine-1.0.dist-info/RECORD", "")
    return name
"""


def put_wheel(index: Path, name: str, version: str, code: str) -> str:
    """Puts a package of one module on an index; returns its hash."""
    folder = index / name
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{name}-{version}-py3-none-any.whl"
    info = f"{name}-{version}.dist-info"
    with zipfile.ZipFile(file, "w") as wheel:
        wheel.writestr(f"{name}.py", code)
        wheel.writestr(f"{info}/METADATA", METADATA.format(name, version))
        wheel.writestr(f"{info}/WHEEL", WHEEL)
        wheel.writestr(f"{info}/RECORD", "")
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    link = f'<a href="{file.name}#sha256={digest}">{file.name}</a>\n'
    (folder / "index.html").write_text(link)
    return digest


@pytest.fixture
def project(tmp_path) -> Path:
    """A folder with the Makefile and stand-ins for torch, which needs a library of CUDA."""
    project, usual, cpu = (tmp_path / name for name in ("project", "usual", "cpu"))
    project.mkdir()
    shutil.copy(ROOT / "Makefile", project)
    for_cuda = put_wheel(usual, "torch", "2.0", "import cudalib")
    library = put_wheel(usual, "cudalib", "1.0", "")
    for_cpu = put_wheel(cpu, "torch", "2.0+cpu", "")
    locks = {
        "": ("torch==2.0", for_cuda),
        "-cuda": ("cudalib==1.0", library),
        "-cpu": ("torch==2.0+cpu", for_cpu),
    }
    for name, (pin, digest) in locks.items():
        line = f"{pin} --hash=sha256:{digest}\n"
        (project / f"requirements{name}.lock").write_text(line)
    (project / "pyproject.toml").write_text(
        '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
    )
    (project / "backend.py").write_text(BACKEND)
    return project


def make(project: Path, *words: str) -> subprocess.CompletedProcess[str]:
    clean = {
        k: v for k, v in os.environ.items() if not k.startswith(("PIP_", "PYTHON", "MAKE"))
    }
    clean |= {"PIP_CONFIG_FILE": os.devnull, "PIP_INDEX_URL": (project / "../usual").as_uri()}
    clean |= {"PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    command = ["make", ".venv/.ready", f"TORCH_INDEX={(project / '../cpu').as_uri()}", *words]
    return subprocess.run(command, cwd=project, env=clean, capture_output=True, text=True)


def installed(project: Path) -> dict[str, str]:
    """Versions by name."""
    (packages,) = project.glob(".venv/lib/python*/site-packages")
    found = (folder.name.removesuffix(".dist-info") for folder in packages.glob("*.dist-info"))
    versions = dict(name.split("-") for name in found)
    return {name: versions[name] for name in versions.keys() & {"torch", "cudalib", "mine"}}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "found"),
    [
        ((), {"torch": "2.0", "cudalib": "1.0", "mine": "1.0"}),
        (("TORCH=cpu",), {"torch": "2.0+cpu", "mine": "1.0"}),
    ],
    ids=["for_cuda", "for_cpu"],
)
def test_torch_is_the_build_that_was_chosen(project, words, found):
    done = make(project, *words)
    assert done.returncode == 0, done.stdout + done.stderr
    assert installed(project) == found


@pytest.mark.slow
def test_another_file_of_the_same_version_is_refused(project):
    put_wheel(project / "../cpu", "torch", "2.0+cpu", "print('another')")
    done = make(project, "TORCH=cpu")
    assert done.returncode != 0
    assert "DO NOT MATCH THE HASHES" in done.stderr
    assert not (project / ".venv" / ".ready").exists()


def test_another_choice_is_answered_in_one_sentence(project):
    done = make(project, "TORCH=gpu")
    assert done.returncode == 2
    assert "TORCH must be cpu or empty, got gpu" in done.stderr
    assert not (project / ".venv").exists()


def test_the_locks_are_of_one_torch_and_the_pages_name_the_index_of_the_makefile():
    pins = {
        name: re.search(r"^torch==([\d.]+)(\+cpu)?", (ROOT / name).read_text(), re.M)
        for name in ("requirements.lock", "requirements-cpu.lock")
    }
    assert pins["requirements.lock"][1] == pins["requirements-cpu.lock"][1]
    assert [pin[2] for pin in pins.values()] == [None, "+cpu"]
    (index,) = re.findall(r"^TORCH_INDEX \?= (\S+)$", (ROOT / "Makefile").read_text(), re.M)
    for page in ("README.md", "docs/how-to/gpu.md"):
        assert f"--index-url {index}" in (ROOT / page).read_text(), page
