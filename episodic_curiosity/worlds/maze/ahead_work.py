"""The work of ahead.py's processes: they compile with few levels, for any number of them."""

import ast
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch

from episodic_curiosity.worlds.maze.levels.stored import LevelPool
from episodic_curiosity.worlds.maze.render import render_torch, walk_torch
from episodic_curiosity.worlds.maze.render.level_map import make_level_map
from episodic_curiosity.worlds.maze.render.render_compiled import compiled_passes
from episodic_curiosity.worlds.maze.render.textures import textures
from episodic_curiosity.worlds.maze.rules.advance import compile_advance, keep
from episodic_curiosity.worlds.maze.rules.levels import find_pool, make_levels
from episodic_curiosity.worlds.maze.rules.rules import Rules
from episodic_curiosity.worlds.maze.rules.state import MazeState, blank_state, scene_of
from episodic_curiosity.worlds.maze.tasks import TASKS, change_task


def main(mark: str, what: str, arguments: str) -> None:
    """Runs WORK[what] with literal arguments, then creates the file `mark`."""
    with torch.no_grad():
        WORK[what](*ast.literal_eval(arguments))
    Path(mark).touch()


def compile_rules(
    name: str,
    changes: Mapping[str, Any],
    num_envs: int,
    num_levels: int,
    device: str,
    backend: str = "inductor",
) -> None:
    """Compiles one step of the rules."""
    _, rules, state = _few_levels(name, changes, num_envs, num_levels, device)
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
    """Compiles the last rendering pass; the passes before it run uncompiled."""
    pool, rules, state = _few_levels(name, changes, num_envs, num_levels, device)
    theme = rules.task.theme
    level_map = make_level_map(theme, pool, device)
    shape = (*level_map.code.shape[1:], *size)
    passes = compiled_passes(theme, level_map.has_slabs, shape, backend, num_frames=num_envs)
    passes = passes._replace(
        begin=render_torch.begin,
        walk_on=walk_torch.walk_on,
        find_columns=render_torch.find_columns,
    )
    camera = walk_torch.make_camera(*size, torch.device(device))
    pictures = textures().to(torch.device(device))
    render_torch.render(theme, level_map, pictures, camera, scene_of(state), passes=passes)


WORK: dict[str, Callable[..., None]] = {"rules": compile_rules, "pictures": compile_pictures}


def _few_levels(
    name: str, changes: Mapping[str, Any], num_envs: int, num_levels: int, device: str
) -> tuple[LevelPool, Rules, MazeState]:
    """Returns a few levels, their rules and a state in which episodes have begun."""
    task = change_task(TASKS[name], changes)
    pool = find_pool(task, layout=None, num_levels=num_levels, level_seed=0, split="train")
    rules = Rules(task, make_levels(task, pool, torch.device(device)), always=True)
    key = torch.zeros(num_envs, dtype=torch.int64, device=device)
    state = blank_state(key, rules.num_sprites)
    keep(state, rules.new_episode(state))
    return pool, rules, state
