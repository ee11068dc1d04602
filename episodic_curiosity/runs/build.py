"""Builds the bonus, the R-network and the diagnosis of a run."""

import contextlib
from pathlib import Path
from typing import Any

import torch

from episodic_curiosity.bonus.base import Bonus
from episodic_curiosity.bonus.constant import ConstantBonus, ConstantConfig
from episodic_curiosity.bonus.diagnosis import Diagnosed, Diagnosis
from episodic_curiosity.bonus.episodic import EpisodicBonus, EpisodicConfig
from episodic_curiosity.bonus.icm import ICMBonus, ICMConfig
from episodic_curiosity.bonus.memory import EpisodicMemory
from episodic_curiosity.bonus.nothing import NoBonus
from episodic_curiosity.bonus.online import OnlineEpisodicBonus, make_replay
from episodic_curiosity.bonus.oracle import OracleBonus, OracleConfig
from episodic_curiosity.bonus.state import check_part
from episodic_curiosity.reachability.network import RNetwork
from episodic_curiosity.reachability.online import OnlineFitting
from episodic_curiosity.reachability.random_play import (
    bytes_kept,
    fit_to_random_play,
    held_out_envs,
    held_out_steps,
)
from episodic_curiosity.reachability.training import FitReport
from episodic_curiosity.runs.checkpoints import Checkpoints
from episodic_curiosity.runs.config import RNetworkOptions, Run
from episodic_curiosity.support.machine import find_device
from episodic_curiosity.support.saving import LoadError
from episodic_curiosity.worlds.base import Split, World, WorldSpec
from episodic_curiosity.worlds.registry import make_world

REPLAY = "replay.bin"  # in the run's folder, for worlds that cannot redraw observations


def make_bonus(run: Run, world: World, folder: Path) -> Bonus:
    """Creates the bonus of the run's method; its R-network is not fitted yet."""
    match run.bonus:
        case None:
            return NoBonus()
        case ConstantConfig():
            return ConstantBonus(world.spec, run.bonus)
        case OracleConfig():
            return OracleBonus(world.spec, run.bonus)
        case ICMConfig():
            return ICMBonus(world.spec, run.bonus, seed=run.seed)
        case EpisodicConfig():
            return _episodic(run, run.bonus, world, folder)


def load_bonus(run: Run, world: World, folder: Path) -> Bonus:
    """Loads the bonus of a trained run, not normalised, with empty memories."""
    spec = world.spec
    match run.bonus:
        case EpisodicConfig():
            r_network = RNetwork.load(folder, spec.device)
            return EpisodicBonus(r_network, _memory(run, run.bonus, spec, r_network), run.bonus)
        case ICMConfig():
            bonus = ICMBonus(spec, run.bonus, seed=run.seed)
            saved = _saved_bonus(run, folder)
            check_part(saved, "model", bonus.model.state_dict())
            bonus.model.load_state_dict(saved["model"])
            return bonus
        case _:
            return make_bonus(run, world, folder)


def make_diagnosis(run: Run) -> Diagnosis:
    """Creates the diagnosis that warns when the run's curiosity cannot work."""
    is_online = run.r_network is not None and run.r_network.online is not None
    return Diagnosis(Diagnosed(run.bonus, run.ppo.reward_scale, run.normalise_bonus, is_online))


def make_r_network(run: Run, world: World) -> RNetwork:
    """Creates an R-network from the run's seed, or loads the fitted one that it names."""
    options = _options(run)
    shape = world.spec.view_shape
    if options.source is not None:
        r_network = RNetwork.load(options.source, world.spec.device)
        if r_network.config.view_shape != shape:
            raise ValueError(
                f"the R-network in {options.source} is for views of shape "
                f"{r_network.config.view_shape}, but {run.task} has {shape}"
            )
        if not r_network.fitted:
            raise ValueError(f"the R-network in {options.source} is not fitted")
        return r_network
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(run.seed)
        return RNetwork(shape, **options.architecture).to(world.spec.device)


def random_play_bytes(run: Run, spec: WorldSpec) -> int:
    """Bytes of the random play that the R-network is fitted to and tested on (EC)."""
    play = _options(run).random_play
    assert play is not None
    num_envs = held_out_envs(spec) * max(1, len(play.tasks))
    num_steps = play.steps + held_out_steps(play.steps, play.fit, num_envs)
    return bytes_kept(spec, num_steps)


def fit_r_network(run: Run, r_network: RNetwork, folder: Path, *, progress: bool) -> FitReport:
    """Fits an R-network to random play of the run's task, or of several tasks (EC)."""
    play = _options(run).random_play
    assert play is not None
    tasks = play.tasks or (run.task,)

    with contextlib.ExitStack() as opened:

        def make(task: str, split: Split, num_envs: int) -> World:
            world = make_world(
                task,
                num_envs=num_envs,
                seed=run.seed,
                device=find_device(run.device),
                split=split,
                **run.world.options(split),
            )
            opened.callback(world.close)
            return world

        trained_on = [make(task, "r-network", run.world.num_envs) for task in tasks]
        num_held_out = held_out_envs(trained_on[0].spec)
        return fit_to_random_play(
            r_network,
            trained_on,
            [make(task, "validation", num_held_out) for task in tasks],
            play.steps,
            play.fit,
            seed=run.seed,
            folder=folder,
            progress=progress,
        )


def _episodic(run: Run, config: EpisodicConfig, world: World, folder: Path) -> EpisodicBonus:
    options = _options(run)
    r_network = make_r_network(run, world)
    memory = _memory(run, config, world.spec, r_network)
    if options.online is None:
        return EpisodicBonus(r_network, memory, config)
    # Two checkpoints are kept: frames that the older one refers to must not be overwritten.
    spare = 2 * run.record.checkpoint_every * run.ppo.num_steps
    replay = make_replay(world, options.online.history, file=folder / REPLAY, spare=spare)
    fitting = OnlineFitting(
        r_network, world.spec.num_envs, options.online, run.seed, replay=replay
    )
    return OnlineEpisodicBonus(fitting, memory, config)


def _memory(
    run: Run, config: EpisodicConfig, spec: WorldSpec, r_network: RNetwork
) -> EpisodicMemory:
    return EpisodicMemory(
        spec.num_envs,
        config.memory_capacity,
        r_network.slot_size,
        replacement=config.replacement,
        seed=run.seed,
        device=spec.device,
    )


def _saved_bonus(run: Run, folder: Path) -> dict[str, Any]:
    """The state of the bonus, not normalised, in the latest checkpoint."""
    newest = Checkpoints(folder).load_newest()
    if newest is None:
        raise LoadError(f"{folder} has no checkpoint to load the bonus of {run.method} from")
    bonus: dict[str, Any] = newest.state["bonus"]
    return bonus["inner"] if run.normalise_bonus else bonus


def _options(run: Run) -> RNetworkOptions:
    if run.r_network is None:
        raise ValueError(f"{run.method} has no R-network")
    return run.r_network
