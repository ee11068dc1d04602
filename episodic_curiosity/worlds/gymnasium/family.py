"""Gymnasium's environments: the options of a run and the record of the family."""

from dataclasses import dataclass

from episodic_curiosity.worlds.base import WorldConfig
from episodic_curiosity.worlds.family import Family, FrameSizes, OpenTasks
from episodic_curiosity.worlds.gymnasium.packages import Vectorization, find_package


@dataclass(frozen=True, kw_only=True)
class GymnasiumConfig(WorldConfig):
    """Gymnasium environments; sizes of frames are (height, width)."""

    vectorization: Vectorization = "auto"  # how the copies are stepped
    episode_steps: int | None = None  # truncates episodes; None: the environment's limit
    oracle_cell: float | None = None  # side of a Grid-Oracle cell; needs positions
    key: str | None = None  # part of a dictionary of observations; None: "image" or the frame
    grey: bool | None = None  # turns frames grey; None: for Atari
    largest_byte: int | None = None  # scaled to 255; None: 10 for MiniGrid's indices, else 255
    timeout: float | None = None  # seconds until a process is considered frozen; None: 60


def what_it_loads(task: str) -> str | None:
    module = task.rpartition(":")[0]
    return f"imports the Python module {module}" if module else None


def preset_frames(task: str) -> FrameSizes:
    return find_package(task).frames


FAMILY = Family(
    name="gym",
    tasks={},
    open_tasks=OpenTasks("<id>", "any Gymnasium environment, such as gym/CartPole-v1"),
    config=GymnasiumConfig,
    make="episodic_curiosity.worlds.gymnasium.world:GymnasiumWorld",
    simulated_on="host",
    frames=preset_frames,
    scenery="episodic_curiosity.worlds.gymnasium.scenery:open_scenery",
    television="unswitched",
    loads=what_it_loads,
)
