"""Compiles the mazes' rules for a GPU in a second process, while the first is busy elsewhere.

Nothing takes the compiler longer than the rules, and a run needs them last, after its levels
and its first pictures. The second process compiles them meanwhile, with a few levels, and what
comes of it waits in the compiler's cache on disk, where the first process finds it. Only a
first start gains by it; the mark it leaves beside the cache tells others not to try.
"""

import ast
import hashlib
import logging
import subprocess
import sys
import tempfile
import weakref
from collections.abc import Mapping
from os import environ, pathsep
from pathlib import Path
from typing import Any

import torch

from episodic_curiosity import __version__
from episodic_curiosity.cores import num_cores
from episodic_curiosity.worlds.maze.advance import compile_advance, keep
from episodic_curiosity.worlds.maze.levels import find_pool, make_levels
from episodic_curiosity.worlds.maze.rules import Rules
from episodic_curiosity.worlds.maze.state import blank_state
from episodic_curiosity.worlds.maze.tasks import MazeTask, change_task, find_task

ENOUGH_CORES = 4  # two processes that compile, and the compiler's own helpers
MOST_LEVELS = 32
PATIENCE = 120.0  # seconds
PROGRAM = f"import sys; from {__name__} import main; main(*sys.argv[1:])"

logger = logging.getLogger(__name__)


class Helper:
    """The second process, until somebody has waited for it."""

    def __init__(self, mark: Path, *arguments: object) -> None:
        """The arguments are those of `compile_rules`, as literals; then there is a mark."""
        self._said = tempfile.TemporaryFile()  # noqa: SIM115 - for as long as the process
        self._process: subprocess.Popen[bytes] | None = subprocess.Popen(
            [sys.executable, "-P", "-c", PROGRAM, str(mark), repr(arguments)],
            stdin=subprocess.DEVNULL,
            stdout=self._said,
            stderr=self._said,
            env=environ | {"PYTHONPATH": pathsep.join(filter(None, sys.path))},
        )
        weakref.finalize(self, self._process.kill)  # at the end of this process too

    def wait(self) -> None:
        """Returns when the rules are compiled, or can be only here."""
        if self._process is None:
            return
        try:
            status = self._process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            status = self._process.wait()
        self._process = None
        with self._said:
            if status:
                logger.warning(
                    "the process that compiles the mazes' rules ahead ended with status %d, "
                    "saying %r; they are compiled here instead, which takes longer",
                    status,
                    self._last_words(),
                )

    def _last_words(self) -> str:
        self._said.seek(0)
        lines = self._said.read().decode(errors="replace").split("\n")
        return next((line.strip() for line in reversed(lines) if line.strip()), "nothing")


_HELPERS: dict[MazeTask, Helper] = {}  # the worlds of a task share one


def begin(
    name: str,
    changes: Mapping[str, Any],
    *,
    num_envs: int,
    num_levels: int | None,
    device: torch.device,
) -> Helper | None:
    """Starts the second process, unless there is nothing to gain; options as of MazeWorld."""
    task = change_task(find_task(name), changes)
    if task not in _HELPERS and num_cores() >= ENOUGH_CORES and _keeps_what_it_compiles():
        mark = _mark(task, device)
        if not mark.exists():
            few = min(num_levels or MOST_LEVELS, MOST_LEVELS)
            _HELPERS[task] = Helper(mark, name, dict(changes), num_envs, few, str(device))
    return _HELPERS.get(task)


def compile_rules(
    name: str,
    changes: Mapping[str, Any],
    num_envs: int,
    num_levels: int,
    device: str,
    backend: str = "inductor",
) -> None:
    """What the second process does: one step, as a world with more levels will ask for it."""
    task = change_task(find_task(name), changes)
    pool = find_pool(task, layout=None, num_levels=num_levels, level_seed=0, split="train")
    rules = Rules(task, make_levels(task, pool, torch.device(device)), always=True)
    actions = torch.zeros(num_envs, dtype=torch.int64, device=device)
    state = blank_state(actions.clone(), rules.num_sprites)
    keep(state, rules.new_episode(state))
    compile_advance(rules, backend)(state, actions)


def _keeps_what_it_compiles() -> bool:
    import torch._inductor.config as inductor  # slow to import, and only a GPU needs it

    return inductor.fx_graph_cache and not inductor.force_disable_caches


def _mark(task: MazeTask, device: torch.device) -> Path:
    """A file that is there when the rules have been compiled ahead on this machine."""
    from torch._inductor.runtime.cache_dir_utils import cache_dir

    gpu = torch.cuda.get_device_name(device)
    what = repr((__version__, torch.__version__, gpu, task)).encode()
    return Path(cache_dir()) / f"episodic-curiosity-{hashlib.sha256(what).hexdigest()[:16]}"


def main(mark: str, arguments: str) -> None:
    """The second process."""
    compile_rules(*ast.literal_eval(arguments))
    Path(mark).touch()
