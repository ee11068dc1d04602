"""The newest steps of N environments that are recorded at different times.

Shapes: T steps are kept, H of them are held by the fullest environment, N environments,
B observations.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor

from episodic_curiosity.reachability.replay import check_fits
from episodic_curiosity.support.checks import check_at_least
from episodic_curiosity.support.state import check_parts


class Aligned(NamedTuple):
    """An experience of recorded steps, aligned at the newest step of every environment.

    Environments that hold fewer than H steps begin with empty ones. Each empty step is marked
    as an episode of its own, from which no pair can be drawn.
    """

    rows: Tensor  # (T, N, ...)
    slot: Tensor  # (H, N) int64, where each step is
    first: Tensor  # (H, N) bool
    can_capture: bool = True

    def views(self, time: Tensor, env: Tensor) -> Tensor:
        return self.rows[self.slot[time, env], env]


class RecordedSteps:
    """A ring of T views for each environment, with a cursor of its own.

    T * N * bytes-per-observation of memory, allocated at once.
    """

    def __init__(
        self,
        num_steps: int,
        num_envs: int,
        view_shape: tuple[int, ...],
        dtype: torch.dtype,
        device: torch.device,
    ) -> None:
        check_at_least("num_steps", num_steps, 1)
        shape = (num_steps, num_envs, *view_shape)
        check_fits(shape, dtype, device)
        self._views = torch.zeros(shape, dtype=dtype, device=device)
        self._first = torch.zeros((num_steps, num_envs), dtype=torch.bool, device=device)
        self._added = torch.zeros(num_envs, dtype=torch.int64, device=device)  # ever
        self._counted = 0  # by `count_new`, of all environments
        self._env = torch.arange(num_envs, device=device)

    @property
    def memory_bytes(self) -> int:
        return self._views.nbytes + self._first.nbytes

    def add(self, view: Tensor, first: Tensor, where: Tensor) -> None:
        """Adds (N, ...) views where the (N,) mask is true, with (N,) marks of new episodes.

        Never synchronises with the GPU.
        """
        if view.dtype != self._views.dtype:
            raise TypeError(
                f"views must keep their dtype {self._views.dtype}, got {view.dtype}"
            )
        place = (self._added % len(self._views), self._env)
        rows = where.view(-1, *(1,) * (view.dim() - 1))
        self._views[place] = torch.where(rows, view, self._views[place])
        self._first[place] = torch.where(where, first, self._first[place])
        self._added += where

    def count_new(self) -> int:
        """Returns the steps added since the last call; synchronises."""
        before, self._counted = self._counted, int(self._added.sum())
        return self._counted - before

    def newest(self) -> Aligned:
        """Returns all steps held, as training data; synchronises."""
        num_steps = len(self._views)
        held = self._added.clamp(max=num_steps)
        longest = int(held.max())
        time = torch.arange(longest, device=held.device)[:, None]  # (H, 1)
        slot = (self._added - longest + time) % num_steps
        # Up to the oldest one held, which may be in mid-episode.
        is_border = time <= longest - held
        return Aligned(self._views, slot, self._first[slot, self._env] | is_border)

    def state_dict(self) -> dict[str, Tensor]:
        """Returns a copy of the slots in use, and of the cursors."""
        used = min(int(self._added.max()), len(self._views))
        return {
            "views": self._views[:used].clone(),
            "first": self._first[:used].clone(),
            "added": self._added.clone(),
        }

    def check_state(self, state: Mapping[str, Any]) -> None:
        """Raises unless the state is of as many environments, steps and such views."""
        check_parts(state, {"views", "first", "added"})
        used = len(state["views"])
        room = tuple(self._views.shape)
        if tuple(state["views"].shape) != (used, *room[1:]) or used > room[0]:
            raise ValueError(
                f"the saved steps are {tuple(state['views'].shape)}, there is room for {room}"
            )
        if state["views"].dtype != self._views.dtype:
            raise ValueError(
                f"the saved steps are {state['views'].dtype}, wanted {self._views.dtype}"
            )
        if state["first"].shape != (used, room[1]) or state["added"].shape != room[1:2]:
            raise ValueError("the saved steps and their marks do not fit together")
        if min(int(state["added"].max()), room[0]) != used or int(state["added"].min()) < 0:
            raise ValueError(f"the saved steps are {used}, their cursors say otherwise")

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restores a state of `state_dict`; its steps are not new to `count_new`."""
        self.check_state(state)
        used = len(state["views"])
        self._views[:used] = state["views"]
        self._first[:used] = state["first"]
        self._added.copy_(state["added"])
        self._counted = int(self._added.sum())
