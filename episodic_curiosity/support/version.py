"""The release, and a fingerprint of its sources."""

import hashlib
from collections.abc import Mapping
from functools import cache
from pathlib import Path, PurePosixPath

__version__ = "0.2.0.dev0"
PACKAGE = Path(__file__).parent.parent


@cache
def code_version() -> str:
    """The release and a fingerprint of its sources, which distinguishes commits without git."""
    files = {
        PurePosixPath(path.relative_to(PACKAGE)): path.read_bytes()
        for path in PACKAGE.rglob("*.py")
    }
    return f"{__version__} (sources {fingerprint(files)})"


def fingerprint(files: Mapping[PurePosixPath, bytes]) -> str:
    """A hash of sources: their paths in the package and their contents."""
    content = hashlib.sha256()
    for path in sorted(files):
        content.update(f"{path}\n".encode() + files[path])
    return content.hexdigest()[:12]
