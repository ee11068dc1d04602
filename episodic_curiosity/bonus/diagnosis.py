"""Tells, from what a run measures of itself, when curiosity cannot work and what to try."""

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

PATIENCE = 20  # looks that one judgement is made of: an odd update decides nothing


class Diagnosed(NamedTuple):
    """What of a run decides how its metrics are judged."""

    bonus: BonusConfig | None
    reward_scale: float  # what the task's rewards are multiplied with
    is_normalised: bool  # the bonus is
    is_online: bool  # the R-network is fitted in the run (ECO), not before it


class Evidence(NamedTuple):
    """An amount, and what it is small or large beside."""

    amount: float
    beside: float


@dataclass
class Sums:
    """Evidence of the looks since the last judgement, and that judgement."""

    looks: int = 0
    amount: float = 0.0
    beside: float = 0.0
    was_bad: bool = False


# What is bad, of means over PATIENCE looks.
TROUBLES: dict[str, Callable[[Evidence], bool]] = {
    # Held-out pairs told right: guessing gets one half.
    "accuracy": lambda mean: mean.amount < 0.6 * mean.beside,
    # Memories: 200 slots can be full for 0.78 of an episode of 900 steps, not more.
    "full": lambda mean: mean.amount > 0.75 * mean.beside,
    "constant": lambda mean: mean.amount < 0.01 * mean.beside,
    # Nothing at all is no matter of scale: that bonus is constant.
    "negligible": lambda mean: 0 < mean.amount < 0.01 * mean.beside,
    # The paper's own settings come to 250, for ant/escape-circle.
    "drowning": lambda mean: mean.amount > 300 * mean.beside,
}


class Diagnosis:
    """Warns of each kind of trouble once, and again where it comes back after it had gone.

    Every PATIENCE looks with evidence of a kind are judged together, and then forgotten.
    """

    def __init__(self, run: Diagnosed) -> None:
        self._run = run
        self._sums = {kind: Sums() for kind in TROUBLES}

    def look(self, metrics: Mapping[str, float]) -> list[str]:
        """One sentence for each trouble that has become plain with these metrics."""
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
        """All that is needed to warn as if nothing had happened, in plain numbers."""
        return {kind: list(astuple(sums)) for kind, sums in self._sums.items()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Goes on from such a state."""
        check_parts(state, set(TROUBLES))
        self._sums = {kind: Sums(*state[kind]) for kind in TROUBLES}


def _find(run: Diagnosed, metrics: Mapping[str, float]) -> dict[str, Evidence]:
    """What one look says, about as many kinds of trouble as it has metrics for."""
    found = {}
    if "r_network_accuracy" in metrics:
        found["accuracy"] = Evidence(metrics["r_network_accuracy"], 1.0)
    if "memory_full" in metrics:
        found["full"] = Evidence(metrics["memory_full"], 1.0)

    mean, spread = metrics["bonus_mean"], metrics["bonus_spread"]
    is_meant_to_vary = not isinstance(run.bonus, ConstantConfig)
    if is_meant_to_vary:
        # There is no telling what a step can pay where the bonus is an error (ICM).
        largest = abs(mean) if isinstance(run.bonus, ICMConfig) else _scale(run)[1]
        found["constant"] = Evidence(spread, largest)

    if "reward" in metrics:  # an episode has ended
        reward = abs(run.reward_scale * metrics["reward"])
        # Not the bonus of an episode, in which pay of both signs cancels out, but the most
        # that its absolute values can come to: every step counts.
        most = math.hypot(mean, spread) * metrics["length"] / metrics.get("bonus_divisor", 1.0)
        found["negligible"] = Evidence(most, reward)
        if is_meant_to_vary and reward > 0:
            # As if one episode had got all of it: a goal that is rarely found yet is what
            # curiosity is for, and no trouble.
            found["drowning"] = Evidence(abs(metrics["bonus"]), reward * metrics["episodes"])
    return found


def _tell(kind: str, run: Diagnosed, mean: Evidence) -> str:
    """What was seen, why that is bad and what to try."""
    match kind:
        case "accuracy":
            return (
                f"the R-network tells {mean.amount:.0%} of held-out pairs right, guessing gets "
                f"50%: its bonus is noise; try more steps to fit it to, {_fit(run)} with more "
                f"iterations, or views that better show where the agent is"
            )
        case "full":
            assert isinstance(run.bonus, EpisodicConfig)
            return (
                f"memories are full {mean.amount:.0%} of the time: what they drop looks new "
                f"and pays again; try a bonus.memory_capacity above "
                f"{run.bonus.memory_capacity}, or a bonus.novelty_threshold between "
                f"{run.bonus.novelty_threshold:.3g} and "
                f"{run.bonus.alpha * run.bonus.beta:.3g}, the most that a step pays"
            )
        case "constant":
            return (
                f"the bonus hardly varies, by {mean.amount:.3g} beside {mean.beside:.3g}: what "
                f"pays alike everywhere leads nowhere; {_advice_on_constant(run)}"
            )
        case "negligible":
            return (
                f"the bonus pays at most {mean.amount:.3g} an episode, the task "
                f"{mean.beside:.3g}: too little to be noticed; {_advice_on_scale(run, mean)}"
            )
        case _:
            return (
                f"the bonus pays {mean.amount:.3g} an episode, the task {mean.beside:.3g} in "
                f"all the episodes of one look: the reward is drowned; "
                f"{_advice_on_scale(run, mean)}"
            )


def _advice_on_constant(run: Diagnosed) -> str:
    match run.bonus:
        case EpisodicConfig():
            return (
                f"the R-network finds everything within reach, or nothing: see to {_fit(run)}"
            )
        case OracleConfig():
            return "no new cell is entered: try a smaller bonus.cell or a higher entropy"
        case _:
            return f"it is clipped to {MOST:g}: try a lower bonus.scale"


def _advice_on_scale(run: Diagnosed, mean: Evidence) -> str:
    """How to choose alpha: so that an episode's bonus and its reward are comparable."""
    if run.is_normalised:  # which undoes alpha
        suitable = run.reward_scale * mean.amount / mean.beside
        return (
            f"a normalised bonus wants rewards of its size: try ppo.reward_scale {suitable:.3g}"
        )
    name, scale = _scale(run)
    suitable = scale * mean.beside / mean.amount
    return (
        f"{name} has to suit the range of the task's rewards: try {suitable:.3g}, now {scale:g}"
    )


def _scale(run: Diagnosed) -> tuple[str, float]:
    """What the method multiplies its bonus with: the name of the setting and its value."""
    assert run.bonus is not None
    name = "alpha" if isinstance(run.bonus, EpisodicConfig | OracleConfig) else "scale"
    return f"bonus.{name}", getattr(run.bonus, name)


def _fit(run: Diagnosed) -> str:
    """The name of the settings by which the R-network is fitted."""
    return f"r_network.{'online' if run.is_online else 'random_play'}.fit"
