"""One run's folder: config, metrics, timing, TensorBoard files and checkpoints.

config.json     what the run was asked to do; written once
metrics.jsonl   a line for each `write`; a resumed run ends with the same bytes as one that
                was never interrupted
timing.jsonl    a line for each line of metrics.jsonl, with what no two runs share: time
tensorboard/    both, for TensorBoard, where that is installed
checkpoints/    the newest two
"""

import contextlib
import fcntl
import json
import math
import os
import shutil
import sys
import time
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self

from episodic_curiosity.runs.checkpoints import Checkpoints, State
from episodic_curiosity.support import saving
from episodic_curiosity.support.checks import check_at_least
from episodic_curiosity.support.saving import LoadError

CONFIG, METRICS, TIMING = "config.json", "metrics.jsonl", "timing.jsonl"
TENSORBOARD, CHECKPOINTS, LOCK = "tensorboard", "checkpoints", ".lock"
KIND = "run"
# What a run leaves for others; where no run is, somebody else has saved it.
SAVED = ("agent.json", "agent.safetensors", "r_network.json", "r_network.safetensors")
ABSENT = object()


class RunFolderError(ValueError):
    """A folder that this run cannot be written to; the message says why, in one sentence."""


class Record:
    """Writes one run's folder, alone: a second process that tries is refused.

    With `resume` it goes back to the newest checkpoint, or to the beginning where there is
    none yet; what was written after that is cut off. `may_differ` names the fields of the
    config, as dotted paths, that need not be those the run was begun with. A new run that an
    error ends before its first checkpoint is forgotten, with a folder that holds nothing else.
    """

    def __init__(
        self,
        folder: Path,
        config: dict[str, Any],
        *,
        resume: bool = False,
        may_differ: Collection[str] = (),
    ) -> None:
        self.folder = folder
        self.last_checkpoint: Path | None = None
        self._checkpoints = Checkpoints(folder / CHECKPOINTS)
        self._state: State | None = None
        self._num_lines, self._steps, self._seconds = 0, -1, 0.0
        _check_free(folder)
        with contextlib.ExitStack() as stack:
            stack.enter_context(_lock(folder))
            if self._claim(config, resume, may_differ):
                stack.push(self._forget)
            if resume:
                self._go_back()
            self._metrics = stack.enter_context(open(folder / METRICS, "ab"))
            self._timing = stack.enter_context(open(folder / TIMING, "ab"))
            self._tensorboard = _tensorboard(
                folder / TENSORBOARD, self._steps + 1 if resume else None
            )
            if self._tensorboard is not None:
                stack.callback(self._tensorboard.close)
            self._open = stack.pop_all()
        self._last_time = time.monotonic()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._open.__exit__(kind, error, traceback)

    def close(self) -> None:
        """Finishes the files and lets others have the folder."""
        self._open.close()

    @property
    def steps(self) -> int:
        """Those of the newest line, 0 before there is any."""
        return max(self._steps, 0)

    def resume(self) -> State | None:
        """The state to go on from, once; None where the run begins at its beginning."""
        state, self._state = self._state, None
        return state

    def write(self, steps: int, metrics: Mapping[str, float]) -> None:
        """Adds what was measured after so many steps; NaN and infinity are written as null."""
        check_at_least("steps", steps, self._steps + 1)
        line = {"steps": steps} | _as_json(metrics)
        self._write_timing(steps)
        _append(self._metrics, line)
        self._num_lines, self._steps = self._num_lines + 1, steps
        if self._tensorboard is not None:
            for name, value in metrics.items():
                self._tensorboard.add_scalar(name, value, steps)

    def checkpoint(self, number: int, state: State) -> None:
        """Saves what the run needs to go on from here; the numbers have to grow."""
        for file in (self._metrics, self._timing):
            os.fsync(file.fileno())
        if self._tensorboard is not None:
            self._tensorboard.flush()
        content = {"lines": self._num_lines, "steps": self._steps, "state": state}
        self.last_checkpoint = self._checkpoints.save(content, number)

    def _claim(self, config: dict[str, Any], resume: bool, may_differ: Collection[str]) -> bool:
        """Writes the config, or makes sure that the run in this folder has the same one.

        Returns whether the run is new.
        """
        from episodic_curiosity.support.version import __version__

        content = saving.header_bytes(KIND, config, code=__version__)
        if not _holds_run(self.folder):
            saving.write_atomically({self.folder / CONFIG: content})
            return True
        if not resume:
            raise RunFolderError(
                f"{self.folder} already holds a run: "
                f"go on with it (--resume) or choose another folder (--out)"
            )
        # The new config goes through JSON, too, which turns tuples into lists.
        new = json.loads(content)["config"]
        changed = [
            f"{name} was {shown(was)}, now {shown(now)}"
            for name, was, now in differences(read_config(self.folder), new, may_differ)
        ]
        if changed:
            more = f" (and {len(changed) - 3} more)" if len(changed) > 3 else ""
            raise RunFolderError(
                f"{self.folder} holds a run with another config: {'; '.join(changed[:3])}{more}"
            )
        return False

    def _forget(
        self,
        kind: type[BaseException] | None,  # noqa: ARG002
        error: BaseException | None,
        traceback: TracebackType | None,  # noqa: ARG002
    ) -> None:
        """Removes what was written where an error leaves nothing to go on from."""
        if self.last_checkpoint is None and isinstance(error, Exception):
            for name in (CONFIG, METRICS, TIMING):
                (self.folder / name).unlink(missing_ok=True)
            for name in (TENSORBOARD, CHECKPOINTS):
                shutil.rmtree(self.folder / name, ignore_errors=True)
            if os.listdir(self.folder) == [LOCK]:
                (self.folder / LOCK).unlink()
                with contextlib.suppress(OSError):  # somebody else has just come
                    self.folder.rmdir()

    def _go_back(self) -> None:
        if newest := self._checkpoints.load_newest():
            number, content = newest
            self.last_checkpoint = self._checkpoints.path(number)
            self._num_lines, self._steps = content["lines"], content["steps"]
            self._state = content["state"]
        for name in (METRICS, TIMING):
            _keep_lines(self.folder / name, self._num_lines)
        if self._num_lines:
            self._seconds = read_timing(self.folder)[-1]["seconds"]

    def _write_timing(self, steps: int) -> None:
        now = time.monotonic()
        passed, self._last_time = now - self._last_time, now
        self._seconds += passed
        rate = (steps - self.steps) / max(passed, 1e-9)
        timing = {"seconds": round(self._seconds, 3), "steps_per_second": round(rate, 1)}
        _append(self._timing, {"steps": steps} | timing)
        if self._tensorboard is not None:
            self._tensorboard.add_scalar("steps_per_second", rate, steps)


def read_config(folder: Path) -> dict[str, Any]:
    """What the run in this folder was asked to do."""
    config: dict[str, Any] = saving.read_header(folder / CONFIG, KIND)["config"]
    return config


def read_metrics(folder: Path) -> list[dict[str, float]]:
    """One dict for each line that was written, `steps` among its names; null is NaN.

    A last line without its end is left out: a run is writing it, or was killed over it.
    """
    return _read_lines(folder / METRICS)


def read_timing(folder: Path) -> list[dict[str, float]]:
    """As `read_metrics`: `steps`, `seconds` (of all sittings) and `steps_per_second`."""
    return _read_lines(folder / TIMING)


@contextlib.contextmanager
def folder_for_work(folder: Path) -> Iterator[None]:
    """Makes it, before the work that it is for; unmakes it where that leaves nothing in it."""
    was_there = folder.exists()
    _make_folder(folder)
    try:
        yield
    except BaseException:
        if not was_there:
            with contextlib.suppress(OSError):  # it holds something
                folder.rmdir()
        raise


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        raise RunFolderError(f"{folder} is a file; name a folder") from None
    except OSError as error:
        raise RunFolderError(f"{folder} cannot be written to ({error.strerror})") from None


def _holds_run(folder: Path) -> bool:
    return any((folder / name).exists() for name in (CONFIG, METRICS, CHECKPOINTS))


def _check_free(folder: Path) -> None:
    """Raises where a run might replace what somebody has saved there."""
    saved = [name for name in SAVED if (folder / name).exists()]
    if saved and not _holds_run(folder):
        raise RunFolderError(
            f"{folder} already holds {saved[0]}, which is of no run there: "
            f"choose another folder (--out)"
        )


@contextlib.contextmanager
def _lock(folder: Path) -> Iterator[None]:
    """Makes the folder and holds it; the kernel lets go when the process dies, however."""
    _make_folder(folder)
    try:
        file = open(folder / LOCK, "ab")  # noqa: SIM115 (closed below)
    except OSError as error:
        raise RunFolderError(f"{folder} cannot be written to ({error.strerror})") from None
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise RunFolderError(f"{folder} is being written to by another process") from None
        yield


def _tensorboard(folder: Path, purge_step: int | None) -> Any:
    """TensorBoard's writer, or None; hides what an interrupted run showed from that step on."""
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError as error:
        print(f"going on without files for TensorBoard ({error})", file=sys.stderr)
        return None
    return SummaryWriter(str(folder), purge_step=purge_step)


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


def _append(file: BinaryIO, line: dict[str, Any]) -> None:
    file.write(json.dumps(line, allow_nan=False).encode() + b"\n")
    file.flush()


def _read_lines(path: Path) -> list[dict[str, float]]:
    lines = []
    for number, line in enumerate(_whole_lines(path), start=1):
        try:
            values = json.loads(line)
        except ValueError:
            values = None
        if not isinstance(values, dict) or "steps" not in values:
            raise LoadError(f"{path} is damaged in line {number}")
        lines.append(
            {name: math.nan if value is None else value for name, value in values.items()}
        )
    return lines


def _whole_lines(path: Path) -> list[bytes]:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise LoadError(f"{path} cannot be read ({error.strerror})") from None
    return content[: content.rfind(b"\n") + 1].splitlines(keepends=True)


def _keep_lines(path: Path, num_lines: int) -> None:
    """Cuts off what was written after a checkpoint."""
    if num_lines == 0:
        path.write_bytes(b"")
        return
    lines = _whole_lines(path)
    if len(lines) < num_lines:
        raise LoadError(
            f"{path} has {len(lines)} lines, but had {num_lines} at the newest checkpoint"
        )
    os.truncate(path, sum(len(line) for line in lines[:num_lines]))


def differences(
    was: Any, now: Any, may_differ: Collection[str] = (), name: str = ""
) -> Iterator[tuple[str, Any, Any]]:
    """The dotted path of each value that differs and may not, with both values."""
    if name in may_differ:
        return
    if isinstance(was, dict) and isinstance(now, dict):
        for key in was | now:
            path = f"{name}.{key}" if name else key
            yield from differences(was.get(key, ABSENT), now.get(key, ABSENT), may_differ, path)
    elif was != now:
        yield name, was, now


def shown(value: Any) -> str:
    """A value of a config, as a message names it."""
    return "absent" if value is ABSENT else json.dumps(value)
