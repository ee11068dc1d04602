"""ECO: refits the R-network during training to the agent's newest observations."""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import torch
from torch import Tensor

from episodic_curiosity.reachability.batches import NoPairsError
from episodic_curiosity.reachability.fit_config import FitConfig
from episodic_curiosity.reachability.network import RNetwork
from episodic_curiosity.reachability.pairs import PairsConfig
from episodic_curiosity.reachability.recorded import RecordedSteps
from episodic_curiosity.reachability.replay import Replay
from episodic_curiosity.reachability.training import fit_r_network
from episodic_curiosity.support.checks import check_at_least, check_type
from episodic_curiosity.support.randomness import later_seed
from episodic_curiosity.support.state import check_parts


def _ten_epochs() -> FitConfig:
    return FitConfig(iterations=None, epochs=10, pairs=PairsConfig(sampler="online"))


@dataclass(frozen=True, kw_only=True)
class OnlineConfig:
    """Refit interval and history length, in steps of all environments together.

    The paper's are 720,000 for both: 15 GB of 84 x 84 colour frames. These are 1 GB.
    """

    refit_every: int = 50_000  # steps between two refits
    history: int = 50_000  # newest steps kept
    fit: FitConfig = field(default_factory=_ten_epochs)  # of each refit

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

    With a `replay`, whole rollouts are added to it by `extend`. Without, `record` keeps views
    in `recorded`, a module that belongs to the bonus's: history * bytes per observation.
    """

    def __init__(
        self,
        r_network: RNetwork,
        num_envs: int,
        config: OnlineConfig,
        seed: int,
        replay: Replay | None = None,
        view_dtype: torch.dtype | None = None,
    ) -> None:
        """`view_dtype` is that of `record`; None: bytes for frames, floats for vectors."""
        check_at_least("num_envs", num_envs, 1)
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
        self.num_fits = 0
        self._extended = 0  # steps since the last refit, by `extend`
        self.recorded: RecordedSteps | None = None
        if replay is None:
            num_steps, shape = config.history // num_envs, r_network.config.view_shape
            self.recorded = RecordedSteps(
                num_steps, num_envs, shape, view_dtype, r_network.device
            )

    @property
    def steps_since_fit(self) -> int:
        """Steps since the last refit, summed over environments; may synchronise."""
        return self._extended if self.recorded is None else self.recorded.num_new

    @property
    def is_due(self) -> bool:
        return self.steps_since_fit >= self.config.refit_every

    @property
    def is_late(self) -> bool:
        """True if two refits are overdue: `learn` is not called."""
        return self.steps_since_fit >= 2 * self.config.refit_every

    def extend(self, rows: Tensor, first: Tensor) -> None:
        """Appends (R, N, ...) rows to the replay, with (R, N) marks of new episodes."""
        assert self.replay is not None
        self.replay.extend(rows, first)
        self._extended += first.numel()

    def record(self, view: Tensor, first: Tensor, where: Tensor) -> None:
        """Keeps (N, ...) views of the rows in the (N,) mask `where`; never synchronises.

        Where the (N,) mask `first` is true, an episode begins.
        """
        assert self.recorded is not None
        self.recorded.add(view, first, where)

    def refit(self) -> dict[str, float]:
        """Fits the R-network to the newest observations and returns metrics.

        Without pairs among them it warns and returns none; the R-network stays unchanged.
        """
        self._extended = 0
        if self.recorded is not None:
            self.recorded.count()
        experience = self.recorded.newest() if self.recorded is not None else self.replay
        assert experience is not None
        # Each refit has a new optimiser, and random numbers from the seed and its number: none
        # need to be saved. No progress bar: the caller may have one.
        seed = later_seed(self.seed, 1_000_003 * self.num_fits)
        try:
            report = fit_r_network(
                self.r_network, experience, self.config.fit, seed=seed, progress=False
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

    def state_dict(self) -> dict[str, Any]:
        """Returns all but the recorded steps."""
        return {
            "replay": None if self.replay is None else self.replay.state_dict(),
            "seed": self.seed,
            "steps_since_fit": self.steps_since_fit,
            "num_fits": self.num_fits,
        }

    def check_state(self, state: Mapping[str, Any]) -> None:
        """Raises unless `load_state_dict` accepts this state."""
        check_parts(state, {"replay", "seed", "steps_since_fit", "num_fits"})
        if (state["replay"] is None) != (self.replay is None):
            raise ValueError("the state's replay must be of the same kind of training loop")
        if self.replay is not None:
            self.replay.check_state(state["replay"])

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restores a state that `check_state` accepts."""
        if self.replay is not None:
            self.replay.load_state_dict(state["replay"])
        self.seed = state["seed"]
        self._extended = state["steps_since_fit"]
        self.num_fits = state["num_fits"]
