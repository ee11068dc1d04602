"""Results are of commits: the list in results/ is held to git, and others are not counted."""

import dataclasses
import hashlib
import shutil
from pathlib import Path

import pytest

from episodic_curiosity.experiments import measure as measuring
from episodic_curiosity.experiments import sources
from episodic_curiosity.experiments.measure import measure
from episodic_curiosity.experiments.results import load_results, write_measured
from episodic_curiosity.experiments.sources import (
    fingerprint_in,
    flawed,
    history,
    is_committed,
    read_list,
    why_uncounted,
    write_list,
)
from episodic_curiosity.support.saving import LoadError
from episodic_curiosity.support.version import code_version
from tests.clone import ROOT, assert_sources_of, git, skip_without_history
from tests.experiments.small_table import small_cell
from tests.experiments.test_results import RESULT, TIMING

KNOWN, UNKNOWN = "0123456789ab", "ba9876543210"


@pytest.fixture(scope="module")
def whole_history():
    skip_without_history()


@pytest.mark.usefixtures("whole_history")
def test_every_result_is_of_a_commit():
    codes = {result.code for result in load_results(ROOT / "results").results}
    listed = read_list(ROOT / "results")
    assert {fingerprint_in(code) for code in codes} == listed.keys()
    assert not any(why_uncounted(code, listed) for code in codes)
    for mark, commit in listed.items():
        assert_sources_of(commit, mark)


@pytest.fixture
def clone(tmp_path, monkeypatch) -> Path:
    """A repository of three commits: two versions of a package, then a page about it."""
    package = tmp_path / "episodic_curiosity"
    (package / "b").mkdir(parents=True)
    (package / "b" / "part.py").write_text("x = 1\n")
    (package / "b.py").write_text("y = 1\n")
    (package / "page.css").write_text("not a source\n")
    git(tmp_path, "init", "--quiet")
    for change in ("x = 1\n", "x = 2\n", None):
        if change is None:
            (tmp_path / "page.md").write_text("about it\n")
        else:
            (package / "b" / "part.py").write_text(change)
        git(tmp_path, "add", ".")
        git(tmp_path, "commit", "--quiet", "--message", "a step")
    monkeypatch.setattr(sources, "PACKAGE", package)
    is_committed.cache_clear()
    yield tmp_path
    is_committed.cache_clear()


def by_hand(x: int) -> str:
    """Paths are sorted by their parts, so that a folder comes before its namesake."""
    content = f"b/part.py\nx = {x}\nb.py\ny = 1\n"
    return hashlib.sha256(content.encode()).hexdigest()[:12]


def commits(clone: Path) -> list[str]:
    return git(clone, "rev-list", "HEAD").split()


def test_the_history_of_a_clone(clone):
    marks = [by_hand(2), by_hand(2), by_hand(1)]  # a page is no source
    assert list(history(clone)) == list(zip(commits(clone), marks, strict=True))


@pytest.mark.parametrize(("x", "committed"), [(2, True), (1, True), (3, False)])
def test_sources_are_of_any_commit_or_of_none(clone, monkeypatch, x, committed):
    code = f"0.2.0 (sources {by_hand(x)})"
    monkeypatch.setattr(sources, "code_version", lambda: code)
    assert is_committed() is committed
    # A copied folder, even inside another clone, says nothing of its history.
    shutil.rmtree(clone / ".git")
    is_committed.cache_clear()
    assert is_committed() is None


def test_without_git_nothing_is_known(clone, monkeypatch):
    monkeypatch.setenv("PATH", "")
    assert is_committed() is None
    with pytest.raises(LoadError, match="is no clone with a history to search"):
        write_list(clone)


def test_the_fingerprint_of_a_commit_is_that_of_its_files():
    """The sources here, hashed as a commit's are: one function for both."""
    package = Path(sources.__file__).parents[1]
    content = hashlib.sha256()
    for path in sorted(package.rglob("*.py")):
        content.update(f"{path.relative_to(package)}\n".encode() + path.read_bytes())
    assert fingerprint_in(code_version()) == content.hexdigest()[:12]


def test_the_list_names_the_oldest_commit_of_each_result(clone):
    results = clone / "results"
    codes = [f"0.2.0 (sources {by_hand(2)})", f"0.2.0 (sources {UNKNOWN})"]
    codes.append(flawed(codes[0], "not committed"))
    for seed, code in enumerate(codes):
        result = dataclasses.replace(RESULT, key=RESULT.key._replace(seed=seed), code=code)
        write_measured(results / result.key.path, result, TIMING)
    assert read_list(results) is None
    left = write_list(results)
    assert left == sorted(codes[1:])
    assert read_list(results) == {by_hand(2): commits(clone)[1]}
    assert len(load_results(results).results) == 3  # the list is no result


CLEAN = f"0.2.0 (sources {KNOWN})"


@pytest.mark.parametrize(
    ("code", "listed", "reason"),
    [
        (CLEAN, None, None),
        (CLEAN, {KNOWN: "c"}, None),
        (CLEAN, {UNKNOWN: "c"}, "which sources.json does not list"),
        (CLEAN, {}, "which sources.json does not list"),
        ("0.2.0", None, None),
        ("0.2.0", {KNOWN: "c"}, "was measured from 0.2.0, which sources.json does not list"),
        (flawed(CLEAN, "not committed"), None, "from sources of no commit: 0.2.0"),
        (flawed(CLEAN, "not committed"), {KNOWN: "c"}, f"{KNOWN}; not committed)"),
    ],
)
def test_what_counts(code, listed, reason):
    said = why_uncounted(code, listed)
    assert said == reason if reason is None else reason in said


def test_a_list_that_is_none(tmp_path):
    (tmp_path / "sources.json").write_text("{}")
    with pytest.raises(LoadError, match="was not written by"):
        read_list(tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize(("committed", "flaw"), [(True, ""), (None, ""), (False, True)])
def test_a_cell_says_that_its_sources_are_not_committed(tmp_path, monkeypatch, committed, flaw):
    monkeypatch.setattr(measuring, "is_committed", lambda: committed)
    cell = dataclasses.replace(small_cell("maze/sparse", "ppo", num_updates=1), measure="speed")
    code = measure(cell, tmp_path, device="cpu").result.code
    assert code == (flawed(code_version(), "not committed") if flaw else code_version())
    assert fingerprint_in(code) == fingerprint_in(code_version())


@pytest.mark.slow
def test_a_run_that_other_sources_began_is_of_no_commit(tmp_path, monkeypatch):
    monkeypatch.setattr(measuring, "is_committed", lambda: True)
    monkeypatch.setattr(measuring, "read_sources", lambda _: f"0.2.0 (sources {UNKNOWN})")
    cell = dataclasses.replace(small_cell("maze/sparse", "ppo", num_updates=1), measure="speed")
    code = measure(cell, tmp_path, device="cpu").result.code
    assert code == flawed(code_version(), f"begun with {UNKNOWN}")
    assert "of no commit" in why_uncounted(code, None)
