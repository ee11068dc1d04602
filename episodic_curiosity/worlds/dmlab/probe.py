"""Examines the installed build of DeepMind Lab inside a worker process.

The process isolates the caller from side effects and crashes of Lab.
"""

import json
import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .engine import LabEngine, load_lab, observed_fields

LONGEST_ERROR = 1000  # characters


class Probe:
    """An engine whose only observation is a JSON report."""

    def __init__(self, *, setting: str, engine: dict[str, Any], steps: int) -> None:
        """Tests whether the engine's level accepts `setting`; times `steps` steps unless 0."""
        self._engine, self._setting, self._steps = engine, setting, steps
        self._report: dict[str, Any] = {}

    def begin(self, seed: int) -> None:
        try:
            self._report = self._examine(seed)
        except Exception as error:  # reported to the caller
            self._report = {"error": f"{type(error).__name__}: {error}"[:LONGEST_ERROR]}

    def act(self, action: int) -> tuple[float, bool]:
        raise NotImplementedError(f"a probe cannot act, got action {action}")

    def observe(self, row: dict[str, NDArray[Any]]) -> None:
        written = json.dumps(self._report).encode()
        row["report"][: len(written)] = np.frombuffer(written, np.uint8)

    def close(self) -> None:
        """Does nothing: `begin` closes its engines."""

    def _examine(self, seed: int) -> dict[str, Any]:
        module = load_lab()
        lab = LabEngine(**self._engine).start()
        report = {
            "version": module.version(),
            "folder": module.runfiles_path(),
            "overrides_layouts": _overrides_layouts(lab),
        }
        lab.close()
        report["is_patched"] = self._takes_setting()
        return report | (self._time(seed) if self._steps else {})

    def _takes_setting(self) -> bool:
        settings = self._engine["settings"] | {self._setting: "10"}
        try:
            LabEngine(**self._engine | {"settings": settings}).start().close()
        except RuntimeError as error:
            if self._setting not in str(error):  # another error
                raise
            return False
        return True

    def _time(self, seed: int) -> dict[str, float]:
        engine = LabEngine(**self._engine)
        settings = self._engine["settings"]
        fields = observed_fields(int(settings["height"]), int(settings["width"]))
        row = {name: np.zeros(shape, dtype) for name, (shape, dtype) in fields.items()}
        start = time.perf_counter()
        engine.begin(seed)
        engine.observe(row)
        begun = time.perf_counter()
        for _ in range(self._steps):
            engine.act(0)
            engine.observe(row)
        ended = time.perf_counter()
        engine.close()
        speed = self._steps / (ended - begun)
        return {"seconds_to_begin": begun - start, "steps_per_second": speed}


def _overrides_layouts(lab: Any) -> bool:
    """True if the layout of a seed can be read and overridden."""
    if not hasattr(lab, "read_property"):
        return False
    try:
        lab.read_property("func.entityLayer.1")
        lab.read_property("params.overrideEntityLayer")
    except (KeyError, TypeError):
        return False
    return True
