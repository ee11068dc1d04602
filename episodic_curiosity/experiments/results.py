"""Measured cells as files, small enough to be committed.

results/<table>/<task>__<method>__<preset>__<steps>__s<seed>.json      what was measured
results/<table>/<task>__<method>__<preset>__<steps>__s<seed>.timing.json   how long it took

A variant of a method is written <method>@<variant>. Time differs between runs, so it has its
own file: an interrupted and resumed cell leaves the same bytes in the other. A damaged file is
never counted. Reading reports it and changes nothing; measuring its cell again renames it to
<file>.damaged.
"""

import contextlib
import dataclasses
import json
import math
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Self, cast

from episodic_curiosity.support import saving
from episodic_curiosity.support.saving import LoadError, read_header, write_atomically

KIND = "result"
TIMING, DAMAGED = ".timing.json", ".damaged"
NAME = re.compile(r".+__.+__.+__\d+__s\d+\.json")  # of a cell's file
LARGEST = 1e300  # of any number that was measured; a larger whole number is no float
RATE, RATE_IN_ALL = "steps_per_second", "steps_per_second_in_all"


class Key(NamedTuple):
    """Identifies a cell with one seed; two results of one key are never averaged."""

    table: str  # the experiment, such as table1
    task: str
    method: str
    variant: str | None  # of the method; None: as the paper's tables have it
    preset: str
    steps: int  # requested, of all environments together, those of random play included
    seed: int

    @property
    def label(self) -> str:
        """The argument of `curiosity table TABLE --cell`; without preset and steps."""
        return f"{self.task}:{self._method}:{self.seed}"

    @property
    def path(self) -> Path:
        """Path of its file in the folder of results."""
        parts = (self.task, self._method, self.preset, str(self.steps), f"s{self.seed}")
        name = "__".join(parts).replace("/", "-").replace("+", "_")
        return Path(self.table) / f"{name}.json"

    @property
    def _method(self) -> str:
        return f"{self.method}@{self.variant}" if self.variant else self.method


@dataclass(frozen=True, kw_only=True)
class Result:
    """One measured cell with one seed."""

    key: Key
    config: dict[str, Any]  # of the run, as returned by Run.to_dict
    # The release, a fingerprint of its sources, and why they are of no commit if that is known.
    code: str
    command: str  # repeats the measurement
    # Training, at most CURVE_POINTS long: "steps" and the metrics up to there.
    curve: list[dict[str, float]]
    # On the test levels: reward, coverage and length, each as a Summary's fields
    # (num_values, mean, deviation, low, high); of an R-network its accuracy.
    metrics: dict[str, dict[str, float | None]]
    action_shares: dict[str, float]  # over the test's steps; empty for continuous actions

    @property
    def episodes(self) -> int | None:
        """Number of test episodes; None for measures without a test: accuracy and speed."""
        length = self.metrics.get("length")
        return None if length is None else int(length["num_values"] or 0)

    def to_bytes(self) -> bytes:
        """A JSON file, one line per point of the curve."""
        content = self.key._asdict() | vars(self)
        del content["key"]
        sha256 = saving.fingerprint(content)
        del content["curve"]
        packed = saving.header_bytes(KIND, **content, sha256=sha256)
        points = ",\n".join(f"    {json.dumps(point, allow_nan=False)}" for point in self.curve)
        curve = f"[\n{points}\n  ]" if points else "[]"
        return packed.rstrip(b"}\n") + f',\n  "curve": {curve}\n}}\n'.encode()

    @classmethod
    def read(cls, path: Path) -> Self:
        """Reads the output of `to_bytes`; raises a LoadError for any other file."""
        header = read_header(path, KIND)
        _, *others = (field.name for field in dataclasses.fields(cls))
        names = (*Key._fields, *others)
        if missing := [name for name in names if name not in header]:
            raise LoadError(f"{path} lacks {', '.join(missing)}")
        content = {name: header[name] for name in names}
        if reason := _misfit(content):
            raise LoadError(f"{path} holds no result: {reason}")
        if saving.fingerprint(content) != header.get("sha256"):
            raise LoadError(f"{path} was changed after it was written (fingerprints differ)")
        key = Key(*(content.pop(name) for name in Key._fields))
        return cls(key=key, **content)


class Problem(NamedTuple):
    """A file that was not counted, and the reason as a sentence."""

    path: Path
    reason: str


class Loaded(NamedTuple):
    """The contents of a folder of results."""

    results: list[Result]  # in the order of their files' names
    problems: list[Problem]  # files that do not count, those set aside before included


def load_results(folder: Path) -> Loaded:
    """Reads every result in a folder and reports the other files; changes nothing."""
    if not folder.is_dir():
        raise LoadError(f"{folder} is no folder of results")
    paths = [path for path in folder.glob("*/*.json") if not path.name.endswith(TIMING)]
    results, problems = [], []
    for path in sorted(paths):
        try:
            results.append(read_result(path))
        except LoadError as error:
            problems.append(Problem(path, str(error)))
    if problems and not results and not any(NAME.fullmatch(path.name) for path in paths):
        raise LoadError(f"{folder} is no folder of results: none of its JSON files holds one")
    problems += [
        Problem(path, _why(path))
        for path in sorted(folder.glob(f"*/*.json{DAMAGED}"))
        if path.with_suffix("") not in paths  # it has not been measured again since
    ]
    return Loaded(results, problems)


def read_result(path: Path) -> Result:
    """Reads a result; raises a LoadError where the file's name or content is another."""
    result = Result.read(path)
    if result.key.path.parts != path.parts[-2:]:
        raise LoadError(f"{path} holds {_another(result)}")
    return result


def set_aside(path: Path) -> Path:
    """Renames a damaged file, to make room for a new one; call it with the cell's lock held."""
    aside = path.with_name(path.name + DAMAGED)
    os.replace(path, aside)
    return aside


def read_timing(folder: Path, key: Key) -> dict[str, Any] | None:
    """Seconds, steps/s and hardware of a cell; None where there is no such file.

    Steps/s are given for the median update and for the training as a whole.
    """
    path = _timing_path(folder / key.path)
    return _read_timing(path, key.steps) if path.exists() else None


def load_timings(folder: Path) -> list[tuple[Result, dict[str, Any]]]:
    """Each readable result in a folder, with its timing."""
    timings = []
    for path in sorted(folder.glob(f"*/*{TIMING}")):
        with contextlib.suppress(LoadError):
            timings.append(read_measured(path.with_name(path.name.replace(TIMING, ".json"))))
    return timings


def read_measured(path: Path) -> tuple[Result, dict[str, Any]]:
    """Reads the output of `write_measured`; raises a LoadError where part of it is missing."""
    result = Result.read(path)
    return result, _read_timing(_timing_path(path), result.key.steps)


def write_measured(path: Path, result: Result, timing: dict[str, Any]) -> None:
    """Writes both files atomically; the result, which counts, appears last."""
    path.parent.mkdir(parents=True, exist_ok=True)
    packed = saving.header_bytes("timing", timing)
    write_atomically({_timing_path(path): packed, path: result.to_bytes()})


def remove_measured(path: Path) -> None:
    """Removes both files, the result first."""
    path.unlink(missing_ok=True)
    _timing_path(path).unlink(missing_ok=True)


def _timing_path(path: Path) -> Path:
    return path.with_name(path.stem + TIMING)


def _read_timing(path: Path, steps: int) -> dict[str, Any]:
    timing: dict[str, Any] = {"seconds": None} | read_header(path, "timing")["config"]
    for name in timing.keys() & {"seconds", RATE, RATE_IN_ALL}:
        if not _is_positive(timing[name]):
            raise LoadError(f"{path} says {name}: {timing[name]}, wanted a number above 0")
    if RATE in timing:  # older files lack the other
        timing = {RATE_IN_ALL: round(steps / timing["seconds"], 1)} | timing
    return timing


def _is_positive(value: object) -> bool:
    return type(value) in (int, float) and 0 < cast(float, value) < math.inf


def _why(path: Path) -> str:
    """The reason why a file was set aside."""
    try:
        return f"{path} holds {_another(Result.read(path))}"
    except LoadError as error:
        return str(error)


def _another(result: Result) -> str:
    return f"another cell than its name says: {result.key.path}"


def _misfit(content: Mapping[str, Any]) -> str | None:
    """Names a field of a result with an impossible value; None if there is none."""
    texts = ("table", "task", "method", "preset", "code", "command")
    is_right = {name: _is_text(content[name]) for name in texts}
    is_right["variant"] = content["variant"] is None or _is_text(content["variant"])
    is_right |= {name: _is_count(content[name]) for name in ("steps", "seed")}
    is_right["config"] = isinstance(content["config"], dict)
    is_right["action_shares"] = _has_numbers(content["action_shares"])
    curve, metrics = content["curve"], content["metrics"]
    is_right["curve"] = isinstance(curve, list) and all(map(_is_point, curve))
    is_right["metrics"] = isinstance(metrics, dict) and all(map(_is_summary, metrics.values()))
    wrong = next((name for name in is_right if not is_right[name]), None)
    return None if wrong is None else f"{wrong} is {str(content[wrong])[:40]!r}"


def _is_text(value: object) -> bool:
    # A lone surrogate, which JSON can hold, cannot be written to any page.
    return isinstance(value, str) and not any("\ud800" <= char <= "\udfff" for char in value)


def _is_count(value: object) -> bool:
    return type(value) is int and value >= 0


def _is_point(value: object) -> bool:
    """True if this can be a point of a curve."""
    if not isinstance(value, dict) or not _has_numbers(value) or None in value.values():
        return False
    return "steps" in value and value.get("episodes", 1) > 0


def _is_summary(value: object) -> bool:
    """True if this can be a Summary: its interval may be missing, its mean may not."""
    if not isinstance(value, dict) or not _has_numbers(value):
        return False
    return None not in (value.get("num_values"), value.get("mean"))


def _has_numbers(value: object) -> bool:
    """True if this is a dict of finite numbers, or of None where nothing was measured."""
    return isinstance(value, dict) and all(
        number is None or (type(number) in (int, float) and abs(number) < LARGEST)
        for number in value.values()
    )
