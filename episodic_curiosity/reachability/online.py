"""ECO: the R-network is refitted, while the agent learns, to what the agent has just seen."""

import warnings
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

from episodic_curiosity.checks import check_at_least
from episodic_curiosity.reachability.experience import FrameReplay
from episodic_curiosity.reachability.network import RNetwork
from episodic_curiosity.reachability.pairs import PairsConfig
from episodic_curiosity.reachability.training import FitConfig, FitReport, NoPairsError, fit


def _ten_epochs() -> FitConfig:
    return FitConfig(iterations=None, epochs=10, pairs=PairsConfig(sampler="online"))


@dataclass(frozen=True, kw_only=True)
class OnlineConfig:
    """When to refit and to how much; steps are counted over all environments together.

    The paper's are 720,000 for both: 15 GB of 84 x 84 colour frames. These are 1 GB.
    """

    refit_every: int = 50_000
    history: int = 50_000  # steps kept, the newest
    fit: FitConfig = field(default_factory=_ten_epochs)

    def __post_init__(self) -> None:
        check_at_least("refit_every", self.refit_every, 1)
        check_at_least("history", self.history, 1)


class OnlineFitting:
    """Keeps the newest observations and refits the R-network, in place, when it is due.

    Memory is allocated at the first observation: history * bytes per observation.
    """

    def __init__(
        self, r_network: RNetwork, num_envs: int, config: OnlineConfig, seed: int
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
        self.replay: FrameReplay | None = None
        self.steps_since_fit = 0
        self.num_fits = 0
        self.last_report: FitReport | None = None

    def add(self, view: Tensor, first: Tensor) -> FitReport | None:
        """Keeps one observation of every environment; refits and reports when it is due."""
        self._replay_for(view).add(view, first)
        self.steps_since_fit += self.num_envs
        if self.steps_since_fit < self.config.refit_every:
            return None
        self.steps_since_fit = 0
        return self._refit()

    def _refit(self) -> FitReport | None:
        assert self.replay is not None
        # Every refit has an optimiser and random numbers of its own, from the seed and its
        # number: nothing of them has to be saved.
        seed = self.seed + 1_000_003 * self.num_fits
        try:
            self.last_report = fit(self.r_network, self.replay, self.config.fit, seed=seed)
        except NoPairsError as error:
            # An agent may live too briefly now and longer later: no reason to end the run.
            warnings.warn(
                f"the R-network was not refitted: {error}", RuntimeWarning, stacklevel=4
            )
            return None
        self.num_fits += 1
        return self.last_report

    def _replay_for(self, view: Tensor) -> FrameReplay:
        if self.replay is None:
            num_steps = max(1, self.config.history // self.num_envs)
            shape = self.r_network.config.view_shape
            self.replay = FrameReplay(num_steps, self.num_envs, shape, view.dtype, view.device)
        return self.replay

    def state_dict(self) -> dict[str, Any]:
        return {
            "replay": None if self.replay is None else self.replay.state_dict(),
            "seed": self.seed,
            "steps_since_fit": self.steps_since_fit,
            "num_fits": self.num_fits,
            "last_report": None if self.last_report is None else vars(self.last_report),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.replay = None
        if state["replay"] is not None:
            self._replay_for(state["replay"]["views"][0]).load_state_dict(state["replay"])
        self.seed = state["seed"]
        self.steps_since_fit = state["steps_since_fit"]
        self.num_fits = state["num_fits"]
        report = state["last_report"]
        self.last_report = None if report is None else FitReport(**report)
