"""Builds the bonus, the R-network and the diagnosis of a run."""

from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor

from episodic_curiosity.bonus.base import Bonus, BonusContext
from episodic_curiosity.bonus.diagnosis import Diagnosed, Diagnosis
from episodic_curiosity.bonus.nothing import NoBonus
from episodic_curiosity.bonus.registry import find_method
from episodic_curiosity.reachability.frame_file import FrameFile
from episodic_curiosity.reachability.network import RNetwork
from episodic_curiosity.reachability.online import OnlineFitting
from episodic_curiosity.reachability.replay import Replay, SnapshotReplay
from episodic_curiosity.runs.config import RNetworkOptions, Run
from episodic_curiosity.support import saving
from episodic_curiosity.support.compiling import warming_up
from episodic_curiosity.support.machine import find_device
from episodic_curiosity.support.shared import has_card, read_card
from episodic_curiosity.worlds.base import Split, World, WorldSpec
from episodic_curiosity.worlds.registry import make_world

KIND = "bonus"  # of the file with what a bonus has learnt
REPLAY = "replay.bin"  # in the run's folder, for worlds that cannot redraw observations


def open_world(
    run: Run, split: Split = "train", task: str | None = None, num_envs: int | None = None
) -> World:
    """Makes the run's world, or with its options another task's or another number of them."""
    return make_world(
        task or run.task,
        num_envs=num_envs or run.world.num_envs,
        seed=run.seed,
        device=find_device(run.device),
        split=split,
        **run.world.options(split),
    )


def open_first_world(run: Run) -> World:
    """Makes the world of a starting run while a GPU loads cuDNN and the compiler."""
    with warming_up(find_device(run.device)):
        return open_world(run)


def make_bonus(run: Run, world: World, folder: Path) -> Bonus:
    """Creates the bonus of the run's method; its R-network is not fitted yet."""
    fitting = r_network = None
    if run.r_network is not None:
        r_network = make_r_network(run, world)
        if run.r_network.online is not None:
            replay = make_replay(run, world, folder)
            num_envs, online = world.spec.num_envs, run.r_network.online
            fitting = OnlineFitting(r_network, num_envs, online, run.seed, replay=replay)
    return _bonus(run, world.spec, r_network, fitting)


def save_bonus(bonus: Bonus, folder: Path) -> None:
    """Writes the learnt parts of a bonus, except its R-network, to bonus.safetensors."""
    if learnt := _learnt(bonus):
        saving.save(folder, KIND, learnt, {})


def load_bonus(run: Run, world: World, folder: Path) -> Bonus:
    """Loads the bonus of a trained run, not normalised, with empty memories.

    It pays nothing if the folder is a shared agent's that lacks a part of the bonus.
    """
    spec = world.spec
    if has_card(folder) and not _needs(run) <= set(read_card(folder)["files"]):
        return NoBonus(spec.num_envs, None, spec.device)
    r_network = RNetwork.load(folder, spec.device) if run.r_network is not None else None
    learnt: dict[str, Tensor] = {}
    if _learnt_names(find_method(run.method).bonus):
        _, learnt = saving.read_like(
            folder, KIND, lambda: _learnt(bonus_on_meta(run, spec, r_network))
        )
    bonus = _bonus(run, spec, r_network)
    bonus.load_learnt(learnt, _learnt_names(type(bonus)))
    return bonus


def _needs(run: Run) -> set[str]:
    """The files that `load_bonus` reads."""
    names = {"r_network"} if run.r_network is not None else set()
    names |= {KIND} if _learnt_names(find_method(run.method).bonus) else set()
    return {f"{name}.safetensors" for name in names}


def bonus_on_meta(run: Run, spec: WorldSpec, r_network: RNetwork | None) -> Bonus:
    """Creates the bonus of a run on the meta device: its shapes, which take no memory."""
    meta = torch.device("meta")
    with meta:
        if r_network is not None:
            r_network = RNetwork(**vars(r_network.config))
        return _bonus(run, replace(spec, device=meta), r_network)


def make_diagnosis(run: Run) -> Diagnosis:
    """Creates the diagnosis that warns when the run's curiosity cannot work."""
    is_online = run.r_network is not None and run.r_network.online is not None
    return Diagnosis(
        Diagnosed(
            advice=find_method(run.method).bonus.advice,
            config=run.bonus,
            reward_scale=run.ppo.reward_scale,
            is_normalised=run.normalise_bonus,
            fit=f"r_network.{'online' if is_online else 'random_play'}.fit",
        )
    )


def make_replay(run: Run, world: World, folder: Path) -> Replay:
    """Creates the replay of the R-network's newest observations (ECO).

    It keeps snapshots in memory if the world can redraw them, else frames in a file.
    """
    online = _options(run).online
    assert online is not None
    spec = world.spec
    num_steps = max(1, online.history // spec.num_envs)  # OnlineFitting refuses too few
    if spec.can_redraw:
        return SnapshotReplay.for_world(world, num_steps)
    # Two checkpoints are kept: frames that the older one refers to must not be overwritten.
    spare = 2 * run.record.checkpoint_every * run.ppo.num_steps
    shape, dtype = spec.view_shape, spec.view_dtype
    return FrameFile(folder / REPLAY, num_steps, spec.num_envs, shape, dtype, spare=spare)


def make_r_network(run: Run, world: World) -> RNetwork:
    """Creates an R-network from the run's seed, or loads the fitted one that it names."""
    options = _options(run)
    if options.source is not None:
        r_network = RNetwork.load(options.source, world.spec.device)
        check_fits(r_network, options.source, world.spec)
        return r_network
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(run.seed)
        r_network = RNetwork(world.spec.view_shape, **options.architecture)
    return r_network.to(world.spec.device)


def check_fits(r_network: RNetwork, folder: Path, spec: WorldSpec) -> None:
    """Raises unless the R-network of a folder is fitted and for the views of a world."""
    shape = r_network.config.view_shape
    if shape != spec.view_shape:
        advice = ""
        if len(shape) == len(spec.view_shape) == 3 and shape[0] == spec.view_shape[0]:
            advice = f"; --world.view-size {shape[1]} {shape[2]} draws views that fit"
        raise ValueError(
            f"the R-network in {folder} is for views of shape "
            f"{shape}, but {spec.task} has {spec.view_shape}{advice}"
        )
    if not r_network.fitted:
        raise ValueError(f"the R-network in {folder} is not fitted")


def _bonus(
    run: Run, spec: WorldSpec, r_network: RNetwork | None, fitting: OnlineFitting | None = None
) -> Bonus:
    context = BonusContext(
        seed=run.seed, num_steps=run.ppo.num_steps, r_network=r_network, fitting=fitting
    )
    bonus = find_method(run.method).bonus.for_run(run.bonus, spec, context)
    if run.ppo.sees_memory:
        bonus.keep_summary()
    return bonus


def _learnt(bonus: Bonus) -> dict[str, Tensor]:
    """The tensors of the parts that `_learnt_names` names."""
    return bonus.tensors_of(_learnt_names(type(bonus)))


def _learnt_names(kind: type[Bonus]) -> tuple[str, ...]:
    """The learnt parts of a bonus, without the R-network, which is saved separately."""
    return tuple(name for name in kind.learnt if name != "r_network")


def _options(run: Run) -> RNetworkOptions:
    if run.r_network is None:
        raise ValueError(f"{run.method} has no R-network")
    return run.r_network
