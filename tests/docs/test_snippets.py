"""Every Python listing of the documentation runs as it is written, or says why it does not.

A comment before a listing, which readers do not see, may say:
    <!-- given: observation = ... -->      what the listing takes for granted
    <!-- fragment: needs a GPU -->         why it cannot be run here
    <!-- run by tests/x.py -->             that another test runs it
The README's are run by tests/test_readme.py.
"""

import re
import shutil
import sys
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import pytest
import torch

from episodic_curiosity.bonus import registry as bonuses
from episodic_curiosity.worlds import registry as worlds

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"(?:<!-- (?P<note>[^>]*) -->\n)?```python\n(?P<code>.*?)^```$", re.M | re.S)


class Listing(NamedTuple):
    page: str
    number: int
    note: str
    code: str


def listings(page: Path) -> list[Listing]:
    name = page.relative_to(ROOT / "docs").as_posix()
    found = enumerate(BLOCK.finditer(page.read_text()), 1)
    return [
        Listing(name, number, block["note"] or "", block["code"]) for number, block in found
    ]


PAGES = sorted((ROOT / "docs").rglob("*.md"))
LISTINGS = [listing for page in PAGES for listing in listings(page)]
HERE = [listing for listing in LISTINGS if not listing.note.startswith(("fragment", "run by"))]


@pytest.mark.slow
@pytest.mark.parametrize("listing", HERE, ids=lambda each: f"{each.page}-{each.number}")
def test_it_runs(listing, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    if 'Path("results")' in listing.code:
        shutil.copytree(ROOT / "results", "results")
    # What a listing registers is forgotten.
    monkeypatch.setattr(worlds, "_FAMILIES", dict(worlds._FAMILIES))
    monkeypatch.setattr(bonuses, "_methods", dict(bonuses._methods))
    module = ModuleType("listing")  # a world's record names its module
    monkeypatch.setitem(sys.modules, "listing", module)
    code = listing.code
    if not torch.cuda.is_available():
        code = code.replace('"cuda"', '"cpu"')
    exec(listing.note.removeprefix("given:").strip(), module.__dict__)
    exec(compile(code, f"{listing.page}, listing {listing.number}", "exec"), module.__dict__)
    for name in ("env", "envs", "world"):
        if hasattr(module, name):
            getattr(module, name).close()


def test_notes_are_of_a_known_kind_and_true():
    assert len(LISTINGS) > 15
    for page, _, note, code in LISTINGS:
        kind, _, rest = note.partition("run by ") if "run by" in note else note.partition(": ")
        assert kind in ("", "given", "fragment"), (page, note)
        if "run by" in note:
            test = (ROOT / rest).read_text()  # of the page, or of what test_page.py found there
            assert Path(page).name in test or "test_page import CODE" in test, (page, note)
        compile(code, page, "exec")  # a fragment is Python too


def test_every_python_listing_was_found():
    """Indented or misspelt fences would not be run."""
    for page in PAGES:
        text = page.read_text()
        fences = re.findall(r"^\s*```[ {.]*py", text, re.M | re.I)
        assert len(fences) == len(listings(page)), page
