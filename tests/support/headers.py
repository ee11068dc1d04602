"""Reads and forges the JSON header in the metadata of a saved safetensors file."""

import json
from pathlib import Path
from typing import Any

from episodic_curiosity.support.saving import FORMAT


def read_header(path: Path) -> dict[str, Any]:
    described, _ = _parts(path)
    header: dict[str, Any] = json.loads(described["__metadata__"][FORMAT])
    return header


def write_header(path: Path, header: Any) -> None:
    """Replaces the header, without a new fingerprint."""
    described, data = _parts(path)
    described["__metadata__"] = {FORMAT: json.dumps(header)}
    packed = json.dumps(described).encode()
    path.write_bytes(len(packed).to_bytes(8, "little") + packed + data)


def _parts(path: Path) -> tuple[dict[str, Any], bytes]:
    content = path.read_bytes()
    size = int.from_bytes(content[:8], "little")
    return json.loads(content[8 : 8 + size]), content[8 + size :]
