"""The newest steps of N environments that are recorded at different times.

Shapes: T steps are kept, H of them are held by the fullest environment, N environments,
B observations.
"""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from episodic_curiosity.reachability.replay import check_fits
from episodic_curiosity.support.checks import check_at_least


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


class RecordedSteps(nn.Module):
    """A ring of T views and a cursor for each environment.

    It takes T * N * bytes-per-observation of memory, allocated immediately. So does every
    state.
    """

    views: Tensor  # (T, N, ...)
    first: Tensor  # (T, N) bool
    added: Tensor  # (N,) int64, ever
    counted: Tensor  # () int64, of all environments, by `count`
    _env: Tensor  # (N,) int64, 0 .. N - 1

    def __init__(
        self,
        num_steps: int,
        num_envs: int,
        view_shape: tuple[int, ...],
        dtype: torch.dtype | None,
        device: torch.device,
    ) -> None:
        """Makes room for views of a dtype; None: bytes for frames, floats for vectors."""
        super().__init__()
        check_at_least("num_steps", num_steps, 1)
        dtype = dtype or (torch.uint8 if len(view_shape) == 3 else torch.float32)
        shape = (num_steps, num_envs, *view_shape)
        check_fits(shape, dtype, device)
        env = torch.arange(num_envs, device=device)
        self.register_buffer("views", torch.zeros(shape, dtype=dtype, device=device))
        self.register_buffer("first", env.new_zeros(shape[:2], dtype=torch.bool))
        self.register_buffer("added", torch.zeros_like(env))
        self.register_buffer("counted", env.new_zeros(()))
        self.register_buffer("_env", env, persistent=False)

    def add(self, view: Tensor, first: Tensor, where: Tensor) -> None:
        """Adds (N, ...) views where the (N,) mask is true, with (N,) marks of new episodes.

        Never synchronises with the GPU.
        """
        if view.dtype != self.views.dtype:
            raise TypeError(
                f"there is room for views of dtype {self.views.dtype}, got {view.dtype}: make "
                f"the bonus with view_dtype={view.dtype}, for ETD observation_dtype"
            )
        place = (self.added % len(self.views), self._env)
        rows = where.view(-1, *(1,) * (view.dim() - 1))
        self.views[place] = torch.where(rows, view, self.views[place])
        self.first[place] = torch.where(where, first, self.first[place])
        self.added += where

    @property
    def num_new(self) -> int:
        """The steps added since the last call of `count`; synchronises."""
        return int(self.added.sum() - self.counted)

    def count(self) -> None:
        """Makes all steps old ones, for `num_new`."""
        self.counted.copy_(self.added.sum())

    def newest(self) -> Aligned:
        """Returns all steps held, as training data; synchronises."""
        num_steps = len(self.views)
        held = self.added.clamp(max=num_steps)
        longest = int(held.max())
        time = torch.arange(longest, device=held.device)[:, None]  # (H, 1)
        slot = (self.added - longest + time) % num_steps
        # Up to the oldest one held, which may be in mid-episode.
        is_border = time <= longest - held
        return Aligned(self.views, slot, self.first[slot, self._env] | is_border)
