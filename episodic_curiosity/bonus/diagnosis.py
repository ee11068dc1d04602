"""Warns, based on a run's metrics, when curiosity cannot work, and suggests what to try."""

import math
from collections.abc import Callable, Mapping
from dataclasses import astuple, dataclass
from typing import Any, NamedTuple

from episodic_curiosity.bonus.constant import ConstantConfig
from episodic_curiosity.bonus.episodic import EpisodicConfig
from episodic_curiosity.bonus.icm import MOST, ICMConfig
from episodic_curiosity.bonus.oracle import OracleConfig
from episodic_curiosity.bonus.registry import BonusConfig
from episodic_curiosity.bonus.state import check_parts

PATIENCE = 20  # checks averaged per verdict, so that a single update decides nothing


class Diagnosed(NamedTuple):
    """The settings of a run that the verdicts depend on."""

    bonus: BonusConfig | None
    reward_scale: float  # factor on the task's rewards
    is_normalised: bool  # the bonus is normalised
    is_online: bool  # the R-network is fitted during the run (ECO), not before it (EC)


class Evidence(NamedTuple):
    """An amount and the reference it is compared with."""

    amount: float
    beside: float


@dataclass
class Sums:
    """Sums of the evidence since the last verdict, and that verdict."""

    looks: int = 0
    amount: float = 0.0
    beside: float = 0.0
    was_bad: bool = False


# Conditions for a warning, on means over PATIENCE checks.
TROUBLES: dict[str, Callable[[Evidence], bool]] = {
    # Held-out accuracy; chance is 0.5.
    "accuracy": lambda mean: mean.amount < 0.6 * mean.beside,
    # Share of full memories: 200 slots can be full for at most 0.78 of a 900-step episode.
    "full": lambda mean: mean.amount > 0.75 * mean.beside,
    "constant": lambda mean: mean.amount < 0.01 * mean.beside,
    # A bonus of exactly zero is constant, not badly scaled.
    "negligible": lambda mean: 0 < mean.amount < 0.01 * mean.beside,
    # The paper's settings reach 250 on ant/escape-circle.
    "drowning": lambda mean: mean.amount > 300 * mean.beside,
}


class Diagnosis:
    """Warns once about each kind of trouble, and again if it returns.

    A verdict is made on the mean of PATIENCE checks with evidence of that kind.
    """

    def __init__(self, run: Diagnosed) -> None:
        self._run = run
        self._sums = {kind: Sums() for kind in TROUBLES}

    def look(self, metrics: Mapping[str, float]) -> list[str]:
        """Returns one sentence per trouble newly detected with these metrics."""
        if self._run.bonus is None or metrics.get("r_network_fits") == 0:
            return []  # ECO pays nothing before its first fit
        warnings = []
        for kind, evidence in _find(self._run, metrics).items():
            sums = self._sums[kind]
            sums.looks += 1
            sums.amount += evidence.amount
            sums.beside += evidence.beside
            if sums.looks == PATIENCE:
                mean = Evidence(sums.amount / PATIENCE, sums.beside / PATIENCE)
                is_bad = TROUBLES[kind](mean)
                self._sums[kind] = Sums(was_bad=is_bad)
                if is_bad and not sums.was_bad:
                    warnings.append(_tell(kind, self._run, mean))
        return warnings

    def state_dict(self) -> dict[str, Any]:
        """The complete state, in plain numbers."""
        return {kind: list(astuple(sums)) for kind, sums in self._sums.items()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restores a state of `state_dict`."""
        check_parts(state, set(TROUBLES))
        self._sums = {kind: Sums(*state[kind]) for kind in TROUBLES}


def _find(run: Diagnosed, metrics: Mapping[str, float]) -> dict[str, Evidence]:
    """The evidence by kind of trouble, for the kinds whose metrics are present."""
    found = {}
    if "r_network_accuracy" in metrics:
        found["accuracy"] = Evidence(metrics["r_network_accuracy"], 1.0)
    if "memory_full" in metrics:
        found["full"] = Evidence(metrics["memory_full"], 1.0)

    mean, spread = metrics["bonus_mean"], metrics["bonus_spread"]
    is_meant_to_vary = not isinstance(run.bonus, ConstantConfig)
    if is_meant_to_vary:
        # ICM's bonus is a prediction error, so its maximum is unknown.
        largest = abs(mean) if isinstance(run.bonus, ICMConfig) else _scale(run)[1]
        found["constant"] = Evidence(spread, largest)

    if "reward" in metrics:  # an episode has ended
        reward = abs(run.reward_scale * metrics["reward"])
        # An upper bound on the sum of absolute bonuses in an episode: in the plain sum,
        # positive and negative bonuses cancel out.
        most = math.hypot(mean, spread) * metrics["length"] / metrics.get("bonus_divisor", 1.0)
        found["negligible"] = Evidence(most, reward)
        if is_meant_to_vary and reward > 0:
            # The reward of all episodes: a goal that is still rarely found is what curiosity
            # is for, and no trouble.
            found["drowning"] = Evidence(abs(metrics["bonus"]), reward * metrics["episodes"])
    return found


def _tell(kind: str, run: Diagnosed, mean: Evidence) -> str:
    """The warning: the finding, why it matters and what to try."""
    match kind:
        case "accuracy":
            return (
                f"the R-network's held-out accuracy is {mean.amount:.0%}, chance is 50%: its "
                f"bonus is noise; try more steps of training data, more iterations in "
                f"{_fit(run)}, or views that better show where the agent is"
            )
        case "full":
            assert isinstance(run.bonus, EpisodicConfig)
            return (
                f"memories are full {mean.amount:.0%} of the time: replaced observations look "
                f"novel again; try a bonus.memory_capacity above "
                f"{run.bonus.memory_capacity}, or a bonus.novelty_threshold between "
                f"{run.bonus.novelty_threshold:.3g} and "
                f"{run.bonus.alpha * run.bonus.beta:.3g}, the largest bonus of a step"
            )
        case "constant":
            return (
                f"the bonus is nearly constant, with a spread of {mean.amount:.3g} against "
                f"{mean.beside:.3g}: it cannot guide exploration; {_advice_on_constant(run)}"
            )
        case "negligible":
            return (
                f"the bonus is at most {mean.amount:.3g} per episode, the reward "
                f"{mean.beside:.3g}: the bonus is negligible; {_advice_on_scale(run, mean)}"
            )
        case _:
            return (
                f"the bonus is {mean.amount:.3g} per episode, the reward {mean.beside:.3g} in "
                f"all episodes between two checks: the bonus drowns the reward; "
                f"{_advice_on_scale(run, mean)}"
            )


def _advice_on_constant(run: Diagnosed) -> str:
    match run.bonus:
        case EpisodicConfig():
            return f"the R-network finds everything reachable, or nothing: check {_fit(run)}"
        case OracleConfig():
            return "no new cell is entered: try a smaller bonus.cell or a higher entropy"
        case _:
            return f"it is clipped at {MOST:g}: try a lower bonus.scale"


def _advice_on_scale(run: Diagnosed, mean: Evidence) -> str:
    """Suggests a scale that makes an episode's bonus comparable to its reward."""
    if run.is_normalised:  # alpha has no effect
        suitable = run.reward_scale * mean.amount / mean.beside
        return (
            f"rewards should be as large as the normalised bonus: try ppo.reward_scale "
            f"{suitable:.3g}"
        )
    name, scale = _scale(run)
    suitable = scale * mean.beside / mean.amount
    return (
        f"{name} must fit the range of the task's rewards: try {suitable:.3g} instead of "
        f"{scale:g}"
    )


def _scale(run: Diagnosed) -> tuple[str, float]:
    """Name and value of the setting that scales the bonus."""
    assert run.bonus is not None
    name = "alpha" if isinstance(run.bonus, EpisodicConfig | OracleConfig) else "scale"
    return f"bonus.{name}", getattr(run.bonus, name)


def _fit(run: Diagnosed) -> str:
    """Path of the R-network's fit settings."""
    return f"r_network.{'online' if run.is_online else 'random_play'}.fit"
