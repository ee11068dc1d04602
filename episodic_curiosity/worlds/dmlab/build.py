"""Finds the installed build of DeepMind Lab and its capabilities."""

import functools
import importlib.util
import json
from pathlib import Path
from typing import NamedTuple

from episodic_curiosity.worlds.dmlab.levels import MIN_GOAL_DISTANCE, find_level
from episodic_curiosity.worlds.processes.workers import Workers

PROBE = (Path(__file__).with_name("probe.py"), "Probe")
FIELDS = {"report": ((8192,), "uint8")}
PATIENCE = 300.0  # seconds; includes compiling a level when steps are timed


class Build(NamedTuple):
    """The capabilities and speed of a build."""

    version: str
    folder: str  # of its runfiles
    is_patched: bool  # has the authors' minGoalDistance setting
    overrides_layouts: bool  # can play custom layouts
    seconds_to_begin: float | None = None  # first episode, including compiling its maze
    steps_per_second: float | None = None  # of one environment


def check_installed(task: str = "sparse") -> None:
    """Raises if the module `deepmind_lab` is not installed."""
    if importlib.util.find_spec("deepmind_lab") is None:
        raise ImportError(
            f"dmlab/{task} needs the module deepmind_lab, which is not on PyPI: docs/dmlab.md "
            "explains how to build it; maze/... runs the same tasks without it"
        )


@functools.cache
def examine_build(num_steps: int = 0) -> Build:
    """Examines the build in a separate process; times `num_steps` steps unless 0.

    Cached: the build is assumed not to change while this process runs.
    """
    check_installed()
    level = find_level("very-sparse")
    engine = level.engine_options({"width": "160", "height": "120"}, ("forward",))
    options = {"setting": MIN_GOAL_DISTANCE, "engine": engine, "steps": num_steps}
    workers = Workers(
        PROBE, options, FIELDS, num_envs=1, num_workers=1, timeout=PATIENCE, pinned=False
    )
    try:
        workers.begin()
        report = json.loads(workers.board.present["report"].tobytes().rstrip(b"\0"))
    finally:
        workers.close()
    if "error" in report:
        raise ImportError(f"deepmind_lab is installed but cannot be used: {report['error']}")
    return Build(**report)
