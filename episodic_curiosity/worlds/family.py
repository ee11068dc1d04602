"""The record of a family of worlds: everything that the rest of the package needs of it.

A record imports nothing that its worlds depend on: `make` and `scenery` are strings, imported
when they are needed.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, field, fields
from typing import Any, Literal, NamedTuple, get_args

from episodic_curiosity.support.checks import check_choice, check_type
from episodic_curiosity.support.importing import check_object_name
from episodic_curiosity.worlds.base import WorldConfig

FrameSizes = Literal["fixed", "shared", "separate", "views"]
Televisions = Literal["none", "unswitched", "any"]
_NAME = re.compile(r"[a-z][\w-]*")


class OpenTasks(NamedTuple):
    """Tasks that are not listed: any name that the family's worlds accept."""

    pattern: str  # of the name after the slash, such as "<id>"
    line: str  # one line about them


class Budget(NamedTuple):
    """Amount of data and training for an R-network that is fitted before a run."""

    steps: int  # of random play
    iterations: int  # of 64 pairs


@dataclass(frozen=True, kw_only=True, eq=False)
class Family:
    """A kind of world; its tasks are named "<family>/<task>"."""

    name: str  # before the slash
    tasks: Mapping[str, str]  # one line about each task, by its name after the slash
    open_tasks: OpenTasks | None = None  # tasks that are not listed
    task_sets: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # by set's name
    # Options of a run; all but num_envs have defaults. Presets set a field `stagger`, if any.
    config: type[WorldConfig]
    # "module:Class", called as Class(task, num_envs=, seed=, device=, split=, **options): the
    # name after the slash, a torch.device and the config's options.
    make: str
    simulated_on: Literal["device", "host"]  # host: on the CPU, wherever the tensors are
    # Sizes that a preset sets. fixed: none. shared: one for policy and curiosity, unless the
    # preset has another for curiosity. separate: both. views: curiosity's alone, if a bonus
    # needs it; observations are not frames. A function gets a task's name after the slash.
    frames: FrameSizes | Callable[[str], FrameSizes] = "fixed"
    can_redraw: bool = False  # its specs' `can_redraw`, known without making a world
    # "module:function" for films, called as in scenery.py; None: films show uint8 views.
    scenery: str | None = None
    # none: a "+" is part of a task's name. unswitched: "+noise" alone. any: its worlds take the
    # option idle=True, for a last action "idle" that switches the television.
    television: Televisions = "none"
    # The module or file that a task's name after the slash loads, in words such as "imports the
    # module x"; None: only the family's own.
    loads: Callable[[str], str | None] | None = None
    # Hyper-parameters of a run. `settings` is a key of runs/settings.py, such as "gym"; "": the
    # family's own name.
    settings: str = ""
    ppo: Mapping[str, Any] = field(default_factory=dict)  # fields of PPOConfig that differ
    budget: Budget | None = None  # None: that of `settings`

    def __post_init__(self) -> None:
        """Raises, in one sentence, unless the record is complete."""
        object.__setattr__(self, "settings", self.settings or self.name)
        if not isinstance(self.name, str) or not _NAME.fullmatch(self.name):
            raise ValueError(
                f"a family's name must be lower-case letters, digits, - or _, got {self.name!r}"
            )
        if not self.tasks and self.open_tasks is None:
            raise ValueError(f"the family {self.name} needs tasks or open_tasks, got neither")
        for task, line in self.tasks.items():
            if not isinstance(line, str) or len(line.splitlines()) != 1:
                raise ValueError(f"{self.name}/{task} needs one line about it, got {line!r}")
        self._check_config()
        check_object_name(f"make of the family {self.name}", self.make)
        if self.scenery is not None:
            check_object_name(f"scenery of the family {self.name}", self.scenery)
        for name, choices in (
            ("simulated_on", ("device", "host")),
            ("television", get_args(Televisions)),
        ):
            check_choice(f"{name} of the family {self.name}", getattr(self, name), choices)
        if not callable(self.frames):
            check_choice(f"frames of the family {self.name}", self.frames, get_args(FrameSizes))

    def _check_config(self) -> None:
        config = self.config
        if not isinstance(config, type) or not issubclass(config, WorldConfig):
            raise ValueError(
                f"config of the family {self.name} must be a subclass of WorldConfig, "
                f"got {config!r}"
            )
        for each in fields(config):
            has_default = each.default is not MISSING or each.default_factory is not MISSING
            if not has_default and each.name != "num_envs":
                raise ValueError(f"{config.__name__}.{each.name} must have a default value")


def split_task(task: str) -> tuple[str, str]:
    """Splits a task's name into its family's and the name after the slash."""
    check_type("task", task, str)
    family, _, name = task.partition("/")
    return family, name
