"""The commit that a result was measured from; a result of no commit is never counted.

A result is often measured where the package is a copied folder without git, so it stores a
fingerprint of its sources. results/sources.json lists the commit of each fingerprint:

    python -m episodic_curiosity.experiments.sources results    # in a clone; writes the list

If git finds immediately that the sources are not committed, the result says so itself.
"""

import io
import re
import subprocess
import sys
import tarfile
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path, PurePosixPath

from episodic_curiosity.experiments.results import load_results
from episodic_curiosity.support import saving
from episodic_curiosity.support.saving import LoadError
from episodic_curiosity.support.version import PACKAGE, code_version, fingerprint

KIND = "sources"
LIST = "sources.json"
NOT_COMMITTED = "not committed"
# As `code_version` writes it, and `flawed` after it.
CODE = re.compile(r"\(sources (?P<fingerprint>[0-9a-f]{12})(; (?P<flaw>.+))?\)")


@cache
def is_committed() -> bool | None:
    """True if these sources are those of a commit; None where git cannot tell."""
    found = history(PACKAGE.parent)
    newest = next(found, None)
    if newest is None:
        return None
    ours = fingerprint_in(code_version())
    return newest[1] == ours or any(theirs == ours for _, theirs in found)


def flawed(code: str, flaw: str) -> str:
    """The version of a result's code, with the reason why it is that of no commit."""
    return f"{code.removesuffix(')')}; {flaw})"


def fingerprint_in(code: str) -> str | None:
    """The fingerprint in a version; None if there is none."""
    found = CODE.search(code)
    return found and found["fingerprint"]


def why_uncounted(code: str, listed: Mapping[str, str] | None) -> str | None:
    """The reason why a result of this version does not count; None if it does.

    The words continue the name of the result's file. Folders without a list, such as a user's
    own, count whatever does not say itself that it is of no commit.
    """
    found = CODE.search(code)
    if found and found["flaw"]:
        return f"was measured from sources of no commit: {code}"
    if listed is not None and (not found or found["fingerprint"] not in listed):
        return (
            f"was measured from {code}, which {LIST} does not list; if a commit has these "
            f"sources, python -m episodic_curiosity.experiments.sources adds it"
        )
    return None


def read_list(folder: Path) -> dict[str, str] | None:
    """The commit of each fingerprint in a folder of results; None where there is no list."""
    path = folder / LIST
    return saving.read_header(path, KIND)["config"] if path.exists() else None


def write_list(folder: Path) -> list[str]:
    """Lists the commits of a folder's results; returns the versions that no commit has."""
    oldest = {theirs: commit for commit, theirs in history(PACKAGE.parent)}
    if not oldest:
        raise LoadError(f"{PACKAGE.parent} is no clone with a history to search")
    codes = sorted({result.code for result in load_results(folder).results})
    listed = {mark: oldest[mark] for code in codes if (mark := fingerprint_in(code)) in oldest}
    saving.write_atomically({folder / LIST: saving.header_bytes(KIND, listed)})
    return [code for code in codes if why_uncounted(code, listed)]


def history(repository: Path) -> Iterator[tuple[str, str]]:
    """Every commit of a clone, newest first, with the fingerprint of its sources."""
    if not (repository / ".git").exists():  # not the repository of a folder above
        return
    for commit in (_git(repository, "rev-list", "HEAD") or b"").decode().split():
        if (theirs := fingerprint_at(repository, commit)) is not None:
            yield commit, theirs


def fingerprint_at(repository: Path, commit: str) -> str | None:
    """The fingerprint of the sources of a commit; None where it has none."""
    packed = _git(repository, "archive", "--format=tar", commit, "--", PACKAGE.name)
    if packed is None:
        return None
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        return fingerprint(
            {
                PurePosixPath(member.name).relative_to(PACKAGE.name): file.read()
                for member in archive
                if member.name.endswith(".py") and (file := archive.extractfile(member))
            }
        )


def _git(repository: Path, *arguments: str) -> bytes | None:
    """The output of git; None where it is not installed or refuses."""
    try:
        done = subprocess.run(["git", "-C", repository, *arguments], capture_output=True)
    except OSError:
        return None
    return None if done.returncode else done.stdout


if __name__ == "__main__":
    if left := write_list(Path(sys.argv[1])):
        sys.exit("of no commit: " + ", ".join(left))
