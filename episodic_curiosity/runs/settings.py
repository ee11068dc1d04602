"""The paper's methods and hyper-parameters, each with its source.

Savinov et al. 2019. Tables S2 to S5 are in its supplement; the authors' code release has more
digits than the tables.
"""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from episodic_curiosity.agent.ppo import PPOConfig
from episodic_curiosity.bonus.base import BonusConfig
from episodic_curiosity.bonus.constant import ConstantConfig
from episodic_curiosity.bonus.episodic import EpisodicConfig
from episodic_curiosity.bonus.icm import ICMConfig
from episodic_curiosity.bonus.method import Method
from episodic_curiosity.bonus.oracle import OracleConfig
from episodic_curiosity.bonus.registry import find_method
from episodic_curiosity.support.checks import check_choice
from episodic_curiosity.worlds.family import Budget, Family, split_task
from episodic_curiosity.worlds.registry import find_family, read_task


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Hyper-parameters of a method on a task, and their source."""

    ppo: PPOConfig
    bonus: BonusConfig | None
    source: str


def _settings(
    source: str, base: PPOConfig, rate: float, entropy: float, bonus: BonusConfig | None
) -> Settings:
    ppo = dataclasses.replace(base, learning_rate=rate, entropy_coefficient=entropy)
    return Settings(ppo=ppo, bonus=bonus, source=source)


LAB_TABLE = "Table S3 and the authors' release"
OURS = "not in the paper"

# Methods that a table has no column for are last in each group: EC's learning rate and entropy
# with a bonus about as large as EC's. ECO uses EC's column, as in the paper.
_LAB = PPOConfig()  # the defaults are the release's for DeepMind Lab
_LAB_ICM = ICMConfig(scale=0.55, ratio=0.96, strength=64.0)
_LAB_EC = _settings(LAB_TABLE, _LAB, 2.5e-4, 2.0535250e-3, EpisodicConfig(alpha=0.0301724))
_MAZE = {
    "ppo": _settings(LAB_TABLE, _LAB, 1.9306977e-4, 1.0941138e-3, None),
    "ppo+icm": _settings("Table S3", _LAB, 2.5e-4, 4.2e-3, _LAB_ICM),
    "ppo+oracle": _settings(
        LAB_TABLE, _LAB, 2.5e-4, 6.6116903e-3, OracleConfig(alpha=0.0524691)
    ),
    "ppo+ec": _LAB_EC,
    "ppo+eco": _LAB_EC,
    "ppo+1": _settings(OURS, _LAB, 2.5e-4, 2.0535250e-3, ConstantConfig(scale=0.0301724)),
}

_DOOM = PPOConfig(reward_scale=5.0)
_DOOM_EC = _settings("Table S2", _DOOM, 2.5e-4, 0.01, EpisodicConfig(alpha=1.0))
_DOOM_ICM = ICMConfig(scale=0.01, ratio=0.2, strength=10.0)
_VIZDOOM = {
    "ppo": _settings("Table S2", _DOOM, 2.5e-4, 0.01, None),
    "ppo+icm": _settings("Table S2", _DOOM, 2.5e-4, 0.01, _DOOM_ICM),
    "ppo+ec": _DOOM_EC,
    "ppo+eco": _DOOM_EC,
    "ppo+oracle": _settings(OURS, _DOOM, 2.5e-4, 0.01, OracleConfig(alpha=1.0)),
    "ppo+1": _settings(OURS, _DOOM, 2.5e-4, 0.01, ConstantConfig(scale=1.0)),
}

# The epochs, the clip range and the constant learning rate are the release's. beta is 1 because
# episodes can end early.
_LEGS = PPOConfig(num_epochs=10, clip_range=0.2, decay="constant")
_STILL = dataclasses.replace(_LEGS, reward_scale=0.0)


def _ant_memory(alpha: float) -> EpisodicConfig:
    return EpisodicConfig(
        alpha=alpha, beta=1.0, aggregate="tenth_largest", memory_capacity=1000
    )


_STILL_EC = _settings(
    "Table S4 and the authors' release", _STILL, 7.49894e-5, 2.23872e-5, _ant_memory(1.0)
)
_ANT_NO_REWARD = {
    "ppo": _settings("Table S4", _STILL, 3e-4, 8e-6, None),
    "ppo+1": _settings("Table S4", _STILL, 7e-5, 1e-4, ConstantConfig(scale=1.0)),
    "ppo+ec": _STILL_EC,
    "ppo+eco": _STILL_EC,
    "ppo+oracle": _settings(OURS, _STILL, 7.49894e-5, 2.23872e-5, OracleConfig(alpha=1.0)),
    "ppo+icm": _settings(OURS, _STILL, 7.49894e-5, 2.23872e-5, _LAB_ICM),
}
_ESCAPE_EC = _settings("Table S5", _LEGS, 4.64e-5, 1.78e-6, _ant_memory(0.25))
_ANT_ESCAPE = {
    "ppo": _settings("Table S5", _LEGS, 1e-4, 1.21e-6, None),
    "ppo+1": _settings("Table S5", _LEGS, 1e-4, 1.43e-6, ConstantConfig(scale=0.85)),
    "ppo+ec": _ESCAPE_EC,
    "ppo+eco": _ESCAPE_EC,
    "ppo+oracle": _settings(OURS, _LEGS, 4.64e-5, 1.78e-6, OracleConfig(alpha=0.25)),
    "ppo+icm": _settings(OURS, _LEGS, 4.64e-5, 1.78e-6, _LAB_ICM),
}

# Any Gymnasium environment: DeepMind Lab's settings, with beta 1: episodes may end early.
_GYM_EC = _settings(OURS, _LAB, 2.5e-4, 2.0535250e-3, EpisodicConfig(alpha=0.0301724, beta=1.0))
_GYM = {name: dataclasses.replace(settings, source=OURS) for name, settings in _MAZE.items()}
_GYM |= {"ppo+ec": _GYM_EC, "ppo+eco": _GYM_EC}


# By family, or by task if the paper has a table for each task.
SETTINGS = {
    "maze": _MAZE,
    "vizdoom": _VIZDOOM,
    "ant/no-reward": _ANT_NO_REWARD,
    "ant/escape-circle": _ANT_ESCAPE,
    "gym": _GYM,
}


# By family: section 2.3 has the steps, section S2 the iterations.
_LAB_BUDGET = Budget(steps=2_500_000, iterations=200_000)
BUDGETS = {
    "maze": _LAB_BUDGET,
    "vizdoom": Budget(steps=300_000, iterations=50_000),
    "ant": _LAB_BUDGET,  # not in the paper
    "gym": _LAB_BUDGET,  # not in the paper
}


def find_settings(task: str, method: str) -> Settings:
    """The hyper-parameters of a method on a task.

    The first that exist of: the task's with the method, the family's with the method, the
    task's or family's for `ppo+ec`, the method's own.
    """
    family, name, _ = read_task(task)
    record = find_method(method)
    if family.settings != family.name:
        check_choice(f"settings of the family {family.name}", family.settings, SETTINGS)
    for place in (f"{family.name}/{name}", family.settings):
        if numbers := SETTINGS.get(place):
            found = numbers.get(method) or _like_ec(numbers["ppo+ec"], record)
            return _with_own(found, family)
    if not family.ppo and record.ppo is None:
        raise ValueError(
            f"there are no hyper-parameters of {method} on {task}: the family {family.name} "
            f"needs `ppo` or `settings`, one of {', '.join(SETTINGS)}, or the method `ppo`"
        )
    bonus = record.config() if record.config else None
    ppo = _changed(PPOConfig(), record.ppo or {}, f"the method {method}")
    own = Settings(ppo=ppo, bonus=bonus, source=f"the method {method}")
    return _with_own(own, family)


def _like_ec(ec: Settings, method: Method) -> Settings:
    """PPO's numbers of `ppo+ec`, for a method that is in no table, with its own changes."""
    shared = {}
    if method.config and issubclass(
        method.config, EpisodicConfig
    ):  # the same alpha, beta, F, K
        shared = {field.name: getattr(ec.bonus, field.name) for field in fields(EpisodicConfig)}
    source = f"those of ppo+ec{', changed by the method' if method.ppo else ''}; {OURS}"
    ppo = _changed(ec.ppo, method.ppo or {}, f"the method {method.name}")
    bonus = method.config(**shared) if method.config else None
    return Settings(ppo=ppo, bonus=bonus, source=source)


def _with_own(found: Settings, family: Family) -> Settings:
    """The settings with the family's own values of PPOConfig."""
    if not family.ppo:
        return found
    whose = f"the family {family.name}"
    return dataclasses.replace(found, ppo=_changed(found.ppo, family.ppo, whose), source=whose)


def _changed(ppo: PPOConfig, changes: Mapping[str, Any], whose: str) -> PPOConfig:
    names = {each.name for each in dataclasses.fields(PPOConfig)}
    if unknown := ", ".join(sorted(changes.keys() - names)):
        raise ValueError(f"ppo of {whose} names {unknown}, which PPOConfig does not have")
    return dataclasses.replace(ppo, **changes)


def find_budget(task: str) -> Budget:
    """The data and training of an R-network that is fitted before a run of the task."""
    family = find_family(task)
    budget = family.budget or BUDGETS.get(split_task(family.settings)[0])
    if budget is None:
        raise ValueError(
            f"there is no R-network's budget for {task}: the family {family.name} needs "
            f"`budget` or `settings`, one of {', '.join(SETTINGS)}"
        )
    return budget
