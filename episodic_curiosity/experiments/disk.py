"""How much disk a run takes, said before it is begun."""

import math
from contextlib import closing
from functools import cache

import torch

from episodic_curiosity.bonus.episodic import EpisodicConfig
from episodic_curiosity.reachability.network import RNetwork
from episodic_curiosity.reachability.random_play import HELD_OUT_STEPS
from episodic_curiosity.runs.config import RNetworkOptions, Run
from episodic_curiosity.support.machine import free_bytes
from episodic_curiosity.worlds.registry import make_world

KEEPING_FRAMES = ("dmlab", "vizdoom", "gym")  # worlds that cannot redraw what they showed
POLICY_BYTES = 7_000_000  # 1.7M numbers
SNAPSHOT_BYTES = 256  # at most, of one step that an R-network is refitted to
LINE_BYTES = 2_000  # of metrics, timing and TensorBoard, an update


def disk_bytes(run: Run) -> tuple[int, int]:
    """Bytes of three checkpoints, two kept and one being written, and of what stays.

    Frames for an R-network come on top in worlds that cannot redraw them: those of random play
    before there are checkpoints, those of the run beside them.
    """
    weights, state = POLICY_BYTES, 3 * POLICY_BYTES  # the optimiser keeps two numbers for each
    before, beside = 0, 0
    if run.r_network is not None and isinstance(run.bonus, EpisodicConfig):
        shape, view_bytes = _view(run)
        r_network, slot_size = _r_network_size(shape, tuple(run.r_network.architecture.items()))
        weights += r_network
        state += r_network + run.world.num_envs * run.bonus.memory_capacity * slot_size * 4
        if run.r_network.online is not None:
            state += 2 * r_network
        if run.task.partition("/")[0] in KEEPING_FRAMES:
            before, beside = _frames(run, run.r_network, view_bytes)
        elif run.r_network.online is not None:
            state += run.r_network.online.history * SNAPSHOT_BYTES
    lines = LINE_BYTES * run.num_updates
    return max(before, 3 * state + beside), weights + lines


def _frames(run: Run, options: RNetworkOptions, view_bytes: int) -> tuple[int, int]:
    """Bytes of the files of frames, before a run and in it."""
    if options.online is not None:
        # What two checkpoints may refer to is not overwritten yet.
        spare = 2 * run.record.checkpoint_every * run.batch_size
        return 0, (options.online.history + spare) * view_bytes
    num_tasks = max(1, len(options.random_play.tasks if options.random_play else ()))
    wanted = (run.random_play_steps + HELD_OUT_STEPS) * view_bytes
    free = free_bytes(torch.device("cpu"))
    # Each task's are kept in memory where they take at most half of what is free.
    return (wanted if free is not None and wanted / num_tasks > free / 2 else 0), 0


def _view(run: Run) -> tuple[tuple[int, ...], int]:
    """The shape of what curiosity sees, and its bytes."""
    size = run.world.view_size or run.world.observation_size
    if size is not None:
        return (3, *size), 3 * math.prod(size)
    return _view_of_world(run.task)


@cache
def _view_of_world(task: str) -> tuple[tuple[int, ...], int]:
    """As `_view`, of a world that shows what it likes."""
    with closing(make_world(task, num_envs=1, seed=0)) as world:
        spec = world.spec
    return spec.view_shape, math.prod(spec.view_shape) * spec.view_dtype.itemsize


@cache
def _r_network_size(
    shape: tuple[int, ...], architecture: tuple[tuple[str, object], ...]
) -> tuple[int, int]:
    """Bytes of its weights, and numbers that a memory slot holds."""
    with torch.device("meta"):
        r_network = RNetwork(shape, **dict(architecture))  # type: ignore[arg-type]
    return sum(tensor.numel() * 4 for tensor in r_network.parameters()), r_network.slot_size
