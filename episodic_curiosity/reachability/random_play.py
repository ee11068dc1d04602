"""EC: an R-network is fitted before training, to the views of an agent that acts at random.

Shapes: T steps, N environments.
"""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, cast

import torch
from torch import Tensor

from episodic_curiosity.reachability.experience import Experience, Mixture
from episodic_curiosity.reachability.fit_config import FitConfig
from episodic_curiosity.reachability.frame_file import FrameFile
from episodic_curiosity.reachability.network import RNetwork
from episodic_curiosity.reachability.replay import FrameReplay, Replay, SnapshotReplay
from episodic_curiosity.reachability.training import FitReport, fit_r_network
from episodic_curiosity.support.checks import check_at_least
from episodic_curiosity.support.cuda_graphs import Captured, graph_device
from episodic_curiosity.support.machine import free_bytes, free_on_disk
from episodic_curiosity.support.progress import progress_bar
from episodic_curiosity.support.randomness import (
    later_seed,
    random_below,
    random_unit,
    seed_words,
)
from episodic_curiosity.worlds.base import RedrawableWorld, Step, World, WorldSpec

HELD_OUT_STEPS = 50_000  # at most: enough for the 10,000 pairs an accuracy is measured on
SEED_STRIDE = 1_000_003  # between the seeds of the worlds of one fit
CHUNK = 64  # steps kept at a time
STREAM = 0xAC7  # keeps these random numbers apart from those of the world


def random_play(
    world: World,
    num_steps: int,
    *,
    seed: int,
    file: Path | None = None,
    progress: bool = True,  # a bar, on a terminal
) -> Experience:
    """The views of `num_steps` random steps of all environments together, from a reset.

    A world that can redraw is kept as snapshots and must stay open while they are used. Others
    are kept as frames: in memory where they take at most half of what is free, else in `file`,
    which is unlinked immediately, so that nothing of it remains when this process ends.
    """
    spec = world.spec
    check_at_least("num_steps", num_steps, spec.num_envs)
    replay = _room_for(world, num_steps // spec.num_envs, file)
    _play(world, replay, num_steps // spec.num_envs, seed, progress)
    return replay


def fit_to_random_play(
    r_network: RNetwork,
    worlds: Sequence[World],
    held_out: Sequence[World],
    num_steps: int,
    config: FitConfig | None = None,
    *,
    seed: int = 0,
    folder: Path | None = None,
    progress: bool = True,
) -> FitReport:
    """Fits the R-network to random play in one world, or equally in several.

    `num_steps` is the amount of training data, of all worlds together. The accuracy is measured
    in `held_out` worlds, on other levels: the former have the split "r-network", the latter
    "validation". Frames that do not fit into memory go into files in `folder`; where these do
    not fit on its disk, nothing is played. Worlds that cannot redraw are closed once played.
    """
    config = config or FitConfig()
    check_at_least("the number of worlds", len(worlds), 1)
    check_at_least("the number of held-out worlds", len(held_out), 1)
    _check_worlds(r_network, (*worlds, *held_out))
    num_held_out = held_out_steps(num_steps, config, _num_envs(held_out))
    plays = _share_out("random_play", worlds, num_steps, seed, folder)
    held_out_plays = _share_out("held_out", held_out, num_held_out, later_seed(seed, 1), folder)
    _check_disk([*plays, *held_out_plays])

    def play_all(plays: Sequence[_Play]) -> Experience:
        parts = []
        for world, share, own_seed, file in plays:
            parts.append(random_play(world, share, seed=own_seed, file=file, progress=progress))
            if not world.spec.can_redraw:
                world.close()  # the simulators of thirty tasks do not fit into memory
        return parts[0] if len(parts) == 1 else Mixture(parts)

    return fit_r_network(
        r_network,
        play_all(plays),
        config,
        held_out=play_all(held_out_plays),
        seed=seed,
        progress=progress,
    )


def held_out_steps(num_steps: int, config: FitConfig, num_envs: int) -> int:
    """Steps of random play for testing in `num_envs` environments, added to `num_steps`."""
    return max(min(HELD_OUT_STEPS, num_steps // 4), config.least_steps // 2 * num_envs)


def held_out_envs(spec: WorldSpec) -> int:
    """Environments for testing an R-network: few enough that each plays a complete episode.

    In shorter stretches even the distant pairs are hardly far apart.
    """
    return max(1, min(spec.num_envs, HELD_OUT_STEPS // spec.episode_steps))


def bytes_kept(spec: WorldSpec, num_steps: int) -> int:
    """Bytes of `num_steps` steps, of all environments together, as snapshots or frames."""
    if spec.can_redraw:
        return num_steps * spec.snapshot_bytes
    return num_steps * spec.view_dtype.itemsize * math.prod(spec.view_shape)


class _Play(NamedTuple):
    """The random play of one world."""

    world: World
    num_steps: int  # of all its environments together
    seed: int
    file: Path | None  # for frames that do not fit into memory


def _share_out(
    name: str, worlds: Sequence[World], num_steps: int, seed: int, folder: Path | None
) -> list[_Play]:
    """The same number of steps for each environment."""
    each = num_steps // _num_envs(worlds)
    return [
        _Play(
            world,
            each * world.spec.num_envs,
            later_seed(seed, SEED_STRIDE * number),
            None if folder is None else folder / f"{name}_{number}.bin",
        )
        for number, world in enumerate(worlds)
    ]


def _check_disk(plays: Sequence[_Play]) -> None:
    """Raises where the files of all worlds together do not fit on the disk."""
    wanted, in_memory, files = 0, 0, []
    for world, num_steps, _, file in plays:
        size = bytes_kept(world.spec, num_steps)
        if file is not None and _is_for_file(world.spec, size, in_memory):
            wanted += size
            files.append(file)
        else:
            in_memory += size
    if files and wanted > (free := free_on_disk(*files)):
        raise MemoryError(
            f"random play wants {wanted / 1e9:.1f} GB in {files[0].parent} for frames of "
            f"{len(files)} worlds, its disk has {free / 1e9:.1f} GB free: lower the steps of "
            f"random play"
        )


def _is_for_file(spec: WorldSpec, size: int, promised: int = 0) -> bool:
    """True if these are frames that would take more than half of the free memory.

    Bytes `promised` to other plays do not count as free.
    """
    free = free_bytes(spec.device)
    return not spec.can_redraw and free is not None and size > (free - promised) // 2


def _check_worlds(r_network: RNetwork, worlds: Sequence[World]) -> None:
    """Raises unless all worlds emit the R-network's views, in one dtype."""
    wanted = (r_network.config.view_shape, worlds[0].spec.view_dtype)
    for spec in (world.spec for world in worlds):
        if (spec.view_shape, spec.view_dtype) != wanted:
            raise ValueError(
                f"the R-network wants observations {wanted[0]} of {wanted[1]}, "
                f"{spec.task} has {spec.view_shape} of {spec.view_dtype}"
            )


def _num_envs(worlds: Sequence[World]) -> int:
    return sum(world.spec.num_envs for world in worlds)


def _room_for(world: World, num_steps: int, file: Path | None) -> Replay:
    spec = world.spec
    if spec.can_redraw:
        return SnapshotReplay.for_world(world, num_steps)
    shape = (num_steps, spec.num_envs, spec.view_shape, spec.view_dtype)
    size = bytes_kept(spec, num_steps * spec.num_envs)
    if file is not None and _is_for_file(spec, size):
        return FrameFile(file, *shape, nameless=True)
    return FrameReplay(*shape, spec.device)


def _play(world: World, replay: Replay, num_steps: int, seed: int, progress: bool) -> None:
    """Plays and keeps every step, snapshots by the chunk.

    On a GPU a step is one replayed CUDA graph where the world allows it, which is also why the
    time and the place in the chunk are tensors.
    """
    spec = world.spec
    env = torch.arange(spec.num_envs, device=spec.device)
    clock = torch.zeros(1, dtype=torch.int64, device=spec.device)
    size, shape, dtype = 1, spec.view_shape, spec.view_dtype
    if spec.can_redraw:
        size, shape, dtype = CHUNK, (spec.snapshot_bytes,), torch.uint8
    kept = torch.zeros(size, spec.num_envs, *shape, dtype=dtype, device=spec.device)
    firsts = torch.zeros(size, spec.num_envs, dtype=torch.bool, device=spec.device)

    def keep(step: Step) -> None:
        shown = cast(RedrawableWorld, world).snapshot() if spec.can_redraw else step.view
        kept.index_copy_(0, clock % size, shown[None])
        firsts.index_copy_(0, clock % size, step.first[None])
        clock.add_(1)

    def step_and_keep() -> None:
        keep(world.step(_random_actions(spec, seed, env, clock)))

    play = Captured(step_and_keep, graph_device(spec.device, spec.can_capture))
    with progress_bar("playing at random", num_steps, progress) as advance:
        keep(world.reset())
        for time in range(num_steps):
            if time > 0:
                play()
            advance()
            length = time % size + 1
            if length == size or time == num_steps - 1:
                replay.extend(kept[:length], firsts[:length])


def _random_actions(spec: WorldSpec, seed: int, env: Tensor, time: int | Tensor) -> Tensor:
    """(N,) int64, or (N, *action_shape) float32 in [-1, 1).

    A world may ask for weaker actions in every second environment, from the second on: a body
    moved with all its strength often falls, and an R-network should see it standing.
    """
    stream = (*seed_words(seed), STREAM, time)
    if spec.num_actions:
        return random_below(spec.num_actions, *stream, env)
    entry = torch.arange(math.prod(spec.action_shape), device=env.device)
    unit = random_unit(*stream, env[:, None], entry)
    bound = torch.where(env % 2 == 1, spec.gentle_play, 1.0)
    return ((unit * 2 - 1) * bound[:, None]).reshape(len(env), *spec.action_shape)
