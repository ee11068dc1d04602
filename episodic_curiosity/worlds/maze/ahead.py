"""Compiles the GPU functions of mazes in other processes, to shorten the first start.

A process compiles one function at a time. The rules take longest and are needed last; the last
rendering pass comes second. Each gets a helper process, which compiles it for a few levels and
leaves the result in the compiler's cache on disk, where the main process finds it. A mark file
next to the cache tells later runs that there is nothing left to compile.
"""

import ast
import hashlib
import logging
import subprocess
import sys
import tempfile
import weakref
from collections.abc import Mapping
from os import environ, getcwd, pathsep
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

import torch

from episodic_curiosity.support.machine import num_cores
from episodic_curiosity.support.version import __version__
from episodic_curiosity.worlds.maze.levels.layouts import MazeLayout
from episodic_curiosity.worlds.maze.tasks import TASKS, change_task

CORES_EACH = 4  # per helper: the compiler itself runs several processes
MOST_LEVELS = 32
PATIENCE = 120.0  # seconds
PROGRAM = f"import sys; from {__name__}_work import main; main(*sys.argv[1:])"

logger = logging.getLogger(__name__)


class Helper:
    """A process that compiles ahead, until `wait` has collected it."""

    def __init__(self, mark: Path, what: str, *arguments: object) -> None:
        """Starts ahead_work.WORK[what] with literal arguments; it creates `mark` when done."""
        self._what = what
        self._lock = Lock()
        self._said = tempfile.TemporaryFile()  # noqa: SIM115 - open as long as the process runs
        try:
            self._process: subprocess.Popen[bytes] | None = subprocess.Popen(
                [sys.executable, "-P", "-c", PROGRAM, str(mark), what, repr(arguments)],
                stdin=subprocess.DEVNULL,
                stdout=self._said,
                stderr=self._said,
                start_new_session=True,  # Ctrl-C reaches this process, which ends that one
                env=environ | {"PYTHONPATH": pathsep.join(_import_path())},
            )
        except OSError:
            self._said.close()
            raise
        weakref.finalize(self, self._process.kill)  # also when this process exits

    @property
    def is_at_work(self) -> bool:
        process = self._process  # another thread may set it to None
        return process is not None and process.poll() is None

    def wait(self) -> None:
        """Waits for the process to end, at most PATIENCE; warns if it failed."""
        with self._lock:
            if self._process is None:
                return
            try:
                status = self._process.wait(PATIENCE)
                end = f"ended with status {status}"
            except subprocess.TimeoutExpired:
                self._process.kill()
                status = self._process.wait()
                end = f"was stopped after {PATIENCE:g} s"
            self._process = None
            with self._said:
                if status:
                    _warn(self._what, f"{end}, saying {self._last_words()!r}")

    def _last_words(self) -> str:
        self._said.seek(0)
        lines = self._said.read().decode(errors="replace").split("\n")
        return next((line.strip() for line in reversed(lines) if line.strip()), "nothing")


class Ahead(NamedTuple):
    """The helpers of a task's worlds."""

    rules: Helper | None
    pictures: Helper | None

    def wait_for_rules(self) -> None:
        if self.rules is not None:
            self.rules.wait()

    def wait_for_pictures(self) -> None:
        if self.pictures is not None:
            self.pictures.wait()


class _Begun(NamedTuple):
    num_envs: int  # that it compiles for
    helper: Helper | None  # None: not needed, or could not be started


_BEGUN: dict[tuple[object, ...], _Begun] = {}  # by the key in begin_ahead


def begin_ahead(
    name: str,
    changes: Mapping[str, Any],
    size: tuple[int, int],
    *,
    num_envs: int,
    num_levels: int | None,
    device: torch.device,
) -> Ahead:
    """Starts the useful helpers; options as in MazeWorld, `size` is observation_size."""
    few = min(num_levels or MOST_LEVELS, MOST_LEVELS)
    arguments = (name, dict(changes), num_envs, few, str(device))
    if not _will_be_found() or not _are_literals(arguments):
        return Ahead(None, None)
    task = change_task(TASKS[name], changes)
    layout = task.layout
    grid = (layout.height, layout.width) if isinstance(layout, MazeLayout) else layout

    def helper(what: str, graph: tuple[object, ...], *more: object) -> Helper | None:
        key = (what, device, *graph, few == 1)  # torch specialises on a single level
        if key not in _BEGUN:
            mark = _mark(device, num_envs, *key)
            is_needed = _has_cores() and not mark.exists()
            started = _start(mark, what, *arguments, *more) if is_needed else None
            _BEGUN[key] = _Begun(num_envs, started)
        begun = _BEGUN[key]
        return begun.helper if num_envs <= begun.num_envs else None

    return Ahead(
        rules=helper("rules", (task,)),
        pictures=helper("pictures", (task.theme, grid, size), size),
    )


def _start(mark: Path, what: str, *arguments: object) -> Helper | None:
    try:
        return Helper(mark, what, *arguments)
    except OSError as error:
        _warn(what, f"could not be started: {error}")
        return None


def _warn(what: str, why: str) -> None:
    logger.warning(
        "the process that compiles the mazes' %s ahead %s; they are compiled here instead, "
        "which is slower",
        what,
        why,
    )


def _has_cores() -> bool:
    helpers = [begun.helper for begun in _BEGUN.values()]
    at_work = sum(helper is not None and helper.is_at_work for helper in helpers)
    return (at_work + 1) * CORES_EACH <= num_cores()


def _will_be_found() -> bool:
    """True if the compiler's disk cache is on and no setting makes this process miss it."""
    import torch._inductor.config as inductor  # slow to import; only needed on a GPU

    return (
        inductor.fx_graph_cache
        and not inductor.force_disable_caches
        and torch.get_float32_matmul_precision() == "highest"
        and torch.get_default_dtype() == torch.float32
        and not torch.are_deterministic_algorithms_enabled()
    )


def _are_literals(arguments: tuple[object, ...]) -> bool:
    try:
        return bool(ast.literal_eval(repr(arguments)) == arguments)
    except (ValueError, SyntaxError):
        return False


def _import_path() -> list[str]:
    """The import path of this process, with empty entries as the current folder."""
    return [folder or getcwd() for folder in sys.path if isinstance(folder, str)]


def _mark(device: torch.device, *what: object) -> Path:
    """The file that exists once `what` has been compiled ahead on this machine."""
    from torch._inductor.runtime.cache_dir_utils import cache_dir

    gpu = torch.cuda.get_device_name(device)
    everything = repr((__version__, torch.__version__, gpu, *what)).encode()
    digest = hashlib.sha256(everything).hexdigest()[:16]
    return Path(cache_dir()) / f"episodic-curiosity-{digest}"
