"""Measured cells as files, small enough to be committed.

results/<table>/<task>__<method>__<preset>__<steps>__s<seed>.json      what was measured
results/<table>/<task>__<method>__<preset>__<steps>__s<seed>.timing.json   how long it took

A variant of a method is written <method>@<variant>. What no two runs share, time, has a file of
its own: a cell that was killed and begun again leaves the same bytes in the other. A file that
cannot be trusted is never counted. Reading reports it and touches nothing; whoever measures its
cell again renames it to <file>.damaged.
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
    """What tells one cell from every other; no two results of one key are ever averaged."""

    table: str  # the experiment, such as table1
    task: str
    method: str
    variant: str | None  # of the method; None: as the paper's tables have it
    preset: str
    steps: int
    seed: int

    @property
    def label(self) -> str:
        """As `curiosity table TABLE --cell` takes it, preset and steps apart."""
        return f"{self.task}:{self._method}:{self.seed}"

    @property
    def path(self) -> Path:
        """Of its file, from the folder of results."""
        parts = (self.task, self._method, self.preset, str(self.steps), f"s{self.seed}")
        name = "__".join(parts).replace("/", "-").replace("+", "_")
        return Path(self.table) / f"{name}.json"

    @property
    def _method(self) -> str:
        return f"{self.method}@{self.variant}" if self.variant else self.method


@dataclass(frozen=True, kw_only=True)
class Result:
    """One cell with one seed, measured."""

    table: str
    task: str
    method: str
    variant: str | None
    preset: str
    steps: int  # asked for, of all environments together, those of random play included
    seed: int
    config: dict[str, Any]  # of the run, as Run.to_dict has it
    code: str  # the release, and a fingerprint of its sources
    command: str  # what measures the same again
    # Training, at most CURVE_POINTS long: "steps" and what was measured up to there.
    curve: list[dict[str, float]]
    # On the test levels: reward, coverage and length, each as a Summary's fields
    # (num_values, mean, deviation, low, high); of an R-network its accuracy.
    metrics: dict[str, dict[str, float | None]]
    action_shares: dict[str, float]  # of the test's steps; none of continuous actions

    @property
    def episodes(self) -> int | None:
        """Of the test; None where none were played: of an R-network alone, or of speed."""
        length = self.metrics.get("length")
        return None if length is None else int(length["num_values"] or 0)

    @property
    def key(self) -> Key:
        return Key(*(getattr(self, name) for name in Key._fields))

    def to_bytes(self) -> bytes:
        """A JSON file, a line for each point of the curve."""
        content = {name: value for name, value in vars(self).items() if name != "curve"}
        packed = saving.header_bytes(KIND, **content, sha256=saving.fingerprint(vars(self)))
        points = ",\n".join(f"    {json.dumps(point, allow_nan=False)}" for point in self.curve)
        curve = f"[\n{points}\n  ]" if points else "[]"
        return packed.rstrip(b"}\n") + f',\n  "curve": {curve}\n}}\n'.encode()

    @classmethod
    def read(cls, path: Path) -> Self:
        """What `to_bytes` wrote; raises a LoadError where the file is anything else."""
        header = read_header(path, KIND)
        names = [field.name for field in dataclasses.fields(cls)]
        if missing := [name for name in names if name not in header]:
            raise LoadError(f"{path} lacks {', '.join(missing)}")
        content = {name: header[name] for name in names}
        if reason := _misfit(content):
            raise LoadError(f"{path} holds no result: {reason}")
        if saving.fingerprint(content) != header.get("sha256"):
            raise LoadError(f"{path} was changed after it was written (fingerprints differ)")
        return cls(**content)


class Problem(NamedTuple):
    """A file that was not counted, and why, in a sentence."""

    path: Path
    reason: str


class Loaded(NamedTuple):
    """What a folder of results holds."""

    results: list[Result]  # in the order of their files' names
    problems: list[Problem]  # what does not count, what was set aside before included


def load_results(folder: Path) -> Loaded:
    """Reads every result in a folder; reports what is none, and touches nothing."""
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
    """The result in a file of that name; raises a LoadError where it holds anything else."""
    result = Result.read(path)
    if result.key.path.parts != path.parts[-2:]:
        raise LoadError(f"{path} holds {_another(result)}")
    return result


def set_aside(path: Path) -> Path:
    """Renames a damaged file, for another to take its place; only for who has its cell."""
    aside = path.with_name(path.name + DAMAGED)
    os.replace(path, aside)
    return aside


def read_timing(folder: Path, key: Key) -> dict[str, Any] | None:
    """Seconds, steps a second and hardware of a cell; None where nobody wrote them down.

    Steps a second are those of a usual update (the median) and those of the whole training.
    """
    path = _timing_path(folder / key.path)
    return _read_timing(path, key.steps) if path.exists() else None


def load_timings(folder: Path) -> list[tuple[Result, dict[str, Any]]]:
    """Each result in a folder that can be read, with its timing; touches nothing."""
    timings = []
    for path in sorted(folder.glob(f"*/*{TIMING}")):
        with contextlib.suppress(LoadError):
            timings.append(read_measured(path.with_name(path.name.replace(TIMING, ".json"))))
    return timings


def read_measured(path: Path) -> tuple[Result, dict[str, Any]]:
    """What `write_measured` wrote; raises a LoadError where that is not all there."""
    result = Result.read(path)
    return result, _read_timing(_timing_path(path), result.steps)


def write_measured(path: Path, result: Result, timing: dict[str, Any]) -> None:
    """Puts both files in their place; the result, which counts, appears last and whole."""
    path.parent.mkdir(parents=True, exist_ok=True)
    packed = saving.header_bytes("timing", timing)
    write_atomically({_timing_path(path): packed, path: result.to_bytes()})


def remove_measured(path: Path) -> None:
    """Removes both files, the result first: it does not count without the other."""
    path.unlink(missing_ok=True)
    _timing_path(path).unlink(missing_ok=True)


def _timing_path(path: Path) -> Path:
    return path.with_name(path.stem + TIMING)


def _read_timing(path: Path, steps: int) -> dict[str, Any]:
    timing: dict[str, Any] = {"seconds": None} | read_header(path, "timing")["config"]
    for name in timing.keys() & {"seconds", RATE, RATE_IN_ALL}:
        if not _is_positive(timing[name]):
            raise LoadError(f"{path} says {name}: {timing[name]}, wanted a number above 0")
    if RATE in timing:  # the first files did not have the other
        timing = {RATE_IN_ALL: round(steps / timing["seconds"], 1)} | timing
    return timing


def _is_positive(value: object) -> bool:
    return type(value) in (int, float) and 0 < cast(float, value) < math.inf


def _why(path: Path) -> str:
    """Why a file was once set aside."""
    try:
        return f"{path} holds {_another(Result.read(path))}"
    except LoadError as error:
        return str(error)


def _another(result: Result) -> str:
    return f"another cell than its name says: {result.key.path}"


def _misfit(content: Mapping[str, Any]) -> str | None:
    """Says which field of a result cannot be what it should; None where all can."""
    texts = ("table", "task", "method", "preset", "code", "command")
    is_right = {name: _is_text(content[name]) for name in texts}
    is_right["variant"] = content["variant"] is None or _is_text(content["variant"])
    is_right |= {name: _is_count(content[name]) for name in ("steps", "seed")}
    is_right["config"] = isinstance(content["config"], dict)
    is_right["action_shares"] = _has_numbers(content["action_shares"])
    curve, metrics = content["curve"], content["metrics"]
    is_right["curve"] = isinstance(curve, list) and all(map(_has_numbers, curve))
    is_right["metrics"] = isinstance(metrics, dict) and all(map(_has_numbers, metrics.values()))
    wrong = next((name for name in is_right if not is_right[name]), None)
    return None if wrong is None else f"{wrong} is {str(content[wrong])[:40]!r}"


def _is_text(value: object) -> bool:
    # A lone surrogate, which JSON can hold, cannot be written to any page.
    return isinstance(value, str) and not any("\ud800" <= char <= "\udfff" for char in value)


def _is_count(value: object) -> bool:
    return type(value) is int and value >= 0


def _has_numbers(value: object) -> bool:
    """Whether this is a dict of finite numbers, or of None where nothing was measured."""
    return isinstance(value, dict) and all(
        number is None or (type(number) in (int, float) and abs(number) < LARGEST)
        for number in value.values()
    )
