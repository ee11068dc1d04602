"""The learner of a run: agent, bonus, PPO and collector, with their state."""

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
from episodic_curiosity.bonus.registry import find_method
from episodic_curiosity.reachability.network import RNetwork
from episodic_curiosity.reachability.replay import Replay
from episodic_curiosity.runs import build
from episodic_curiosity.runs.checkpoints import written_by
from episodic_curiosity.runs.config import Run
from episodic_curiosity.support.checks import check_at_least
from episodic_curiosity.support.machine import is_out_of_memory
from episodic_curiosity.support.saving import LoadError
from episodic_curiosity.worlds.base import World, WorldSpec


@dataclass(frozen=True)
class Learner:
    """The components of a run that have state: a checkpoint holds their `state_dict`."""

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
        """The complete state, for an exact resume. No copy: write it before the next update."""
        return {
            "agent": self.agent.state_dict(),
            "bonus": self.bonus.live_state_dict(),
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


def make_agent(run: Run, spec: WorldSpec) -> Agent:
    """Creates the run's untrained agent."""
    sees_memory = run.ppo.sees_memory
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(run.seed)
        agent = Agent(
            spec.observation_shape,
            spec.num_actions or spec.action_shape[0],
            continuous=not spec.num_actions,
            num_values=run.ppo.num_values,
            separate_networks=run.ppo.separate_networks and len(spec.observation_shape) == 1,
            summary_size=find_method(run.method).bonus.summary_size if sees_memory else 0,
            summary_of=run.method if sees_memory else None,
        )
    return agent.to(spec.device)


def restore(
    learner: Learner, state: dict[str, Any], checkpoint: Path
) -> tuple[int, dict[str, float]]:
    """Restores a checkpoint, which may be of another release.

    Returns the number of updates done and the metrics that were not written yet.
    """
    try:
        learner.load_state_dict(state)
        check_at_least("the checkpoint's number", state["number"], 0)
        metrics = {str(name): float(value) for name, value in state["metrics"].items()}
        return int(state["number"]), metrics
    except LoadError:
        raise
    except (
        LookupError,
        TypeError,
        ValueError,
        AttributeError,
        ArithmeticError,
        RuntimeError,
    ) as error:
        if is_out_of_memory(error):
            raise
        reason = " ".join(str(error).split())  # torch's has several lines
        if isinstance(error, KeyError):
            reason = f"{type(error).__name__}: {reason}"
        raise LoadError(
            f"{checkpoint} does not fit this run: {reason}{written_by(checkpoint)}"
        ) from None
