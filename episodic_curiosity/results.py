"""Measured cells as files, small enough to be committed.

results/<table>/<task>__<method>__<preset>__<steps>__s<seed>.json      what was measured
results/<table>/<task>__<method>__<preset>__<steps>__s<seed>.timing.json   how long it took

A variant of a method is written <method>@<variant>. What no two runs share, time, has a file of
its own: a cell that was killed and begun again leaves the same bytes in the other. A file that
cannot be trusted is never counted: it is reported and renamed to <file>.damaged.
"""

import contextlib
import dataclasses
import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Self

from episodic_curiosity import saving
from episodic_curiosity.saving import LoadError, read_header, write_atomically

KIND = "result"
TIMING, DAMAGED = ".timing.json", ".damaged"


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
    def key(self) -> Key:
        return Key(*(getattr(self, name) for name in Key._fields))

    def to_bytes(self) -> bytes:
        """A JSON file, a line for each point of the curve."""
        content = {name: value for name, value in vars(self).items() if name != "curve"}
        packed = saving.header_bytes(KIND, **content, sha256=_fingerprint(vars(self)))
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
        if _fingerprint(content) != header.get("sha256"):
            raise LoadError(f"{path} was changed after it was written (fingerprints differ)")
        return cls(**content)


class Damage(NamedTuple):
    """A file that was not counted, and why, in a sentence."""

    path: Path  # where it lies now
    reason: str


class Loaded(NamedTuple):
    """What a folder of results holds."""

    results: list[Result]  # in the order of their files' names
    damaged: list[Damage]  # set aside now or before


def load_results(folder: Path) -> Loaded:
    """Reads every result in a folder; sets aside what is damaged."""
    if not folder.is_dir():
        raise LoadError(f"{folder} is no folder of results")
    paths = [path for path in folder.glob("*/*.json") if not path.name.endswith(TIMING)]
    found = [read_or_set_aside(path) for path in sorted(paths)]
    aside = sorted(folder.glob(f"*/*.json{DAMAGED}"))
    return Loaded(
        results=[result for result in found if isinstance(result, Result)],
        damaged=[Damage(path, _why(path)) for path in aside],
    )


def read_or_set_aside(path: Path) -> Result | Damage | None:
    """The result in a file, why it was set aside, or None where there is no file."""
    if not path.exists():
        return None
    try:
        result = Result.read(path)
        if result.key.path.parts != path.parts[-2:]:
            raise LoadError(f"{path} holds {_another(result)}")
        return result
    except LoadError as error:
        aside = path.with_name(path.name + DAMAGED)
        with contextlib.suppress(FileNotFoundError):  # another process was faster
            os.replace(path, aside)
        return Damage(aside, str(error))


def read_timing(folder: Path, key: Key) -> dict[str, Any] | None:
    """Seconds, steps a second and hardware of a cell; None where nobody wrote them down."""
    path = _timing_path(folder / key.path)
    return _read_timing(path) if path.exists() else None


def load_timings(folder: Path) -> list[tuple[Key, dict[str, Any]]]:
    """The timing of each result in a folder that can be read; touches nothing."""
    timings = []
    for path in sorted(folder.glob(f"*/*{TIMING}")):
        with contextlib.suppress(LoadError):
            result, timing = read_measured(path.with_name(path.name.replace(TIMING, ".json")))
            timings.append((result.key, timing))
    return timings


def read_measured(path: Path) -> tuple[Result, dict[str, Any]]:
    """What `write_measured` wrote; raises a LoadError where that is not all there."""
    return Result.read(path), _read_timing(_timing_path(path))


def write_measured(path: Path, result: Result, timing: dict[str, Any]) -> None:
    """Puts both files in their place; the result, which counts, appears last and whole."""
    path.parent.mkdir(parents=True, exist_ok=True)
    packed = saving.header_bytes("timing", timing)
    write_atomically({_timing_path(path): packed, path: result.to_bytes()})


def _timing_path(path: Path) -> Path:
    return path.with_name(path.stem + TIMING)


def _read_timing(path: Path) -> dict[str, Any]:
    timing: dict[str, Any] = read_header(path, "timing")["config"]
    return timing


def _why(path: Path) -> str:
    """Why a file was once set aside."""
    try:
        return f"{path} holds {_another(Result.read(path))}"
    except LoadError as error:
        return str(error)


def _another(result: Result) -> str:
    return f"another cell than its name says: {result.key.path}"


def _fingerprint(content: Mapping[str, Any]) -> str:
    packed = json.dumps(content, sort_keys=True, allow_nan=False)
    return hashlib.sha256(packed.encode()).hexdigest()
