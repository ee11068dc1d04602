"""ViZDoomWorld: N Doom games as a World."""

import contextlib
import os
import time
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

import torch
from torch import Tensor
from torch.nn import functional

from episodic_curiosity.support.checks import check_size
from episodic_curiosity.worlds.base import Split, WorldSpec
from episodic_curiosity.worlds.processes.workers import Workers
from episodic_curiosity.worlds.processes.world import Fields, WorkerWorld
from episodic_curiosity.worlds.vizdoom.scenarios import find_scenario

ENGINE = (Path(__file__).with_name("engine.py"), "DoomEngine")
FRAME_SIZE = (120, 160)  # the smallest that the engine renders
FIELDS = {"frame": ((3, *FRAME_SIZE), "uint8"), "pose": ((4,), "float32")}
ORACLE_CELL = 30.0  # as in DeepMind Lab: the paper has no Grid Oracle in Doom
SHARED_MEMORY = Path("/dev/shm")
LONGEST_START = 600.0  # seconds; names in shared memory are used until an engine has started
LUMINANCE = (0.299, 0.587, 0.114)  # of red, green and blue


class ViZDoomWorld(WorkerWorld):
    """MyWayHome or any other scenario, run by worker processes on the CPU.

    The policy sees grey frames, curiosity colour frames.
    """

    def __init__(
        self,
        task: str,
        *,
        num_envs: int,
        seed: int,
        device: torch.device,
        split: Split,
        observation_size: tuple[int, int] = (84, 84),
        view_size: tuple[int, int] = FRAME_SIZE,
        episode_steps: int | None = None,
        actions: Sequence[str] | None = None,
        stagger: bool = False,
        num_workers: int | None = None,
        timeout: float = 60.0,
    ) -> None:
        """Sizes are (height, width); splits differ only in their seeds: there is one map.

        `actions` are button names, several joined by "+", or "idle"; the default is one per
        button of the scenario. `stagger` starts the first episodes at a random step count.
        `num_workers` and `timeout` are those of `Workers`.
        """
        observation_size = check_size("observation_size", observation_size)
        view_size = check_size("view_size", view_size)
        scenario = find_scenario(task, actions, episode_steps)
        spec = WorldSpec(
            task=f"vizdoom/{task}",
            num_envs=num_envs,
            device=device,
            observation_shape=(1, *observation_size),
            observation_dtype=torch.uint8,
            view_shape=(3, *view_size),
            view_dtype=torch.uint8,
            num_actions=len(scenario.action_names),
            action_names=scenario.action_names,
            episode_steps=scenario.episode_steps,
            steps_in_two=True,
            can_finish=True,
            has_position=True,
            oracle_cell=ORACLE_CELL,
        )
        remove_leftovers()
        self._are_resized = device.type == "cpu" and find_spec("numba") is not None
        fields, sizes = FIELDS, None
        if self._are_resized:
            sizes = (FRAME_SIZE, observation_size, view_size)
            fields = FIELDS | {"observation": (spec.observation_shape, "uint8")}
            if view_size != FRAME_SIZE:
                fields |= {"view": (spec.view_shape, "uint8")}
        workers = Workers(
            ENGINE,
            scenario.engine | {"sizes": sizes},
            fields,
            num_envs=num_envs,
            num_workers=num_workers,
            timeout=timeout,
            pinned=True,
        )
        super().__init__(spec, workers, seed=seed, split=split, stagger=stagger)
        self._luminance = torch.tensor(LUMINANCE, device=device)

    def _frames(self, fields: Fields) -> tuple[Tensor, Tensor]:
        """Observations and views; resized here on a GPU, or without Numba."""
        if self._are_resized:
            shown = fields["view"] if "view" in fields else fields["frame"]
            return self._to_device(fields["observation"]), self._to_device(shown)
        colour = self._to_device(fields["frame"])
        observation_size, view_size = self.spec.observation_shape[1:], self.spec.view_shape[1:]
        small = _resized(colour, observation_size)
        view = small if view_size == observation_size else _resized(colour, view_size)
        grey = self._luminance @ small.to(torch.float32).flatten(2)
        return _rounded(grey).view(-1, 1, *observation_size), view


def _resized(frames: Tensor, size: tuple[int, ...]) -> Tensor:
    """Resizes (n, channels, h, w) bytes."""
    if frames.shape[2:] == size:
        return frames
    if frames.is_cpu:  # resizes bytes directly, twice as fast as floats
        return functional.interpolate(frames, size, mode="bilinear", antialias=True)
    numbers = frames.to(torch.float32)
    return _rounded(functional.interpolate(numbers, size, mode="bilinear", antialias=True))


def _rounded(numbers: Tensor) -> Tensor:
    return (numbers + 0.5).to(torch.uint8)


def remove_leftovers() -> None:
    """Removes names of shared memory that engines left when they were killed while starting.

    Only this user's, and none that a start can still need; mapped memory stays usable.
    """
    oldest = time.time() - LONGEST_START
    for file in SHARED_MEMORY.glob("ViZDoom*"):
        with contextlib.suppress(OSError):  # another process was faster
            found = file.lstat()
            if found.st_uid == os.getuid() and found.st_mtime < oldest:
                file.unlink()
