"""Trains one run, from its config to a trained agent: the algorithm on one page.

Savinov et al. 2019, section 2: collect a rollout, with a bonus for observations that are not
reachable from memory; update PPO on reward and bonus; refit the R-network (ECO).
"""

from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import torch

from episodic_curiosity.agent.collector import Collector
from episodic_curiosity.agent.network import Agent
from episodic_curiosity.agent.ppo import PPO
from episodic_curiosity.bonus.base import Bonus
from episodic_curiosity.bonus.diagnosis import Diagnosis
from episodic_curiosity.bonus.normalised import NormalisedBonus
from episodic_curiosity.reachability.network import RNetwork
from episodic_curiosity.reachability.replay import Replay
from episodic_curiosity.reachability.training import FitReport
from episodic_curiosity.runs import build, remarks
from episodic_curiosity.runs.checkpoints import written_by
from episodic_curiosity.runs.config import Run
from episodic_curiosity.runs.record import Record, RunFolderError, folder_for_work
from episodic_curiosity.support.checks import check_at_least
from episodic_curiosity.support.compiling import compiles, warming_up
from episodic_curiosity.support.interruption import StopRequest, stop_request
from episodic_curiosity.support.machine import (
    find_device,
    return_freed_memory,
    reusing_freed_memory,
)
from episodic_curiosity.support.progress import Progress
from episodic_curiosity.support.saving import LoadError
from episodic_curiosity.support.state import copied
from episodic_curiosity.worlds.base import World, WorldSpec

# Fields that may change on resume: they say where a run executes, not what it learns.
MAY_DIFFER = ("device", "world.level_cache", "world.timeout")


def train(
    run: Run,
    folder: Path,
    *,
    resume: bool = False,
    accept_changes: bool = False,
    progress: bool = True,
) -> None:
    """Trains an agent and writes everything to the folder.

    Ctrl-C or SIGTERM ends the run with a checkpoint after the current update.

    Args:
        run: the config, as `resolve` returns it.
        folder: for the agent, metrics and checkpoints.
        resume: continues a run that was stopped.
        accept_changes: resumes it even if its config or metrics were edited.
        progress: shows a bar on a terminal.
    """
    run = Run.from_dict(run.to_dict())  # NumPy's numbers as Python's
    total_steps = run.steps_after(run.num_updates)  # raises if there are too few for one update
    # Built before the folder, so that an invalid run leaves no folder behind.
    with reusing_freed_memory(), closing(_make_world(run)) as world:
        parts = Parts.make(run, world, folder)
        with (
            Record(
                folder,
                run.to_dict(),
                resume=resume,
                may_differ=MAY_DIFFER,
                accept_changes=accept_changes,
            ) as record,
            Progress(total_steps, record.steps, is_shown=progress) as display,
            stop_request(display.note) as stop,
        ):
            _learn(run, parts, record, display, stop)


def fit(run: Run, folder: Path, *, progress: bool = True) -> FitReport:
    """Fits an R-network to random play, for any run of a world with the same view shape."""
    run = Run.from_dict(run.to_dict())
    run.check_random_play()
    if any((folder / name).exists() for name in ("r_network.safetensors", "config.json")):
        raise RunFolderError(f"{folder} already holds an R-network or a run: choose another")
    with folder_for_work(folder), reusing_freed_memory():
        with closing(_make_world(run)) as world:
            r_network = build.make_r_network(run, world)
            spec = world.spec
        with Progress(run.steps, is_shown=progress) as display:
            report = _fit(run, r_network, spec, folder, display)
            r_network.save(folder)
            display.note(
                f"R-network fitted: held-out accuracy {report.held_out_accuracy:.1%}; use it "
                f"with curiosity train --r-network-from {folder}"
            )
    return report


@dataclass(frozen=True)
class Parts:
    """The components of a run that have state."""

    agent: Agent
    curiosity: Bonus  # the bonus of the method
    bonus: Bonus  # the same, normalised if the run has `normalise_bonus`
    ppo: PPO
    collector: Collector
    diagnosis: Diagnosis

    @classmethod
    def make(cls, run: Run, world: World, folder: Path) -> Self:
        """Creates the components in their initial state."""
        agent = make_agent(run, world.spec)
        curiosity = build.make_bonus(run, world, folder)
        bonus = NormalisedBonus(curiosity) if run.normalise_bonus else curiosity
        ppo = PPO(
            agent,
            run.ppo,
            num_updates=run.num_updates,
            seed=run.seed,
            auxiliary=curiosity.auxiliary(),
        )
        collector = Collector(
            world,
            agent,
            bonus,
            run.ppo.num_steps,
            seed=run.seed,
            bootstrap=not run.ppo.timeouts_are_ends,
            whole_at_start=not run.world.options("train").get("stagger", False),
        )
        return cls(agent, curiosity, bonus, ppo, collector, build.make_diagnosis(run))

    def state_dict(self) -> dict[str, Any]:
        """A copy of the complete state, for an exact resume."""
        return {
            "agent": copied(self.agent.state_dict()),
            "bonus": self.bonus.state_dict(),
            "ppo": self.ppo.state_dict(),
            "collector": self.collector.state_dict(),
            "diagnosis": self.diagnosis.state_dict(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restores a state; the bonus before the collector, which may show it new episodes."""
        for name in ("agent", "bonus", "ppo", "collector", "diagnosis"):
            getattr(self, name).load_state_dict(state[name])

    def metrics(self) -> dict[str, float]:
        """Metrics of the episodes and of the bonus since the last call."""
        return self.collector.tally.take() | self.bonus.statistics()

    def save(self, folder: Path) -> None:
        """Writes the agent, what the bonus has learnt and, if there is one, the R-network."""
        self.agent.save(folder)
        build.save_bonus(self.curiosity, folder)
        if self.r_network is not None:
            self.r_network.save(folder)

    @property
    def r_network(self) -> RNetwork | None:
        """The R-network, if the method has one."""
        r_network = getattr(self.curiosity, "r_network", None)
        return r_network if isinstance(r_network, RNetwork) else None

    @property
    def replay(self) -> Replay | None:
        """The observations that the R-network of ppo+eco is refitted to."""
        fitting = getattr(self.curiosity, "fitting", None)
        return None if fitting is None else fitting.replay


def _learn(
    run: Run, parts: Parts, record: Record, display: Progress, stop: StopRequest
) -> None:
    """Runs the remaining updates; writes metrics and checkpoints."""
    number = _begin(run, parts, record, display)
    metrics: dict[str, float] = {}
    while number < run.num_updates:
        metrics |= _update(parts, number, record)
        number += 1
        is_last = number == run.num_updates
        if number % run.record.metrics_every == 0 or is_last:
            steps = run.steps_after(number)
            metrics |= parts.metrics()
            record.write(steps, metrics)
            display.update(steps, metrics)
            for trouble in parts.diagnosis.look(metrics):
                display.note(f"warning: {trouble}")
            metrics = {}
        if number % run.record.checkpoint_every == 0 or is_last or stop.is_set:
            # In this order: if the run is killed in between, a resumed run does both again.
            parts.save(record.folder)
            record.checkpoint(number, parts.state_dict() | {"number": number})
        if stop.is_set and not is_last:
            raise KeyboardInterrupt


def _begin(run: Run, parts: Parts, record: Record, display: Progress) -> int:
    """Restores or initialises the run; returns the number of updates already done."""
    if compiles(parts.agent.device):
        display.note(
            "compiling at first use, which takes about a minute unless torch has cached it "
            "in an earlier run"
        )
    for remark in remarks.before(run):
        display.note(remark)
    state = record.resume()
    if state is not None:
        number = _load(parts, state, record)
        display.note(f"resuming from {record.last_checkpoint}")
        return number
    if parts.replay is not None:
        display.note(
            f"the R-network's replay takes {parts.replay.memory_bytes / 1e6:,.0f} MB of memory "
            f"and {parts.replay.disk_bytes / 1e6:,.0f} MB of disk"
        )
    if run.random_play_steps and parts.r_network is not None:
        spec = parts.collector.world.spec
        report = _fit(run, parts.r_network, spec, record.folder, display)
        display.note(f"R-network fitted: held-out accuracy {report.held_out_accuracy:.1%}")
        record.write(
            run.random_play_steps,
            {
                "r_network_accuracy": report.held_out_accuracy,
                "r_network_training_accuracy": report.accuracy,
                "r_network_loss": report.loss,
            },
        )
    parts.collector.reset()
    record.checkpoint(0, parts.state_dict() | {"number": 0})
    return 0


def _load(parts: Parts, state: dict[str, Any], record: Record) -> int:
    """Restores a checkpoint, which may be of another release; returns its number."""
    try:
        parts.load_state_dict(state)
        check_at_least("the checkpoint's number", state["number"], 0)
        return int(state["number"])
    except (LoadError, torch.OutOfMemoryError):
        raise
    except (LookupError, TypeError, ValueError, AttributeError, RuntimeError) as error:
        assert record.last_checkpoint is not None
        words = written_by(record.last_checkpoint)
        reason = " ".join(str(error).split())  # torch's has several lines
        if isinstance(error, KeyError):
            reason = f"{type(error).__name__}: {reason}"
        raise LoadError(
            f"{record.last_checkpoint} does not fit this run: {reason}{words}"
        ) from None


def _fit(
    run: Run, r_network: RNetwork, spec: WorldSpec, folder: Path, display: Progress
) -> FitReport:
    """Fits an R-network to random play, after a note on how much memory that takes."""
    megabytes = build.random_play_bytes(run, spec) / 1e6
    display.note(
        f"random play takes {megabytes:,.0f} MB of memory, or of disk if frames would take "
        f"more than half of the free memory"
    )
    play = run.random_play
    display.note(  # without a progress bar, the last line until the fit is done
        f"playing {play.steps:,} steps at random, then fitting the R-network to them: "
        f"{play.fit.num_iterations(play.steps):,} batches of {play.fit.batch_size:,} pairs"
    )
    report = build.fit_beforehand(run, r_network, folder, progress=display.is_shown)
    return_freed_memory()  # of the random play
    return report


def _update(parts: Parts, number: int, record: Record) -> dict[str, float]:
    """Collects a rollout and learns from it."""
    try:
        rollout = parts.collector.collect()
        # PPO first: in `learn`, ECO refits its R-network and clears the memories.
        return parts.ppo.update(rollout, number) | parts.bonus.learn(rollout)
    except FloatingPointError as error:
        raise FloatingPointError(
            f"{error}; the last good checkpoint is {record.last_checkpoint}"
        ) from None


def _make_world(run: Run) -> World:
    with warming_up(find_device(run.device)):
        return build.open_world(run)


def make_agent(run: Run, spec: WorldSpec) -> Agent:
    """Creates the run's untrained agent."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(run.seed)
        agent = Agent(
            spec.observation_shape,
            spec.num_actions or spec.action_shape[0],
            continuous=not spec.num_actions,
            num_values=run.ppo.num_values,
            separate_networks=run.ppo.separate_networks and len(spec.observation_shape) == 1,
        )
    return agent.to(spec.device)
