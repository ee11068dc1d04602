"""The wheel and the source distribution: their content, and the README as an index shows it."""

import email
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import markdown
import pytest
import yaml

import episodic_curiosity

ROOT = Path(__file__).parent.parent
DATA = ("py.typed", "experiments/published.json", "show/report/page.css")
AGENT = "pretrained/stand-in/"  # a shared agent, in a copy of the sources
AGENT_FILES = (f"{AGENT}card.json", f"{AGENT}README.md", f"{AGENT}agent.safetensors")


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> Path:
    """Both, built without a network from a copy of the sources that ships one more agent."""
    folder, clone = tmp_path_factory.mktemp("dist"), tmp_path_factory.mktemp("clone")
    for path in ROOT.iterdir():
        if path.is_file():
            shutil.copy(path, clone)
    ours = clone / "episodic_curiosity"
    shutil.copytree(ROOT / ours.name, ours, ignore=shutil.ignore_patterns("__pycache__"))
    (ours / AGENT).mkdir(parents=True)
    for file in AGENT_FILES:
        (ours / file).write_text("a stand-in")
    command = [sys.executable, "-m", "hatchling", "build", "--directory", folder]
    done = subprocess.run(command, cwd=clone, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def in_package(names: list[str]) -> set[str]:
    """The files of the package, by their paths in it."""
    parts = (name.partition("episodic_curiosity/") for name in names)
    return {file for _, found, file in parts if found and not file.endswith("/")}


def sources() -> set[str]:
    package = ROOT / "episodic_curiosity"
    files = [*package.rglob("*.py"), *package.glob("pretrained/*/*")]
    return {file.relative_to(package).as_posix() for file in files} | set(AGENT_FILES)


def test_the_wheel_is_the_package_and_nothing_else(built):
    (path,) = built.glob("*.whl")
    with zipfile.ZipFile(path) as wheel:
        names = wheel.namelist()
        sizes = {info.filename: info.compress_size for info in wheel.infolist()}
    assert in_package(names) == sources() | set(DATA)
    others = {name for name in names if not name.startswith("episodic_curiosity/")}
    assert {name.partition(".dist-info/")[2] for name in others} == {
        "METADATA", "RECORD", "WHEEL", "entry_points.txt", "licenses/LICENSE",
    }  # fmt: skip
    code = sum(size for name, size in sizes.items() if "/pretrained/" not in name)
    assert code < 1_000_000


def test_the_source_distribution_builds_the_same_package(built):
    (path,) = built.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        names = archive.getnames()
    assert in_package(names) == sources() | set(DATA)
    root = path.name.removesuffix(".tar.gz")
    outside = {name.removeprefix(f"{root}/") for name in names}
    outside = {name for name in outside if not name.startswith("episodic_curiosity/")}
    assert outside == {
        ".gitignore", "CHANGELOG.md", "CITATION.cff", "LICENSE", "PKG-INFO", "README.md",
        "hatch_build.py", "pyproject.toml",
    }  # fmt: skip


def test_the_readme_of_an_index_has_no_relative_links(built):
    (path,) = built.glob("*.whl")
    with zipfile.ZipFile(path) as wheel:
        (name,) = (name for name in wheel.namelist() if name.endswith("METADATA"))
        metadata = email.message_from_bytes(wheel.read(name))
    assert metadata["Description-Content-Type"] == "text/markdown"
    text = metadata.get_payload(decode=True).decode()
    page = markdown.markdown(text, extensions=["fenced_code", "tables"])
    assert page.startswith("<h1>Episodic curiosity</h1>")
    links = re.findall(r'(?:href|src)="([^"]*)"', page)
    assert links
    assert all(link.startswith("https://") for link in links)
    assert page.count("<pre>") == (ROOT / "README.md").read_text().count("\n```") / 2
    assert "[tutorial" not in text.lower()
    assert "Tutorial: the paper in pictures" in text
    assert "Operating System :: POSIX :: Linux" in metadata.get_all("Classifier")


def test_the_citation_is_of_this_version():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert citation["version"] == episodic_curiosity.__version__
    (paper,) = citation["references"]
    readme = (ROOT / "README.md").read_text()
    assert f"title = {{{paper['title']}}}" in readme
    names = [author["family-names"] for author in paper["authors"]]
    assert re.findall(r"(\w+), \w", re.search(r"author = {(.*)}", readme)[1]) == names
    for field in ("cff-version", "message", "title", "authors", "license"):
        assert citation[field]
