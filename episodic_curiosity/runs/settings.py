"""The paper's tasks, methods and hyper-parameters, each with its source.

Savinov et al. 2019. Tables S2 to S5 are in its supplement; the authors' code release has more
digits than the tables.
"""

import dataclasses
import textwrap
from dataclasses import dataclass
from typing import NamedTuple

from episodic_curiosity.agent.ppo import PPOConfig
from episodic_curiosity.bonus.base import BonusConfig
from episodic_curiosity.bonus.constant import ConstantConfig
from episodic_curiosity.bonus.episodic import EpisodicConfig
from episodic_curiosity.bonus.icm import ICMConfig
from episodic_curiosity.bonus.oracle import OracleConfig
from episodic_curiosity.bonus.registry import find_method
from episodic_curiosity.worlds.dmlab.levels import DMLAB_30
from episodic_curiosity.worlds.registry import FAMILIES
from episodic_curiosity.worlds.television import find_programme

_MAZES = {
    "sparse": "+10 at the goal of a random maze, then a new start in the same maze; 1800 steps",
    "very-sparse": "sparse, with starts at least 10 cells from the goal",
    "sparse-doors": "sparse, with random doors that change at every start",
    "no-reward": "sparse without reward; the score is the number of cells covered",
    "no-reward-no-fire": "no-reward without the fire action",
    "dense-1": "keys and doors +1, the goal +50 and the end of the episode; 900 steps",
    "dense-2": "good objects +1, bad objects -1, the tenth ends the episode; 900 steps",
}
TASKS = {
    **{f"maze/{name}": line for name, line in _MAZES.items()},
    **{f"dmlab/{name}": line for name, line in _MAZES.items()},
    "vizdoom/dense": "MyWayHome: +1 at the goal, starts all over the map; 525 steps",
    "vizdoom/sparse": "MyWayHome, starting in a room at medium distance",
    "vizdoom/very-sparse": "MyWayHome, starting in the farthest room",
    "ant/no-reward": "a four-legged body on a coloured floor, no reward; 1000 steps",
    "ant/escape-circle": "+1 at each circle around the start, from radius 10 outwards",
}
# Families with an open set of tasks.
OPEN = {
    "gym": "gym/<id>: any Gymnasium environment, such as gym/CartPole-v1",
    "vizdoom": "vizdoom/<path>: any scenario, as a .cfg or .wad file",
    "dmlab": "dmlab/<level>: any level of DeepMind Lab, such as those of DMLab-30:\n"
    + textwrap.fill(", ".join(DMLAB_30), width=96, initial_indent="  ", subsequent_indent="  "),
}
# Names for sets of tasks, for an R-network fitted to all of them.
TASK_SETS = {"dmlab-30": tuple(f"dmlab/{level}" for level in DMLAB_30)}  # section S4


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
    "dmlab": _MAZE,
    "vizdoom": _VIZDOOM,
    "ant/no-reward": _ANT_NO_REWARD,
    "ant/escape-circle": _ANT_ESCAPE,
    "gym": _GYM,
}


class Budget(NamedTuple):
    """Amount of data and training for an R-network that is fitted before a run."""

    steps: int  # of random play, section 2.3
    iterations: int  # of 64 pairs, section S2


_LAB_BUDGET = Budget(steps=2_500_000, iterations=200_000)
BUDGETS = {
    "maze": _LAB_BUDGET,
    "dmlab": _LAB_BUDGET,
    "vizdoom": Budget(steps=300_000, iterations=50_000),
    "ant": _LAB_BUDGET,  # not in the paper
    "gym": _LAB_BUDGET,  # not in the paper
}


def known_tasks() -> dict[str, str]:
    """A one-line description of each task of the known families."""
    return {task: line for task, line in TASKS.items() if task.split("/")[0] in FAMILIES}


def check_task(task: str) -> None:
    """Raises unless the task exists; the message lists the choices."""
    name, plus, programme = task.partition("+")
    family, _, member = name.partition("/")
    is_open = family in OPEN and family in FAMILIES and member
    if name not in known_tasks() and not is_open:
        choices = [*known_tasks(), *(f"{family}/..." for family in OPEN if family in FAMILIES)]
        raise ValueError(f"there is no task {task!r}; choose one of {', '.join(choices)}")
    if plus and family != "vizdoom":  # in ViZDoom, a plus is part of the path
        find_programme(programme)


def split_tasks(names: str) -> tuple[str, ...]:
    """Splits a list such as "a,b,c", expanding task sets; raises as `check_task` does."""
    tasks: tuple[str, ...] = ()
    for name in names.split(","):
        tasks += TASK_SETS.get(name, (name,))
    for task in tasks:
        check_task(task)
    return tasks


def find_settings(task: str, method: str) -> Settings:
    """The hyper-parameters of a method on a task."""
    check_task(task)
    record = find_method(method)
    name = task.partition("+")[0]
    known = SETTINGS[name if name in SETTINGS else name.partition("/")[0]]
    if method in known:
        return known[method]
    bonus = record.config() if record.config else None
    return Settings(ppo=PPOConfig(**record.ppo), bonus=bonus, source=f"{method}'s own")
