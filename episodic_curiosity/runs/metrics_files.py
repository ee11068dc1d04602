"""The lines of a run: metrics.jsonl, and timing.jsonl with the time and checksum of each line.

The line of timing is written first: where a run is killed in between, metrics lack a line.
"""

import json
import math
import os
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from episodic_curiosity.support.files import append_to_file, change_file, create_file, read_file
from episodic_curiosity.support.saving import LoadError, reading, write_atomically
from episodic_curiosity.support.strict_json import parse_json

METRICS, TIMING = "metrics.jsonl", "timing.jsonl"
CHECKSUM = "metrics_crc32"
MAX_BYTES = 1 << 26  # of a month's lines; in memory they take forty times as much


class LinesWriter:
    """Appends to both files."""

    def __init__(self, folder: Path) -> None:
        self._files = append_to_file(folder / TIMING), append_to_file(folder / METRICS)

    def write(self, steps: int, metrics: Mapping[str, float], timing: dict[str, float]) -> None:
        """Adds a line to each file; NaN and infinity are written as null."""
        line = _packed({"steps": steps} | _as_json(metrics))
        timing_line = _packed({"steps": steps} | timing | _checksum(line))
        for file, content in zip(self._files, (timing_line, line), strict=True):
            file.write(content)
            file.flush()

    def sync(self) -> None:
        """Flushes both files to the disk."""
        for file in self._files:
            os.fsync(file.fileno())

    def close(self) -> None:
        for file in self._files:
            file.close()


def read_metrics(folder: Path) -> list[dict[str, float]]:
    """One dict per line, `steps` among its names; null is NaN.

    An incomplete last line, of a running or killed run, is left out. A line that was edited is
    refused.
    """
    check_lines(folder)
    return _parsed(folder / METRICS)


def read_timing(folder: Path) -> list[dict[str, float]]:
    """As `read_metrics`: `steps`, `seconds` (over all resumes) and `steps_per_second`."""
    lines = _parsed(folder / TIMING, "seconds", "steps_per_second")
    return [{name: value for name, value in line.items() if name != CHECKSUM} for line in lines]


def count_lines(folder: Path) -> int:
    """Lines of metrics; 0 where there is no such file."""
    return len(_lines(folder / METRICS)) if (folder / METRICS).exists() else 0


def check_lines(folder: Path, num_lines: int | None = None) -> None:
    """Raises where the metrics, or their first `num_lines`, do not match their checksums."""
    lines, timing = _lines(folder / METRICS)[:num_lines], _parsed(folder / TIMING)
    for number, line in enumerate(lines, start=1):
        if number > len(timing):
            raise LoadError(f"{folder / TIMING} has {len(timing)} lines, {METRICS} has more")
        if timing[number - 1].get(CHECKSUM) != zlib.crc32(line):
            raise LoadError(
                f"{folder / METRICS} was changed in line {number} after it was written "
                f"(checksums differ); --accept-changes resumes the run all the same"
            )


def accept_lines(folder: Path, num_lines: int) -> None:
    """Accepts the first lines of the metrics as they are: rewrites their checksums."""
    _check_count(folder, num_lines)
    _parsed(folder / METRICS)
    lines = zip(_parsed(folder / TIMING), _lines(folder / METRICS)[:num_lines], strict=False)
    packed = [_packed(timing | _checksum(line)) for timing, line in lines]
    write_atomically({folder / TIMING: b"".join(packed)})


def keep_lines(folder: Path, num_lines: int) -> None:
    """Truncates both files to their first lines, as they were at a checkpoint."""
    if num_lines:
        _check_count(folder, num_lines)
    for path in (folder / METRICS, folder / TIMING):
        if num_lines == 0:
            create_file(path).close()
            continue
        lines = _lines(path)[:num_lines]
        with change_file(path) as file:
            file.truncate(sum(map(len, lines)))


def _check_count(folder: Path, num_lines: int) -> None:
    for path in (folder / METRICS, folder / TIMING):
        found = len(_lines(path))
        if found < num_lines:
            raise LoadError(
                f"{path} has {found} lines, but had {num_lines} at the newest checkpoint"
            )


def _as_json(metrics: Mapping[str, float]) -> dict[str, float | None]:
    """Sorted by name, so that lines do not depend on the order of measuring."""
    for name, value in metrics.items():
        if not isinstance(value, int | float):
            raise TypeError(f"metric {name} must be a number, got {type(value).__name__}")
    if "steps" in metrics:
        raise ValueError("no metric can be called steps: each line begins with that")
    items = sorted(metrics.items())
    return {name: value if math.isfinite(value) else None for name, value in items}


def _packed(line: dict[str, Any]) -> bytes:
    return json.dumps(line, allow_nan=False).encode() + b"\n"


def _checksum(line: bytes) -> dict[str, int]:
    return {CHECKSUM: zlib.crc32(line)}


def _parsed(path: Path, *names: str) -> list[dict[str, float]]:
    """The lines with these names of numbers, and with `steps`."""
    lines = []
    wanted = {"steps", *names}
    for number, line in enumerate(_lines(path), start=1):
        try:
            values = parse_json(line)
        except ValueError:
            values = None
        if (
            not isinstance(values, dict)
            or not wanted <= values.keys()
            or not _has_numbers(values)
        ):
            raise LoadError(f"{path} is damaged in line {number}")
        lines.append({name: math.nan if v is None else v for name, v in values.items()})
    return lines


def _has_numbers(values: dict[str, Any]) -> bool:
    return all(value is None or type(value) in (int, float) for value in values.values())


def _lines(path: Path) -> list[bytes]:
    """The complete lines of a file."""
    with reading(path, LoadError):
        content = read_file(path, MAX_BYTES)
    return content[: content.rfind(b"\n") + 1].splitlines(keepends=True)
