"""The clone of this repository, for tests that hold what is stored to its history."""

import shutil
import subprocess
from pathlib import Path

import pytest

from episodic_curiosity.experiments.sources import fingerprint_at

ROOT = Path(__file__).parents[1]


def git(folder: Path, *arguments: str) -> str:
    name = ("-c", "user.name=x", "-c", "user.email=x@x")
    done = subprocess.run(
        ["git", "-C", folder, *name, *arguments], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def skip_without_history() -> None:
    """Skips a test where git or commits are missing."""
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        pytest.skip("there is no git history here to hold files to")
    if git(ROOT, "rev-parse", "--is-shallow-repository") == "true":
        pytest.skip("the clone is shallow: it lacks the commits of stored files")


def assert_sources_of(commit: str, mark: str) -> None:
    """The commit is in the history, and its sources have this fingerprint."""
    git(ROOT, "merge-base", "--is-ancestor", commit, "HEAD")
    assert fingerprint_at(ROOT, commit) == mark
