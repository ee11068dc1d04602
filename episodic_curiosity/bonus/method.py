"""The record of a method: everything that the rest of the package needs of it."""

import dataclasses
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from episodic_curiosity.bonus.base import Bonus, BonusConfig

NAME = re.compile(r"ppo(\+[a-z0-9-]+)?")


@dataclass(frozen=True, kw_only=True)
class Method:
    """A method that agents can be trained with: PPO and a bonus."""

    name: str  # as users type it: "ppo" or "ppo+..."
    line: str  # what it pays for, for `curiosity methods`
    config: type[BonusConfig] | None  # its options; None: it has none
    bonus: type[Bonus]  # made by its `for_run`
    r_network: Literal["random_play", "online"] | None = None  # fitted before or during a run
    # Fields of PPOConfig that differ from those of `ppo+ec` on the same task, or from the
    # defaults in a family that has none; None: only families with settings can be trained on.
    ppo: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not NAME.fullmatch(self.name):
            raise ValueError(
                f"a method's name must be like ppo+count, in lower case, got {self.name!r}"
            )
        if not isinstance(self.line, str) or not self.line:
            raise ValueError(f"the method {self.name} must have a line that says what it pays")
        if not (isinstance(self.bonus, type) and issubclass(self.bonus, Bonus)):
            raise TypeError(
                f"the bonus of {self.name} must be a subclass of Bonus, got {self.bonus!r}"
            )
        if missing := sorted(getattr(self.bonus, "__abstractmethods__", ())):
            raise TypeError(
                f"the bonus of {self.name} must define {' and '.join(missing)}, "
                f"{self.bonus.__name__} does not"
            )
        if self.config is None:
            return
        if not (isinstance(self.config, type) and issubclass(self.config, BonusConfig)):
            raise TypeError(
                f"the config of {self.name} must be a subclass of BonusConfig, "
                f"got {self.config!r}"
            )
        for each in dataclasses.fields(self.config):
            if each.default is each.default_factory is dataclasses.MISSING:
                raise ValueError(
                    f"the config of {self.name} must have defaults, got none for {each.name}"
                )
