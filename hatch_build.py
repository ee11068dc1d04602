"""The README as a package index shows it, where there is no repository around it."""

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

PICTURE = re.compile(r"^!\[[^\]]*\]\((?!https?:)[^)]*\)\n+", re.MULTILINE)
LINK = re.compile(r"\[([^\]]*)\]\((?!https?:)[^)]*\)")


class ReadmeHook(MetadataHookInterface):
    """Sets `readme`; pyproject.toml names it as dynamic."""

    def update(self, metadata: dict[str, Any]) -> None:
        text = (Path(self.root) / "README.md").read_text()
        metadata["readme"] = {"content-type": "text/markdown", "text": standalone(text)}


def standalone(text: str) -> str:
    """Leaves out relative pictures, and of relative links leaves the words."""
    return LINK.sub(r"\1", PICTURE.sub("", text))
