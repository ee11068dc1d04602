"""One run's folder: config, metrics, timing, TensorBoard files and checkpoints.

config.json     the resolved run and a fingerprint of it, written once
metrics.jsonl   a line per `write`; a resumed run leaves the same bytes as an uninterrupted one
timing.jsonl    a line per line of metrics.jsonl: its checksum, and the time, which varies
tensorboard/    both, for TensorBoard, where that is installed
checkpoints/    the newest two
"""

import contextlib
import fcntl
import json
import os
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, Self

from episodic_curiosity.runs import metrics_files
from episodic_curiosity.runs.checkpoints import CHECKPOINTS, Checkpoints
from episodic_curiosity.runs.metrics_files import METRICS, TIMING, LinesWriter, read_metrics
from episodic_curiosity.runs.tensorboard_files import TensorBoardFiles
from episodic_curiosity.support import saving
from episodic_curiosity.support.checks import check_at_least
from episodic_curiosity.support.files import append_to_file, check_own, remove_folder
from episodic_curiosity.support.saving import LoadError
from episodic_curiosity.support.state_files import State
from episodic_curiosity.support.version import code_version

CONFIG = "config.json"
TENSORBOARD, LOCK = "tensorboard", ".lock"
KIND = "run"
# Saved by runs, and by users in folders without a run.
SAVED = ("agent.safetensors", "r_network.safetensors", "bonus.safetensors")
ABSENT = object()


class RunFolderError(ValueError):
    """A folder that this run cannot be written to; the message is one sentence."""


class Record:
    """Writes one run's folder; a second process that tries is refused.

    `resume` returns to the newest checkpoint, or to the beginning where there is none yet, and
    drops the lines written after it. A run whose checkpoints were removed is refused.
    `may_differ` names fields of the config, as dotted paths, that may have changed since the
    run began. `accept_changes` resumes a run whose config or metrics were edited, which is an
    error otherwise. `in_full` completes the stored config with fields that were added later.
    A new run that fails before its first checkpoint is removed.
    """

    def __init__(
        self,
        folder: Path,
        config: dict[str, Any],
        *,
        resume: bool = False,
        may_differ: Collection[str] = (),
        accept_changes: bool = False,
        in_full: Callable[[dict[str, Any]], dict[str, Any]] = dict,
    ) -> None:
        self.folder = folder
        self._in_full = in_full
        self.last_checkpoint: Path | None = None
        self._checkpoints = Checkpoints(folder)
        self._state: State | None = None
        self._num_lines, self._steps, self._seconds = 0, -1, 0.0
        _check_free(folder)
        check_own(folder / CHECKPOINTS, folder / TENSORBOARD)
        with contextlib.ExitStack() as stack:
            stack.enter_context(_lock(folder))
            if self._claim(config, resume, may_differ, accept_changes):
                stack.push(self._forget)
            if resume:
                self._go_back(accept_changes)
            self._checkpoints.folder.mkdir(exist_ok=True)  # a missing one means: removed
            self._lines = LinesWriter(folder)
            stack.callback(self._lines.close)
            purge_step = self._steps + 1 if resume else None
            self._tensorboard = TensorBoardFiles(folder / TENSORBOARD, purge_step)
            stack.callback(self._tensorboard.close)
            self._open = stack.pop_all()
        self._last_time = time.monotonic()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: Any) -> None:
        self._open.__exit__(*error)

    def close(self) -> None:
        """Closes the files and releases the folder."""
        self._open.close()

    @property
    def steps(self) -> int:
        """Steps of the newest line, 0 before there is any."""
        return max(self._steps, 0)

    def resume(self) -> State | None:
        """The state to resume from, once; None where the run starts from the beginning."""
        state, self._state = self._state, None
        return state

    def write(self, steps: int, metrics: Mapping[str, float]) -> None:
        """Adds the metrics after a number of steps; NaN and infinity are written as null."""
        check_at_least("steps", steps, self._steps + 1)
        timing = self._timing(steps)
        self._lines.write(steps, metrics, timing)
        self._seconds = timing["seconds"]
        self._num_lines, self._steps = self._num_lines + 1, steps
        rate = {"steps_per_second": timing["steps_per_second"]}
        self._tensorboard.write(steps, {**metrics, **rate})

    def checkpoint(self, number: int, state: State) -> None:
        """Saves everything the run needs to resume; numbers must increase."""
        self._lines.sync()
        self._tensorboard.flush()
        self.last_checkpoint = self._checkpoints.save(
            state, number, self._num_lines, self._steps
        )

    def _claim(
        self,
        config: dict[str, Any],
        resume: bool,
        may_differ: Collection[str],
        accept_changes: bool,
    ) -> bool:
        """Writes the config, or checks it against the stored one; returns whether it is new."""
        if not _holds_run(self.folder):
            write_config(self.folder, config)
            return True
        if not resume:
            raise RunFolderError(
                f"{self.folder} already holds a run: "
                f"resume it (--resume) or choose another folder (--out)"
            )
        new = json.loads(json.dumps(config))  # tuples become lists, as in the stored one
        old = read_config(self.folder, accept_changes=accept_changes)
        another = f"{self.folder} holds a run with another config"
        try:
            stored = self._in_full(old)
        except ValueError as error:  # a field was renamed or removed
            raise RunFolderError(f"{another}: {error}") from None
        found = list(differences(stored, new, may_differ))
        changed = [f"{name} was {shown(was)}, now {shown(now)}" for name, was, now in found]
        if changed:
            more = f" (and {len(changed) - 3} more)" if len(changed) > 3 else ""
            if any(name == "steps" for name, _, _ in found):
                more += "; the length of a run is fixed, because its schedules depend on it"
            raise RunFolderError(f"{another}: {'; '.join(changed[:3])}{more}")
        if accept_changes:
            write_config(self.folder, old)
        return False

    def _forget(self, _: object, error: BaseException | None, *__: object) -> None:
        """Removes the run's files where an error leaves nothing to resume from."""
        if self.last_checkpoint is None and isinstance(error, Exception):
            for name in (CONFIG, METRICS, TIMING):
                (self.folder / name).unlink(missing_ok=True)
            self._checkpoints.remove()
            remove_folder(self.folder / TENSORBOARD, ignore_errors=True)
            if os.listdir(self.folder) == [LOCK]:
                (self.folder / LOCK).unlink()
                with contextlib.suppress(OSError):  # another process has just come
                    self.folder.rmdir()

    def _go_back(self, accept_changes: bool) -> None:
        if newest := self._checkpoints.load_newest():
            number, self._state, self._num_lines, self._steps = newest
            self.last_checkpoint = self._checkpoints.path(number)
        else:
            _check_nothing_lost(self.folder)
        if self._num_lines:
            if accept_changes:
                metrics_files.accept_lines(self.folder, self._num_lines)
            metrics_files.check_lines(self.folder, self._num_lines)
        metrics_files.keep_lines(self.folder, self._num_lines)
        if self._num_lines:
            self._seconds = metrics_files.read_timing(self.folder)[-1]["seconds"]

    def _timing(self, steps: int) -> dict[str, float]:
        now = time.monotonic()
        passed, self._last_time = now - self._last_time, now
        rate = round((steps - self.steps) / max(passed, 1e-9), 1)
        return {"seconds": round(self._seconds + passed, 3), "steps_per_second": rate}


def read_config(folder: Path, *, accept_changes: bool = False) -> dict[str, Any]:
    """The config of the run in this folder; an edited one is refused."""
    if not folder.exists():
        raise LoadError(f"there is no folder {folder}")
    if folder.is_dir() and not os.path.lexists(folder / CONFIG):
        raise LoadError(f"{folder} is no run: it has no {CONFIG}")
    header = saving.read_header(folder / CONFIG, KIND)
    config: dict[str, Any] = header["config"]
    if not accept_changes and header.get("sha256") != saving.fingerprint(config):
        raise LoadError(
            f"{folder / CONFIG} was changed after it was written (fingerprints differ); "
            f"train --resume --accept-changes continues with it"
        )
    return config


def read_sources(folder: Path) -> str | None:
    """The version of the code that the run in this folder was begun with."""
    return saving.read_header(folder / CONFIG, KIND).get("sources")


def is_finished(folder: Path, total_steps: int) -> bool:
    """True if these sources finished a run with all its steps and removed its checkpoints."""
    if (folder / CHECKPOINTS).exists() or not (folder / "agent.safetensors").exists():
        return False
    if read_sources(folder) != code_version():
        return False
    lines = read_metrics(folder)
    return bool(lines) and lines[-1]["steps"] == total_steps


def write_config(folder: Path, config: dict[str, Any], *, sources: str | None = None) -> None:
    """Writes config.json with the fingerprint that `read_config` checks.

    `sources` are those that the run was begun with; None: the present ones.
    """
    config = json.loads(json.dumps(config))  # as it will be read
    fingerprint = saving.fingerprint(config)
    content = saving.header_bytes(
        KIND, config, sha256=fingerprint, sources=sources or code_version()
    )
    saving.write_atomically({folder / CONFIG: content})


def _check_nothing_lost(folder: Path) -> None:
    """Raises where resuming a run without checkpoints would overwrite its results.

    A run that was killed before its first checkpoint has an empty folder for them, at most the
    line of an R-network's fit, and has saved nothing yet.
    """
    saved = [name for name in SAVED if (folder / name).exists()]
    num_lines = metrics_files.count_lines(folder)
    most = 1 if (folder / CHECKPOINTS).exists() else 0
    if saved or num_lines > most:
        there = [f"{num_lines} lines of metrics", *saved]
        raise RunFolderError(
            f"{folder} cannot be resumed: it has no checkpoints, which `curiosity table` "
            f"removes when a run is done, but {', '.join(there)}; remove it or choose another "
            f"folder (--out)"
        )


@contextlib.contextmanager
def folder_for_work(folder: Path) -> Iterator[None]:
    """Makes a folder for the work in the block; removes it where that fails with it empty."""
    was_there = folder.exists()
    _make_folder(folder)
    try:
        yield
    except BaseException:
        if not was_there:
            with contextlib.suppress(OSError):  # it is not empty
                folder.rmdir()
        raise


def _make_folder(folder: Path) -> None:
    with _writing_to(folder):
        folder.mkdir(parents=True, exist_ok=True)


@contextlib.contextmanager
def _writing_to(folder: Path) -> Iterator[None]:
    try:
        yield
    except FileExistsError:
        raise RunFolderError(f"{folder} is a file; name a folder") from None
    except OSError as error:
        raise RunFolderError(f"{folder} cannot be written to ({error.strerror})") from None


def _holds_run(folder: Path) -> bool:
    return any((folder / name).exists() for name in (CONFIG, METRICS, CHECKPOINTS))


def _check_free(folder: Path) -> None:
    """Raises where a run might overwrite an agent or R-network saved by the user."""
    saved = [name for name in SAVED if (folder / name).exists()]
    if saved and not _holds_run(folder):
        raise RunFolderError(
            f"{folder} already holds {saved[0]}, which belongs to no run: "
            f"choose another folder (--out)"
        )


@contextlib.contextmanager
def _lock(folder: Path) -> Iterator[None]:
    """Makes the folder and locks it; the kernel releases the lock when the process dies."""
    _make_folder(folder)
    with _writing_to(folder):
        file = append_to_file(folder / LOCK)
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise RunFolderError(f"{folder} is being written to by another process") from None
        yield


def differences(
    was: Any, now: Any, may_differ: Collection[str] = (), name: str = ""
) -> Iterator[tuple[str, Any, Any]]:
    """The dotted path of each value that differs, except `may_differ`, with both values."""
    if name in may_differ:
        return
    if isinstance(was, dict) and isinstance(now, dict):
        for key in was | now:
            path = f"{name}.{key}" if name else key
            yield from differences(was.get(key, ABSENT), now.get(key, ABSENT), may_differ, path)
    elif was != now:
        yield name, was, now


def shown(value: Any) -> str:
    """A value of a config for a message."""
    return "absent" if value is ABSENT else json.dumps(value)
