"""ECO: refits the R-network during training to the agent's newest observations."""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import torch
from torch import Tensor

from episodic_curiosity.reachability.network import RNetwork
from episodic_curiosity.reachability.pairs import PairsConfig
from episodic_curiosity.reachability.replay import FrameReplay, Replay
from episodic_curiosity.reachability.training import FitConfig, NoPairsError, fit
from episodic_curiosity.support.checks import check_at_least, check_type


def _ten_epochs() -> FitConfig:
    return FitConfig(iterations=None, epochs=10, pairs=PairsConfig(sampler="online"))


@dataclass(frozen=True, kw_only=True)
class OnlineConfig:
    """Refit interval and history length, in steps of all environments together.

    The paper's are 720,000 for both: 15 GB of 84 x 84 colour frames. These are 1 GB.
    """

    refit_every: int = 50_000
    history: int = 50_000  # newest steps kept
    fit: FitConfig = field(default_factory=_ten_epochs)

    def __post_init__(self) -> None:
        check_at_least("refit_every", self.refit_every, 1)
        check_at_least("history", self.history, 1)
        check_type("fit", self.fit, FitConfig)

    @classmethod
    def for_envs(cls, num_envs: int) -> Self:
        """The default, or more if `num_envs` environments need more."""
        least = max(50_000, _ten_epochs().least_steps * num_envs)
        return cls(refit_every=least, history=least)


class OnlineFitting:
    """Keeps the newest observations and refits the R-network in place when due.

    Without `replay`, frames are kept in memory, allocated at the first observation:
    history * bytes per observation.
    """

    def __init__(
        self,
        r_network: RNetwork,
        num_envs: int,
        config: OnlineConfig,
        seed: int,
        replay: Replay | None = None,
    ) -> None:
        least = config.fit.least_steps * num_envs
        if min(config.refit_every, config.history) < least:
            raise ValueError(
                f"refit_every and history must be at least {least} for {num_envs} environments,"
                f" got {config.refit_every} and {config.history}"
            )
        self.r_network = r_network
        self.num_envs = num_envs
        self.config = config
        self.seed = seed
        self.replay = replay
        self.steps_since_fit = 0
        self.num_fits = 0

    @property
    def is_due(self) -> bool:
        return self.steps_since_fit >= self.config.refit_every

    def extend(self, rows: Tensor, first: Tensor) -> None:
        """Appends (R, N, ...) rows to the replay, with (R, N) marks of new episodes."""
        if self.replay is None:
            self.replay = self._frames_in_memory(rows.dtype)
        self.replay.extend(rows, first)
        self.steps_since_fit += first.numel()

    def refit(self) -> dict[str, float]:
        """Fits the R-network to the replay and returns metrics.

        Without pairs in the replay it warns and returns none; the R-network stays unchanged.
        """
        assert self.replay is not None
        self.steps_since_fit = 0
        # Each refit has a new optimiser, and random numbers from the seed and its number: none
        # need to be saved. No progress bar: the caller may have one.
        seed = self.seed + 1_000_003 * self.num_fits
        try:
            report = fit(
                self.r_network, self.replay, self.config.fit, seed=seed, progress=False
            )
        except NoPairsError as error:
            # Episodes may be too short now and longer later: no reason to end the run.
            warnings.warn(
                f"the R-network was not refitted: {error}", RuntimeWarning, stacklevel=3
            )
            return {}
        self.num_fits += 1
        return {
            "r_network_accuracy": report.held_out_accuracy,
            "r_network_training_accuracy": report.accuracy,
            "r_network_loss": report.loss,
        }

    def _frames_in_memory(self, dtype: torch.dtype) -> FrameReplay:
        num_steps = self.config.history // self.num_envs
        shape = self.r_network.config.view_shape
        return FrameReplay(num_steps, self.num_envs, shape, dtype, self.r_network.device)

    def state_dict(self) -> dict[str, Any]:
        return {
            "replay": None if self.replay is None else self.replay.state_dict(),
            "seed": self.seed,
            "steps_since_fit": self.steps_since_fit,
            "num_fits": self.num_fits,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        if state["replay"] is None:
            self.replay = None
        else:
            replay = self.replay or self._frames_in_memory(state["replay"]["views"].dtype)
            replay.load_state_dict(state["replay"])
            self.replay = replay
        self.seed = state["seed"]
        self.steps_since_fit = state["steps_since_fit"]
        self.num_fits = state["num_fits"]
