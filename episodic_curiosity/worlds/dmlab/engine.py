"""One DeepMind Lab environment, with the engine interface of worlds/processes/worker.py."""

import importlib
import importlib.util
import os
import sys
from importlib.machinery import ExtensionFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .far_starts import with_far_starts
from .level_cache import LevelCache

VIEW = "DEBUG.CAMERA.PLAYER_VIEW_NO_RETICLE"  # (3, h, w), without head-up display
POSITION, ROTATION = "DEBUG.POS.TRANS", "DEBUG.POS.ROT"  # x, y, z; pitch, yaw, roll
REMAINING = "FRAMES_REMAINING_AT_60"  # until the level's own time limit
LAYOUT = "DEBUG.MAZE.LAYOUT"  # empty for levels that are not mazes
NEEDED, WELCOME = (VIEW, POSITION, ROTATION), (REMAINING, LAYOUT)
LARGEST_SEED = 2**31 - 1
LAYOUT_BYTES = 4096
# The package `deepmind_lab` imports these only to find and load its shared library.
GONE = ("imp", "pkg_resources")  # missing from Python 3.12 on, or without setuptools


def observed_fields(height: int, width: int) -> dict[str, tuple[tuple[int, ...], str]]:
    """Shape and dtype of each field that `observe` fills."""
    return {
        "frame": ((3, height, width), "uint8"),
        "pose": ((4,), "float32"),  # x, y, z, yaw
        "remaining": ((), "float32"),  # frames until the level's own time limit
        "layout": ((LAYOUT_BYTES,), "uint8"),
    }


class LabEngine:
    """A `deepmind_lab.Lab` environment; it is never observed after its episode has ended.

    Reaching a goal respawns the agent within the same episode; Lab's frame number then falls.
    """

    def __init__(
        self,
        *,
        level: str,
        settings: dict[str, str],
        actions: list[list[int]],
        repeat: int,
        reward_scale: float,
        far_starts: int,
        level_cache: str | None,
        renderer: str,
    ) -> None:
        """`settings` are Lab's, all strings; they include the frame size.

        `far_starts` is the least path length from start to goal, in cells; 0 keeps all starts.
        """
        self._level, self._settings, self._renderer = level, settings, renderer
        self._actions = [np.array(action, np.intc) for action in actions]
        self._repeat, self._reward_scale = repeat, reward_scale
        self._far_starts = far_starts
        self._cache = None if level_cache is None else LevelCache(Path(level_cache))
        self._lab: Any = None

    def begin(self, seed: int) -> None:
        if self._lab is None:
            self._lab = self.start()
        seed &= LARGEST_SEED
        if self._far_starts:
            self._override_layout(seed)
        self._lab.reset(seed=seed)

    def act(self, action: int) -> tuple[float, bool]:
        reward = self._lab.step(self._actions[action], num_steps=self._repeat)
        return self._reward_scale * reward, not self._lab.is_running()

    def observe(self, row: dict[str, NDArray[Any]]) -> None:
        observed = self._lab.observations()
        if observed[VIEW].shape != row["frame"].shape:
            raise ValueError(f"frames must be {row['frame'].shape}, got {observed[VIEW].shape}")
        row["frame"][...] = observed[VIEW]
        row["pose"][:3] = observed[POSITION]
        row["pose"][3] = observed[ROTATION][1]
        row["remaining"][...] = observed[REMAINING][0] if REMAINING in observed else 0.0
        layout = observed.get(LAYOUT, "").encode()
        if len(layout) > len(row["layout"]):
            raise ValueError(
                f"the layout of {self._level} must have at most {len(row['layout'])} bytes, "
                f"got {len(layout)}"
            )
        row["layout"][: len(layout)] = np.frombuffer(layout, np.uint8)
        row["layout"][len(layout) :] = 0

    def close(self) -> None:
        if self._lab is not None:
            lab, self._lab = self._lab, None
            lab.close()

    def start(self) -> Any:
        """Returns a new `Lab` with the NEEDED observations and those of WELCOME that exist."""
        lab = self._make([])
        listed = {entry["name"] for entry in lab.observation_spec()}
        lab.close()
        if missing := [name for name in NEEDED if name not in listed]:
            raise ValueError(f"{self._level} does not provide {', '.join(missing)}")
        return self._make([name for name in (*NEEDED, *WELCOME) if name in listed])

    def _make(self, observations: list[str]) -> Any:
        """Makes a `Lab` with its temporary files in the current folder, if the build can."""
        arguments = {
            "config": self._settings,
            "renderer": self._renderer,
            "level_cache": self._cache,
        }
        make = load_lab().Lab
        try:
            return make(self._level, observations, **arguments, temp_folder=os.getcwd())
        except TypeError as refused:
            if "temp_folder" not in str(refused):
                raise
        return make(self._level, observations, **arguments)

    def _override_layout(self, seed: int) -> None:
        """Makes the next episode use the seed's maze with only its far starts."""
        layout = self._lab.read_property(f"func.entityLayer.{seed}")
        variations = self._lab.read_property(f"func.variationsLayer.{seed}")
        far = with_far_starts(layout, self._far_starts, seed)
        self._lab.write_property("params.overrideEntityLayer", far)
        self._lab.write_property("params.overrideVariationsLayer", variations)


def load_lab(name: str = "deepmind_lab") -> ModuleType:
    """Imports the module `deepmind_lab`, also where its package's loader no longer works.

    Its shared library is loaded directly if `__init__` needs GONE.
    """
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as missing:
        if missing.name == "dm_env":
            raise ImportError(
                f"{name} imports dm_env, which its wheel does not install: pip install dm-env"
            ) from missing
        if missing.name not in GONE:
            raise
    package = importlib.util.find_spec(name)
    assert package is not None
    assert package.origin is not None
    file = Path(package.origin).with_name(f"{name}.so")
    spec = importlib.util.spec_from_file_location(
        name, file, loader=ExtensionFileLoader(name, str(file))
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # the library looks itself up here
    spec.loader.exec_module(module)
    return module
