"""Observations in: N environments stepped as one batch, tensors on one device.

Shapes: N environments.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any, Literal, NamedTuple, Protocol

import torch
from torch import Tensor

Split = Literal["r-network", "train", "validation", "test"]
SPLITS: tuple[Split, ...] = ("r-network", "train", "validation", "test")


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


FAMILIES = ("maze", "dmlab", "vizdoom", "gym", "ant")


def what_it_loads(task: str) -> str | None:
    """Says which module or file a task's name asks for; None where it asks for neither."""
    family, _, member = task.partition("/")
    module = member.rpartition(":")[0]
    if family == "gym" and module:
        return f"imports the Python module {module}"
    if family == "vizdoom" and not is_bare(member):
        return f"plays the file {member}"
    return None


def is_bare(name: str) -> bool:
    """Whether a file's name says nothing of where the file is."""
    return PurePath(name).name == name


def make_world(
    task: str,
    *,
    num_envs: int,
    seed: int,
    device: torch.device | str = "cpu",
    split: Split = "train",
    **options: Any,
) -> World:
    """Makes the world of a task such as "maze/sparse+noise" or "gym/CartPole-v1".

    A suffix puts a television into the picture; the options are those of the family's world
    (and of the television). A family's dependencies are imported only when it is asked for.
    """
    name, plus, programme = task.partition("+")
    family, _, member = name.partition("/")
    if family not in FAMILIES:
        known = ", ".join(f"{known}/..." for known in FAMILIES)
        raise ValueError(f"there is no task {task!r}; tasks are named {known}")
    if family == "vizdoom":
        from episodic_curiosity.worlds.vizdoom.world import ViZDoomWorld

        scenario = task.partition("/")[2]  # maybe a path, with a plus of its own
        return ViZDoomWorld(
            scenario, num_envs=num_envs, seed=seed, device=device, split=split, **options
        )
    if not plus and "pictures" in options:
        raise ValueError(f"{task} has no television that could show pictures")
    if plus:
        from episodic_curiosity.worlds import television

        pictures = options.pop("pictures", None)
        if television.find_programme(programme).switched:
            if family not in ("maze", "dmlab"):
                raise ValueError(f"{programme} needs an idle action, which only mazes have")
            options["idle"] = True
        inner = make_world(
            name, num_envs=num_envs, seed=seed, device=device, split=split, **options
        )
        return television.Television(inner, programme, seed=seed, pictures=pictures)
    if family == "dmlab":
        from episodic_curiosity.worlds.dmlab.world import DMLabWorld

        return DMLabWorld(
            member, num_envs=num_envs, seed=seed, device=device, split=split, **options
        )
    if family == "gym":
        from episodic_curiosity.worlds.gymnasium import GymnasiumWorld

        return GymnasiumWorld(
            member, num_envs=num_envs, seed=seed, device=device, split=split, **options
        )
    if family == "ant":
        from episodic_curiosity.worlds.ant.world import AntWorld

        return AntWorld(
            member, num_envs=num_envs, seed=seed, device=device, split=split, **options
        )

    from episodic_curiosity.worlds.maze.world import MazeWorld

    return MazeWorld(
        member, num_envs=num_envs, seed=seed, device=device, split=split, **options
    )
