"""The lines of a run: metrics.jsonl, and timing.jsonl beside it with a checksum of each line.

The checksums are kept apart from the metrics so that metrics.jsonl holds nothing but metrics. A
line of timing is written first: where a run is killed, it is the metrics that lack a line.
"""

import json
import math
import os
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

from episodic_curiosity.support.files import (
    UnfitFileError,
    append_to_file,
    change_file,
    create_file,
    read_file,
)
from episodic_curiosity.support.saving import LoadError, write_atomically

METRICS, TIMING = "metrics.jsonl", "timing.jsonl"
CHECKSUM = "metrics_crc32"
MAX_BYTES = 1 << 26  # of a month's lines; in memory they take forty times as much


class LinesWriter:
    """Appends to both files."""

    def __init__(self, folder: Path) -> None:
        self._metrics = append_to_file(folder / METRICS)
        self._timing = append_to_file(folder / TIMING)

    def write(self, steps: int, metrics: Mapping[str, float], timing: dict[str, float]) -> None:
        """Adds a line to each file; NaN and infinity are written as null."""
        line = _packed({"steps": steps} | _as_json(metrics))
        self._append(self._timing, _packed({"steps": steps} | timing | _checksum(line)))
        self._append(self._metrics, line)

    def sync(self) -> None:
        """Makes what was written outlast a power cut."""
        for file in (self._metrics, self._timing):
            os.fsync(file.fileno())

    def close(self) -> None:
        self._metrics.close()
        self._timing.close()

    def _append(self, file: BinaryIO, line: bytes) -> None:
        file.write(line)
        file.flush()


def read_metrics(folder: Path) -> list[dict[str, float]]:
    """One dict for each line that was written, `steps` among its names; null is NaN.

    A last line without its end is left out: a run is writing it, or was killed over it. A line
    that was changed after it was written is refused.
    """
    check_lines(folder)
    return _parsed(folder / METRICS)


def read_timing(folder: Path) -> list[dict[str, float]]:
    """As `read_metrics`: `steps`, `seconds` (of all sittings) and `steps_per_second`."""
    lines = _parsed(folder / TIMING)
    return [{name: value for name, value in line.items() if name != CHECKSUM} for line in lines]


def count_lines(folder: Path) -> int:
    """Lines of metrics; 0 where there is no such file."""
    return len(_whole_lines(folder / METRICS)) if (folder / METRICS).exists() else 0


def check_lines(folder: Path, num_lines: int | None = None) -> None:
    """Raises unless the metrics, or their first `num_lines`, are as they were written."""
    lines, timing = _whole_lines(folder / METRICS)[:num_lines], _parsed(folder / TIMING)
    for number, line in enumerate(lines, start=1):
        if number > len(timing):
            raise LoadError(f"{folder / TIMING} has {len(timing)} lines, {METRICS} has more")
        if timing[number - 1].get(CHECKSUM) != zlib.crc32(line):
            raise LoadError(
                f"{folder / METRICS} was changed in line {number} after it was written "
                f"(checksums differ); --accept-changes resumes the run all the same"
            )


def accept_lines(folder: Path, num_lines: int) -> None:
    """Takes the first lines of the metrics as they are: writes their checksums anew."""
    _check_count(folder, num_lines)
    _parsed(folder / METRICS)
    lines = _whole_lines(folder / METRICS)[:num_lines]
    packed = [
        _packed(timing | _checksum(line))
        for timing, line in zip(_parsed(folder / TIMING), lines, strict=False)
    ]
    write_atomically({folder / TIMING: b"".join(packed)})


def keep_lines(folder: Path, num_lines: int) -> None:
    """Cuts both files off after their first lines, as they were at a checkpoint."""
    if num_lines:
        _check_count(folder, num_lines)
    for path in (folder / METRICS, folder / TIMING):
        if num_lines == 0:
            create_file(path).close()
            continue
        lines = _whole_lines(path)[:num_lines]
        with change_file(path) as file:
            file.truncate(sum(map(len, lines)))


def _check_count(folder: Path, num_lines: int) -> None:
    for path in (folder / METRICS, folder / TIMING):
        found = len(_whole_lines(path))
        if found < num_lines:
            raise LoadError(
                f"{path} has {found} lines, but had {num_lines} at the newest checkpoint"
            )


def _as_json(metrics: Mapping[str, float]) -> dict[str, float | None]:
    """Sorted by name, so that lines do not depend on who measured first."""
    for name, value in metrics.items():
        if not isinstance(value, int | float):
            raise TypeError(f"metric {name} must be a number, got {type(value).__name__}")
    if "steps" in metrics:
        raise ValueError("no metric can be called steps: each line begins with that")
    return {
        name: metrics[name] if math.isfinite(metrics[name]) else None
        for name in sorted(metrics)
    }


def _packed(line: dict[str, Any]) -> bytes:
    return json.dumps(line, allow_nan=False).encode() + b"\n"


def _checksum(line: bytes) -> dict[str, int]:
    return {CHECKSUM: zlib.crc32(line)}


def _parsed(path: Path) -> list[dict[str, float]]:
    lines = []
    for number, line in enumerate(_whole_lines(path), start=1):
        try:
            values = json.loads(line)
        except (ValueError, RecursionError):
            values = None
        if not isinstance(values, dict) or "steps" not in values:
            raise LoadError(f"{path} is damaged in line {number}")
        lines.append(
            {name: math.nan if value is None else value for name, value in values.items()}
        )
    return lines


def _whole_lines(path: Path) -> list[bytes]:
    try:
        content = read_file(path, MAX_BYTES)
    except UnfitFileError as error:
        raise LoadError(str(error)) from None
    except OSError as error:
        raise LoadError(f"{path} cannot be read ({error.strerror})") from None
    return content[: content.rfind(b"\n") + 1].splitlines(keepends=True)
