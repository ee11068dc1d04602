"""The World interface: N environments stepped as one batch, tensors on one device.

Shapes: N environments; T steps, H value heads and S numbers of a summary in a rollout.
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
Picture = NDArray[np.uint8]  # (h, w, 3), for display


class Step(NamedTuple):
    """One step of N environments; an environment whose episode ends resets in the same step.

    Where an episode has just ended, all fields except `reward`, `terminated`, `truncated` and
    `final_...` already belong to the next episode, and `first` is true.
    """

    observation: Tensor  # (N, ...) input of the policy
    view: Tensor  # (N, ...) input of the bonus; the same tensor unless they differ
    reward: Tensor  # (N,) float32, for the preceding action
    first: Tensor  # (N,) bool, this observation starts an episode
    terminated: Tensor  # (N,) bool, the task ended the episode
    truncated: Tensor  # (N,) bool, the episode was cut off, as by its step limit
    position: Tensor | None = None  # (N, 3) float32, in the world's units
    # The last observation of an episode, valid where terminated | truncated; other rows are
    # undefined. Only for bootstrapping a value: never stored in memory, never paired.
    final_observation: Tensor | None = None
    final_view: Tensor | None = None
    final_position: Tensor | None = None
    # (N, bytes) uint8, valid in the same rows: input of `redraw_observation`, from worlds that
    # were asked not to render final frames.
    final_snapshot: Tensor | None = None


@dataclass(frozen=True, kw_only=True)
class WorldSpec:
    """Shapes, dtypes, actions and capabilities of a world."""

    task: str  # such as "maze/sparse"
    num_envs: int  # N
    device: torch.device  # of all tensors
    observation_shape: tuple[int, ...]  # of one environment
    observation_dtype: torch.dtype  # torch.uint8 or torch.float32
    view_shape: tuple[int, ...]  # of one environment
    view_dtype: torch.dtype  # torch.uint8 or torch.float32
    num_actions: int  # discrete actions; 0 if actions are continuous
    action_shape: tuple[int, ...] = ()  # of one continuous action, each entry in [-1, 1]
    action_names: tuple[str, ...] = ()  # of discrete actions, for display
    gentle_play: float = 1.0  # bound on random actions in every second environment
    episode_steps: int  # an episode is truncated after this many steps
    can_restore: bool = False  # state() / load_state() resume exactly
    can_redraw: bool = False  # snapshot() / redraw(snapshot) reproduce any past view
    snapshot_bytes: int = 0  # of one environment's snapshot; 0 if there are none
    can_capture: bool = False  # step() never synchronises: a CUDA graph can capture it
    can_capture_redraw: bool = False  # the same for redraw()
    steps_in_two: bool = False  # begin_step() returns while the simulators work
    can_finish: bool = False  # finish() prevents episodes that are not needed
    has_position: bool = False  # steps have `position`
    oracle_cell: float = 0.0  # side of a Grid-Oracle cell, in units of `position`


class World(Protocol):
    """N environments stepped as one batch."""

    spec: WorldSpec

    def reset(self, seed: int | None = None) -> Step:
        """Starts a new episode in every environment; a seed restarts the episode sequence."""

    def step(self, actions: Tensor) -> Step:
        """Takes one action per environment: (N,) int64, or (N, *action_shape) float32."""

    def close(self) -> None:
        """Releases processes, windows and files; safe to call again."""


class TwoPartWorld(World, Protocol):
    """A world whose spec says `steps_in_two`: `step` is `begin_step`, then `end_step`.

    In between, the caller may only reset the world, restore a state or close it. A class that
    defines another `step` defines the two parts, too; otherwise only `step` is called.
    """

    def begin_step(self, actions: Tensor) -> None:
        """Starts the step in the simulators, and returns before it is complete."""

    def end_step(self) -> Step:
        """Waits for the simulators and returns the step."""


def can_step_in_two(world: World) -> bool:
    """True if the two parts do what `step` does: the same class defines them."""
    if world.spec.can_capture or not world.spec.steps_in_two:
        return False
    if "step" in getattr(world, "__dict__", {}):  # replaced in this object alone
        return False
    owner = next((each for each in type(world).__mro__ if "step" in vars(each)), object)
    return {"begin_step", "end_step"} <= vars(owner).keys()


class RestorableWorld(World, Protocol):
    """A world whose spec says `can_restore`."""

    def state(self) -> dict[str, Tensor]:
        """Returns a copy of everything that determines future steps."""

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        """Resumes bit for bit from the state of a world of the same task, options and size."""


class RedrawableWorld(World, Protocol):
    """A world whose spec says `can_redraw`."""

    def snapshot(self) -> Tensor:
        """Returns (N, at most 256) bytes from which the current views can be redrawn."""

    def redraw(self, snapshots: Tensor) -> Tensor:
        """Renders the views of any number of snapshots, identical to the originals."""

    def redraw_observation(self, snapshots: Tensor) -> Tensor:
        """Renders the observations of any number of snapshots, also of `final_snapshot`."""


class FinishingWorld(World, Protocol):
    """A world whose spec says `can_finish`."""

    def finish(self, where: Tensor) -> None:
        """Begins no episode after the current one in the rows of an (N,) mask.

        Each call replaces the mask; `reset` begins everywhere. Where a final episode has ended,
        the step has `first` as ever but shows the newest observation of that episode; the
        environment then ignores actions, stays where it is and is paid 0.
        """


class Rollout(NamedTuple):
    """T x N steps with actions, values and bonuses, which PPO and the bonuses learn from.

    `reward[t]`, `bonus[t]` and `terminated[t]` are for `action[t]`, taken at `observation[t]`.
    Where `first[t + 1]`, that action ended an episode: it was terminated where `terminated[t]`,
    truncated elsewhere. `observation[t + 1]` then already belongs to the next episode.
    """

    observation: Tensor  # (T + 1, N, ...)
    action: Tensor  # (T, N) int64, or (T, N, A) float32
    log_prob: Tensor  # (T, N) float32, under the policy that acted
    value: Tensor  # (T + 1, N, H) float32
    reward: Tensor  # (T, N) float32, as the world returned it
    bonus: Tensor  # (T, N) float32, as the bonus returned it
    first: Tensor  # (T + 1, N) bool
    terminated: Tensor  # (T, N) bool
    # The value of the last observation of a truncated episode; 0 elsewhere.
    final_value: Tensor  # (T, N, H) float32
    # For bonuses that need the views of `observation[:-1]`, one of:
    snapshot: Tensor | None = None  # (T, N, bytes) uint8, for `World.redraw`
    view: Tensor | None = None  # (T, N, ...), if the world cannot redraw
    # (T, N, S) at `observation[:-1]`, if the agent sees a summary of the bonus's memory.
    summary: Tensor | None = None

    @property
    def num_steps(self) -> int:
        """T, the number of steps."""
        return self.reward.shape[0]

    @property
    def num_envs(self) -> int:
        """N, the number of environments."""
        return self.reward.shape[1]

    @property
    def truncated(self) -> Tensor:
        """(T, N) bool, where an episode was truncated."""
        return self.first[1:] & ~self.terminated


@dataclass(frozen=True, kw_only=True)
class WorldConfig:
    """Options of every world; sizes are (height, width)."""

    num_envs: int  # stepped as one batch
    observation_size: tuple[int, int] | None = None  # policy's input; None: the world's default
    view_size: tuple[int, int] | None = None  # bonus's input; None: the world's default

    def __post_init__(self) -> None:
        check_at_least("world.num_envs", self.num_envs, 1)
        for name in ("observation_size", "view_size"):
            if getattr(self, name) is not None:
                check_size(f"world.{name}", getattr(self, name))

    def options(self, split: Split) -> dict[str, Any]:
        """Returns the options of make_world, except num_envs: the fields that are not None.

        `stagger` applies to the training split only: other splits need complete episodes.
        """
        options = {
            field.name: value
            for field in dataclasses.fields(self)
            if field.name != "num_envs" and (value := getattr(self, field.name)) is not None
        }
        if "stagger" in options:
            options["stagger"] = options["stagger"] and split == "train"
        return options
