"""The config of one run, as resolved and stored by `curiosity train`.

Steps are environment steps of four frames each, summed over all environments.
"""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import NoneType
from typing import Any, Literal, Self

from episodic_curiosity.agent.ppo import PPOConfig
from episodic_curiosity.bonus.base import BonusConfig
from episodic_curiosity.bonus.registry import find_method, methods
from episodic_curiosity.reachability.architecture import (
    ARCHITECTURES,
    Branches,
    ComparatorName,
    EmbedderName,
)
from episodic_curiosity.reachability.fit_config import FitConfig
from episodic_curiosity.reachability.online import OnlineConfig
from episodic_curiosity.support.checks import check_at_least, check_choice, check_type
from episodic_curiosity.support.config_json import check_fields, from_plain, to_plain
from episodic_curiosity.support.randomness import seed_words
from episodic_curiosity.worlds.base import WorldConfig
from episodic_curiosity.worlds.registry import find_family

MOST_STEPS = 10**12  # a month at the fastest rate measured; far more would overflow dates


@dataclass(frozen=True, kw_only=True)
class RandomPlayConfig:
    """Random play to fit an R-network to before a run (EC); its steps count as the run's."""

    steps: int = 2_500_000  # summed over all environments
    tasks: tuple[str, ...] = ()  # with equal shares; empty: the task of the run
    fit: FitConfig = field(default_factory=FitConfig)

    def __post_init__(self) -> None:
        check_at_least("r_network.random_play.steps", self.steps, 1)


@dataclass(frozen=True, kw_only=True)
class RNetworkOptions:
    """The R-network: its architecture and its training data."""

    embedder: EmbedderName | None = None  # None: small or tiny for frames, mlp for vectors
    comparator: ComparatorName = "dot"  # mlp is the paper's, dot is fast
    branches: Branches = "unshared"  # shared: one embedding for memories and queries
    embedding_size: int = 512  # dimension of an embedding
    frozen_embedding: bool = False  # train only the comparator, on a random embedding
    source: Path | None = None  # folder with a fitted R-network, instead of random play
    random_play: RandomPlayConfig | None = None  # EC
    online: OnlineConfig | None = None  # ECO

    def __post_init__(self) -> None:
        if (self.random_play is None) == (self.online is None):
            raise ValueError(
                "set one of r_network.random_play and r_network.online, got both or neither"
            )

    @property
    def architecture(self) -> dict[str, Any]:
        """Arguments of RNetwork, except the view shape."""
        names = ("embedder", "comparator", "branches", "embedding_size", "frozen_embedding")
        return {name: getattr(self, name) for name in names}

    def with_architecture(self, name: str) -> Self:
        """A copy with the architecture of this name."""
        check_choice("the R-network", name, ARCHITECTURES)
        changed = dataclasses.replace(self, **ARCHITECTURES[name])
        # With no embedder named, it is chosen by the view: frames or vectors.
        return changed if name == "paper" else dataclasses.replace(changed, embedder=None)


@dataclass(frozen=True, kw_only=True)
class RecordConfig:
    """Intervals of writing, in updates."""

    metrics_every: int = 1  # updates per line of metrics
    checkpoint_every: int = 50  # updates per checkpoint

    def __post_init__(self) -> None:
        check_at_least("record.metrics_every", self.metrics_every, 1)
        check_at_least("record.checkpoint_every", self.checkpoint_every, 1)


@dataclass(frozen=True, kw_only=True)
class Run:
    """The complete config of one run: one cell of a table with one seed."""

    task: str  # see `curiosity tasks`
    method: str  # see `curiosity methods`
    preset: str  # source of the other defaults, see docs/presets.md
    steps: int  # summed over all environments, including random play
    seed: int  # of all random numbers
    device: Literal["auto", "cpu", "cuda"] = "auto"  # auto: a GPU if available
    world: WorldConfig
    ppo: PPOConfig
    bonus: BonusConfig | None
    normalise_bonus: bool = False  # divide by the spread of its return; not in the paper
    r_network: RNetworkOptions | None  # for methods with an R-network
    record: RecordConfig = field(default_factory=RecordConfig)

    def __post_init__(self) -> None:
        check_choice("device", self.device, ("auto", "cpu", "cuda"))
        seed_words(self.seed)
        check_type("world", self.world, find_family(self.task).config)
        check_type("ppo", self.ppo, PPOConfig)
        check_type("record", self.record, RecordConfig)
        check_at_least("steps", self.steps, 1)
        if self.steps > MOST_STEPS:
            raise ValueError(f"steps must be at most {MOST_STEPS:,}, got {self.steps:,}")
        if self.batch_size % self.ppo.num_minibatches:
            raise ValueError(
                f"{self.ppo.num_steps} steps of {self.world.num_envs} environments cannot be "
                f"cut into {self.ppo.num_minibatches} equal minibatches"
            )
        self._check_method()

    def _check_method(self) -> None:
        """Raises unless the bonus and the R-network's training data fit the method."""
        method = find_method(self.method)
        check_type("bonus", self.bonus, method.config or NoneType)
        kind = RNetworkOptions if method.r_network else NoneType
        check_type("r_network", self.r_network, kind)
        if method.r_network and getattr(self.r_network, method.r_network) is None:
            raise ValueError(f"{self.method} needs r_network.{method.r_network}")
        if self.r_network and self.r_network.random_play:
            for task in self.r_network.random_play.tasks:
                if find_family(task).config is not type(self.world):
                    raise ValueError(f"an R-network for {self.task} cannot be fitted to {task}")
        if self.ppo.sees_memory and not method.bonus.summary_size:
            seen = [name for name, other in methods().items() if other.bonus.summary_size]
            raise ValueError(
                f"ppo.sees_memory is for methods with a memory of views, {', '.join(seen)}; "
                f"got {self.method}"
            )
        if self.normalise_bonus and self.bonus is None:
            raise ValueError(f"{self.method} has no bonus to normalise")

    @property
    def batch_size(self) -> int:
        """Steps per update."""
        return self.world.num_envs * self.ppo.num_steps

    @property
    def random_play(self) -> RandomPlayConfig:
        """The random play that the R-network is fitted to before the run (EC)."""
        play = self.r_network.random_play if self.r_network else None
        if play is None:
            raise ValueError(f"{self.method} fits no R-network to random play")
        return play

    @property
    def random_play_steps(self) -> int:
        """Steps of random play before the first update, for fitting the R-network."""
        if self.r_network is None or self.r_network.source is not None:
            return 0
        play = self.r_network.random_play
        return 0 if play is None else play.steps

    @property
    def num_updates(self) -> int:
        """Number of updates within `steps`; raises if there is none."""
        play = self.random_play_steps
        self.check_random_play()
        num_updates = (self.steps - play) // self.batch_size
        if num_updates < 1:
            after = f", after {play:,} steps of random play" if play else ""
            raise ValueError(
                f"{self.steps:,} steps are too few: one rollout takes {self.batch_size:,} "
                f"({self.world.num_envs} x {self.ppo.num_steps}){after}"
            )
        return num_updates

    def check_random_play(self) -> None:
        """Raises if random play is too short to contain far pairs."""
        if not self.random_play_steps:
            return
        play = self.random_play
        num_envs = self.world.num_envs * max(1, len(play.tasks))
        least = play.fit.pairs.margin + 2
        if play.steps // num_envs < least:
            raise ValueError(
                f"{play.steps:,} steps of random play are {play.steps // num_envs} for each of "
                f"{num_envs} environments, fitting an R-network takes at least {least}: give "
                f"more --steps or --r-network.random-play.steps, or fewer --world.num-envs"
            )

    def steps_after(self, num_updates: int) -> int:
        """Steps after `num_updates` updates, including random play."""
        return self.random_play_steps + num_updates * self.batch_size

    @property
    def name(self) -> str:
        """The default name of the run's folder."""
        name = f"{self.task}__{self.method}__s{self.seed}"
        return name.replace("/", "-").replace("+", "_")

    def to_dict(self) -> dict[str, Any]:
        """Returns plain values, for JSON."""
        plain: dict[str, Any] = to_plain(self)
        return plain

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Self:
        """Inverts `to_dict`; a ValueError names the field that does not fit."""
        check_fields(cls, plain)
        bonus = find_method(str(plain["method"])).config or NoneType
        types = {"world": find_family(str(plain["task"])).config, "bonus": bonus}
        try:
            return from_plain(cls, plain, types=types)
        except TypeError as error:  # null for what the method needs
            raise ValueError(str(error)) from None


def in_full(plain: Mapping[str, Any]) -> dict[str, Any]:
    """A stored config with the fields that were added later; raises as `from_dict` does."""
    return Run.from_dict(plain).to_dict()
