"""Compiles what mazes need on a GPU in other processes, while their own is busy elsewhere.

A process compiles one thing after the other. Of a maze the rules take longest and are needed
last; before them it is the second half of a picture. So one more process for each begins at
once, with a few levels; what it compiles waits in the compiler's cache on disk, where the first
finds it. Only a first start gains by it; the marks beside the cache tell others not to try.
"""

import ast
import hashlib
import logging
import subprocess
import sys
import tempfile
import weakref
from collections.abc import Callable, Mapping
from os import environ, pathsep
from pathlib import Path
from typing import Any, NamedTuple

import torch

from episodic_curiosity import __version__
from episodic_curiosity.cores import num_cores
from episodic_curiosity.worlds.maze import render_torch, walk_torch
from episodic_curiosity.worlds.maze.advance import compile_advance, keep
from episodic_curiosity.worlds.maze.level_map import make_level_map
from episodic_curiosity.worlds.maze.levels import find_pool, make_levels
from episodic_curiosity.worlds.maze.render import compiled_parts
from episodic_curiosity.worlds.maze.rules import Rules
from episodic_curiosity.worlds.maze.state import MazeState, blank_state, scene_of
from episodic_curiosity.worlds.maze.tasks import change_task, find_task
from episodic_curiosity.worlds.maze.textures import textures

ENOUGH_CORES = 8  # for three processes, and the compiler's own helpers
MOST_LEVELS = 32
PATIENCE = 120.0  # seconds
PROGRAM = f"import sys; from {__name__} import main; main(*sys.argv[1:])"

logger = logging.getLogger(__name__)


class Helper:
    """Another process, until somebody has waited for it."""

    def __init__(self, mark: Path, what: str, *arguments: object) -> None:
        """`what` of WORK to do with which literals; once it is done there is a mark."""
        self._what = what
        self._said = tempfile.TemporaryFile()  # noqa: SIM115 - for as long as the process
        self._process: subprocess.Popen[bytes] | None = subprocess.Popen(
            [sys.executable, "-P", "-c", PROGRAM, str(mark), what, repr(arguments)],
            stdin=subprocess.DEVNULL,
            stdout=self._said,
            stderr=self._said,
            env=environ | {"PYTHONPATH": pathsep.join(filter(None, sys.path))},
        )
        weakref.finalize(self, self._process.kill)  # at the end of this process too

    def wait(self) -> None:
        """Returns when it is done, or can be done only here."""
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
                logger.warning(
                    "the process that compiles the mazes' %s ahead %s, saying %r; they are "
                    "compiled here instead, which takes longer",
                    self._what,
                    end,
                    self._last_words(),
                )

    def _last_words(self) -> str:
        self._said.seek(0)
        lines = self._said.read().decode(errors="replace").split("\n")
        return next((line.strip() for line in reversed(lines) if line.strip()), "nothing")


class Ahead(NamedTuple):
    """What is compiled ahead for the worlds of a task."""

    rules: Helper | None
    pictures: Helper | None


# The worlds of a task share what its first one began; None: there was nothing to gain.
_BEGUN: dict[tuple[object, ...], Helper | None] = {}


def begin_ahead(
    name: str,
    changes: Mapping[str, Any],
    size: tuple[int, int],
    *,
    num_envs: int,
    num_levels: int | None,
    device: torch.device,
) -> Ahead:
    """Starts what there is to gain by; options as of MazeWorld, `size` of its observations."""
    if num_cores() < ENOUGH_CORES or not _keeps_what_it_compiles():
        return Ahead(None, None)
    few = min(num_levels or MOST_LEVELS, MOST_LEVELS)
    arguments = (name, dict(changes), num_envs, few, str(device))
    task = change_task(find_task(name), changes)

    def helper(what: str, *more: object) -> Helper | None:
        key = (what, task, *more)
        if key not in _BEGUN:
            mark = _mark(device, num_envs, *key)
            none = mark.exists()
            _BEGUN[key] = None if none else Helper(mark, what, *arguments, *more)
        return _BEGUN[key]

    return Ahead(helper("rules"), helper("pictures", size))


def compile_rules(
    name: str,
    changes: Mapping[str, Any],
    num_envs: int,
    num_levels: int,
    device: str,
    backend: str = "inductor",
) -> None:
    """One step, as a world with more levels will ask for it."""
    rules, state = _few_levels(name, changes, num_envs, num_levels, device)
    actions = torch.zeros(num_envs, dtype=torch.int64, device=device)
    compile_advance(rules, num_envs, backend)(state, actions)


def compile_pictures(
    name: str,
    changes: Mapping[str, Any],
    num_envs: int,
    num_levels: int,
    device: str,
    size: tuple[int, int],
    backend: str = "inductor",
) -> None:
    """The last part of pictures; those before it are drawn with, but not compiled."""
    rules, state = _few_levels(name, changes, num_envs, num_levels, device)
    theme, stage = rules.task.theme, rules.levels.stage
    level_map = make_level_map(theme, stage)
    shape = (*level_map.code.shape[1:], *size)
    parts = compiled_parts(theme, level_map.has_slabs, shape, backend)._replace(
        begin=render_torch.begin,
        walk_on=walk_torch.walk_on,
        find_columns=render_torch.find_columns,
    )
    camera = walk_torch.make_camera(*size, torch.device(device))
    pictures = textures().to(torch.device(device))
    render_torch.render(theme, level_map, pictures, camera, scene_of(state), parts=parts)


WORK: dict[str, Callable[..., None]] = {"rules": compile_rules, "pictures": compile_pictures}


def _few_levels(
    name: str, changes: Mapping[str, Any], num_envs: int, num_levels: int, device: str
) -> tuple[Rules, MazeState]:
    """Rules, and a state in which episodes have begun."""
    task = change_task(find_task(name), changes)
    pool = find_pool(task, layout=None, num_levels=num_levels, level_seed=0, split="train")
    rules = Rules(task, make_levels(task, pool, torch.device(device)), always=True)
    key = torch.zeros(num_envs, dtype=torch.int64, device=device)
    state = blank_state(key, rules.num_sprites)
    keep(state, rules.new_episode(state))
    return rules, state


def _keeps_what_it_compiles() -> bool:
    import torch._inductor.config as inductor  # slow to import, and only a GPU needs it

    return inductor.fx_graph_cache and not inductor.force_disable_caches


def _mark(device: torch.device, *what: object) -> Path:
    """A file that is there when this has been compiled ahead on this machine."""
    from torch._inductor.runtime.cache_dir_utils import cache_dir

    gpu = torch.cuda.get_device_name(device)
    everything = repr((__version__, torch.__version__, gpu, *what)).encode()
    digest = hashlib.sha256(everything).hexdigest()[:16]
    return Path(cache_dir()) / f"episodic-curiosity-{digest}"


def main(mark: str, what: str, arguments: str) -> None:
    """The other process."""
    with torch.no_grad():
        WORK[what](*ast.literal_eval(arguments))
    Path(mark).touch()
