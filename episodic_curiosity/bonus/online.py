"""ECO: the episodic bonus with an R-network that is refitted to recent observations.

Savinov et al. 2019, section 2.3. Shapes: T steps, N environments.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from episodic_curiosity.bonus.episodic import EpisodicBonus, EpisodicConfig
from episodic_curiosity.bonus.memory import EpisodicMemory
from episodic_curiosity.bonus.state import check_parts
from episodic_curiosity.reachability.frame_file import FrameFile
from episodic_curiosity.reachability.online import OnlineFitting
from episodic_curiosity.reachability.replay import Replay, SnapshotReplay
from episodic_curiosity.worlds.base import Rollout, World


class OnlineEpisodicBonus(EpisodicBonus):
    """The episodic bonus with the R-network of an OnlineFitting; zero before the first fit."""

    needs_views = True

    def __init__(
        self, fitting: OnlineFitting, memory: EpisodicMemory, config: EpisodicConfig
    ) -> None:
        super().__init__(fitting.r_network, memory, config)
        self.fitting = fitting

    def learn(self, rollout: Rollout) -> dict[str, float]:
        """Adds the rollout to the replay; if a refit is due, refits and returns its metrics.

        A refit clears the memories, because their embeddings are of the previous network.
        """
        self.fitting.extend(_seen(rollout), rollout.first[:-1])
        if not self.fitting.is_due:
            return {}
        report = self.fitting.refit()
        if report:
            self.memory.clear(where=torch.ones_like(rollout.first[0]))
        return report

    def metrics(self) -> dict[str, float]:
        """Metrics of the episodic bonus and of the refits; synchronises with the GPU."""
        return super().metrics() | {
            "r_network_fits": float(self.fitting.num_fits),
            "r_network_steps_since_fit": float(self.fitting.steps_since_fit),
        }

    def state_dict(self) -> dict[str, Any]:
        """A copy of the state, including the replay (without the frames of a FrameFile)."""
        return super().state_dict() | {"online": self.fitting.state_dict()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restores a state with the same R-network, environments, memory and replay."""
        check_parts(state, {"r_network", "memory", "paid", "online"})
        episodic = {name: part for name, part in state.items() if name != "online"}
        self.check_state(episodic)
        self.fitting.load_state_dict(state["online"])
        super().load_state_dict(episodic)


def make_replay(world: World, history: int, *, file: Path, spare: int) -> Replay:
    """Creates a replay for the latest `history` steps, summed over all environments.

    It keeps snapshots in memory if the world can redraw them, else frames in `file`. `spare` is
    the largest number of steps per environment between a checkpoint and the second after it.
    """
    spec = world.spec
    num_steps = history // spec.num_envs
    if spec.can_redraw:
        return SnapshotReplay.for_world(world, num_steps)
    return FrameFile(
        file, num_steps, spec.num_envs, spec.view_shape, spec.view_dtype, spare=spare
    )


def _seen(rollout: Rollout) -> Tensor:
    """The snapshots or views (T, N, ...) of a rollout, for the replay."""
    if rollout.snapshot is not None:
        return rollout.snapshot
    return rollout.observation[:-1] if rollout.view is None else rollout.view
