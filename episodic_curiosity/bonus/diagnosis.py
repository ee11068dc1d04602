"""Warns, based on a run's metrics, when curiosity cannot work, and suggests what to try."""

import math
from collections.abc import Callable, Mapping
from dataclasses import astuple, dataclass
from typing import Any, NamedTuple

from episodic_curiosity.support.state import check_parts

PATIENCE = 20  # checks averaged per verdict, so that a single update decides nothing


class Advice(NamedTuple):
    """Facts about a kind of bonus for the warnings; texts may name {config.field}."""

    scale: str = "scale"  # the field of its config that scales it, if it has one
    varies: bool = True  # it is meant to
    is_bounded: bool = True  # a step pays at most `scale`
    if_constant: str = "check what it is shown"
    if_full: str = "try a larger memory"


class Diagnosed(NamedTuple):
    """The settings that the verdicts depend on."""

    advice: Advice
    config: Any  # of the bonus; None: there is none
    reward_scale: float = 1.0  # factor on the task's rewards
    is_normalised: bool = False  # the bonus is normalised
    fit: str = "the FitConfig"  # where the settings of the R-network's fit are

    @property
    def scale(self) -> float | None:
        """The scale of the bonus; None: a custom bonus that has none."""
        value: float | None = getattr(self.config, self.advice.scale, None)
        return value


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
        if self._run.config is None or metrics.get("r_network_fits") == 0:
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
    if run.advice.varies:
        most_paid = run.scale if run.advice.is_bounded else None
        found["constant"] = Evidence(spread, abs(mean) if most_paid is None else most_paid)

    if "reward" in metrics:  # an episode has ended
        reward = abs(run.reward_scale * metrics["reward"])
        # An upper bound on the sum of absolute bonuses in an episode: in the plain sum,
        # positive and negative bonuses cancel out.
        most = math.hypot(mean, spread) * metrics["length"] / metrics.get("bonus_divisor", 1.0)
        found["negligible"] = Evidence(most, reward)
        if run.advice.varies and reward > 0:
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
                f"{run.fit}, views that better show where the agent is, or, if little is far "
                f"within an episode, {run.fit}.pairs.far_from other_episodes"
            )
        case "full":
            return (
                f"memories are full {mean.amount:.0%} of the time: replaced observations look "
                f"novel again; {run.advice.if_full.format(config=run.config)}"
            )
        case "constant":
            return (
                f"the bonus is nearly constant, with a spread of {mean.amount:.3g} against "
                f"{mean.beside:.3g}: it cannot guide exploration; "
                f"{run.advice.if_constant.format(config=run.config, fit=run.fit)}"
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


def _advice_on_scale(run: Diagnosed, mean: Evidence) -> str:
    """Suggests a scale that makes an episode's bonus comparable to its reward."""
    if run.is_normalised:  # alpha has no effect
        suitable = run.reward_scale * mean.amount / mean.beside
        return (
            f"rewards should be as large as the normalised bonus: try ppo.reward_scale "
            f"{suitable:.3g}"
        )
    if run.scale is None:
        suitable = mean.beside / mean.amount
        return (
            f"it must fit the range of the task's rewards: try {suitable:.3g} times the bonus"
        )
    suitable = run.scale * mean.beside / mean.amount
    return (
        f"bonus.{run.advice.scale} must fit the range of the task's rewards: try "
        f"{suitable:.3g} instead of {run.scale:g}"
    )
