"""The build of DeepMind Lab that is installed here: is there one, and what can it do."""

import functools
import importlib.util
import json
from pathlib import Path
from typing import NamedTuple

from episodic_curiosity.worlds.dmlab.levels import MIN_GOAL_DISTANCE, find_level
from episodic_curiosity.worlds.processes.workers import Workers

PROBE = (Path(__file__).with_name("probe.py"), "Probe")
FIELDS = {"report": ((8192,), "uint8")}
PATIENCE = 300.0  # seconds: a level that is timed has to be compiled first


class Build(NamedTuple):
    """What a build says of itself."""

    version: str
    folder: str  # of its own files
    is_patched: bool  # has the authors' least distance from starts to goals
    overrides_layouts: bool  # can be told to play a layout of one's own
    seconds_to_begin: float | None = None  # an episode in a maze that has to be compiled
    steps_per_second: float | None = None  # of one environment


def check_installed(task: str = "sparse") -> None:
    """Raises, and says what to do instead, where there is no module `deepmind_lab`."""
    if importlib.util.find_spec("deepmind_lab") is None:
        raise ImportError(
            f"dmlab/{task} needs the module deepmind_lab, which is in no package registry: "
            "docs/dmlab.md says how to build it; maze/... runs the same tasks without it"
        )


@functools.cache
def examine_build(num_steps: int = 0) -> Build:
    """Looks at the build in a process of its own; times some steps if there are to be any.

    Looks once: while this process runs, nobody installs another build.
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
        raise ImportError(f"deepmind_lab is there but cannot be used: {report['error']}")
    return Build(**report)
