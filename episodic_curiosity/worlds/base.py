"""Observations in: N environments stepped as one batch, tensors on one device.

Shapes: N environments; of a rollout, T steps and H value heads.
"""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from episodic_curiosity.support.checks import check_at_least, check_size

Split = Literal["r-network", "train", "validation", "test"]
SPLITS: tuple[Split, ...] = ("r-network", "train", "validation", "test")
Picture = NDArray[np.uint8]  # (h, w, 3), for people


class Step(NamedTuple):
    """What N environments emit at once; an environment that ends resets in the same step.

    Where an episode has just ended, everything but `reward`, `terminated`, `truncated` and the
    `final_...` fields already belongs to the next episode, and `first` is true.
    """

    observation: Tensor  # (N, ...) what the policy sees
    view: Tensor  # (N, ...) what curiosity sees; the same tensor unless they differ
    reward: Tensor  # (N,) float32, for the action that led here
    first: Tensor  # (N,) bool, this observation opens an episode
    terminated: Tensor  # (N,) bool, the task ended
    truncated: Tensor  # (N,) bool, the clock ran out
    position: Tensor | None = None  # (N, 3) float32, in the world's own units
    # The last observation of an episode, valid where terminated | truncated, other rows are
    # undefined: for bootstrapping a value only, never remembered, never paired.
    final_observation: Tensor | None = None
    final_view: Tensor | None = None
    final_position: Tensor | None = None
    # (N, bytes) uint8, valid in the same rows: what `redraw_observation` makes the final
    # observation from, of worlds that were asked to leave final frames undrawn.
    final_snapshot: Tensor | None = None


@dataclass(frozen=True, kw_only=True)
class WorldSpec:
    """What a world emits, takes and can do."""

    task: str
    num_envs: int
    device: torch.device
    observation_shape: tuple[int, ...]
    observation_dtype: torch.dtype
    view_shape: tuple[int, ...]
    view_dtype: torch.dtype
    num_actions: int  # discrete actions; 0 where actions are continuous
    action_shape: tuple[int, ...] = ()  # of one continuous action, each entry in [-1, 1]
    action_names: tuple[str, ...] = ()
    gentle_play: float = 1.0  # bound of random actions in every second environment
    episode_steps: int  # an episode is truncated after so many steps
    can_restore: bool = False  # state() / load_state() continue as if nothing had happened
    can_redraw: bool = False  # snapshot() / redraw(snapshot) give back any past view
    snapshot_bytes: int = 0  # of one environment's snapshot, where there are any
    can_capture: bool = False  # on a GPU, a CUDA graph can hold step(): nothing is waited for
    can_capture_redraw: bool = False  # or redraw()
    has_position: bool = False
    oracle_cell: float = 0.0  # side of a Grid-Oracle cell, in units of `position`


class World(Protocol):
    """N environments stepped as one batch."""

    spec: WorldSpec

    def reset(self, seed: int | None = None) -> Step:
        """Begins a new episode everywhere; a seed begins the whole series of them anew."""

    def step(self, actions: Tensor) -> Step:
        """Acts once everywhere: (N,) int64 actions, or (N, *action_shape) float32."""

    def close(self) -> None:
        """Gives back processes, windows and files; harmless when called again."""


class RestorableWorld(World, Protocol):
    """A world whose spec says `can_restore`."""

    def state(self) -> dict[str, Tensor]:
        """A copy of everything that decides what comes next."""

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        """Continues bit for bit where a world of the same task, options and size was."""


class RedrawableWorld(World, Protocol):
    """A world whose spec says `can_redraw`."""

    def snapshot(self) -> Tensor:
        """What the present views depend on, (N, at most 256) bytes."""

    def redraw(self, snapshots: Tensor) -> Tensor:
        """The views of any number of snapshots, exactly as they were."""

    def redraw_observation(self, snapshots: Tensor) -> Tensor:
        """The observations of any number of snapshots, `final_snapshot` among them."""


class Rollout(NamedTuple):
    """What PPO and the bonuses learn from: T x N steps with actions, values and bonuses.

    `reward[t]`, `bonus[t]` and `terminated[t]` are for `action[t]`, taken at `observation[t]`.
    Where `first[t + 1]`, that action ended an episode: by the task where `terminated[t]`, by
    the clock elsewhere. `observation[t + 1]` then already belongs to the next episode.
    """

    observation: Tensor  # (T + 1, N, ...)
    action: Tensor  # (T, N) int64, or (T, N, A) float32
    log_prob: Tensor  # (T, N) float32, of the action when it was taken
    value: Tensor  # (T + 1, N, H) float32
    reward: Tensor  # (T, N) float32, as the world pays it
    bonus: Tensor  # (T, N) float32, as curiosity pays it
    first: Tensor  # (T + 1, N) bool
    terminated: Tensor  # (T, N) bool
    # The value of the last observation of an episode that the clock cut off; 0 elsewhere.
    final_value: Tensor  # (T, N, H) float32
    # Where a bonus asks for them, what the views of `observation[:-1]` can be had from again:
    snapshot: Tensor | None = None  # (T, N, bytes) uint8, for `World.redraw`
    view: Tensor | None = None  # (T, N, ...), of worlds that cannot redraw

    @property
    def num_steps(self) -> int:
        """T."""
        return self.reward.shape[0]

    @property
    def num_envs(self) -> int:
        """N."""
        return self.reward.shape[1]

    @property
    def truncated(self) -> Tensor:
        """(T, N) bool, where the clock ended an episode."""
        return self.first[1:] & ~self.terminated


@dataclass(frozen=True, kw_only=True)
class WorldConfig:
    """The environments; sizes are height and width."""

    num_envs: int  # played at once
    observation_size: tuple[int, int] | None = None  # what the policy sees; None: as it comes
    view_size: tuple[int, int] | None = None  # what curiosity sees; None: what the policy sees

    def __post_init__(self) -> None:
        check_at_least("world.num_envs", self.num_envs, 1)
        for name in ("observation_size", "view_size"):
            if getattr(self, name) is not None:
                check_size(f"world.{name}", getattr(self, name))

    def options(self, split: Split) -> dict[str, Any]:
        """What make_world takes besides the number of environments: the fields that are set.

        First episodes begin in mid-clock (`stagger`) in training alone: elsewhere whole
        episodes are wanted.
        """
        options = {
            field.name: value
            for field in dataclasses.fields(self)
            if field.name != "num_envs" and (value := getattr(self, field.name)) is not None
        }
        if "stagger" in options:
            options["stagger"] = options["stagger"] and split == "train"
        return options
