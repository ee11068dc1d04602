"""The reference shows everything public, with every argument explained."""

import re
from pathlib import Path

import griffe
import pytest

import episodic_curiosity

ROOT = Path(__file__).parents[2]
SHOWN = re.compile(r"^::: (episodic_curiosity\.[\w.]+)$", re.MULTILINE)
PAGES = sorted((ROOT / "docs" / "reference").glob("*.md"))
NAMES = [name for page in PAGES for name in SHOWN.findall(page.read_text())]


@pytest.fixture(scope="module")
def package() -> griffe.Module:
    """The package as mkdocstrings reads it."""
    extensions = griffe.load_extensions(ROOT / "docs" / "hooks" / "field_comments.py")
    found = griffe.load("episodic_curiosity", search_paths=[ROOT], extensions=extensions)
    assert isinstance(found, griffe.Module)
    return found


def test_everything_public_is_shown():
    text = "".join(page.read_text() for page in PAGES)
    for name in episodic_curiosity.__all__:
        assert f"episodic_curiosity.{name}" in NAMES or f"`ec.{name}`" in text, name


@pytest.mark.parametrize("name", NAMES)
def test_arguments_are_explained(package, name):
    shown = package[name.removeprefix("episodic_curiosity.")]
    assert shown.docstring is not None
    explained = arguments_in(shown.docstring)
    if shown.is_class:
        for each in (shown, *shown.mro()):
            explained |= {field for field, member in each.members.items() if member.docstring}
        init = shown.all_members.get("__init__")
        explained |= arguments_in(init.docstring if init is not None else None)
    wanted = {each.name.strip("*") for each in shown.parameters} - {"self"}
    if name.startswith("episodic_curiosity.testing."):
        wanted = set()  # pytest makes them
    assert wanted - explained == set()


def arguments_in(docstring: griffe.Docstring | None) -> set[str]:
    """The names in its section of arguments."""
    sections = [] if docstring is None else docstring.parse("google")
    arguments = (
        part for part in sections if part.kind is griffe.DocstringSectionKind.parameters
    )
    return {argument.name.strip("*") for section in arguments for argument in section.value}
