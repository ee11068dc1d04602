"""A world one can reason about: walkers on a line, who go on or stay."""

import dataclasses

import torch
from torch import Tensor

from episodic_curiosity.worlds.base import Step, WorldSpec

NUM_FEATURES = 16


class Corridor:
    """N walkers; an action of 1 goes on by one place, 0 stays. Episodes end by the clock.

    A place is seen as waves of different lengths. `can_redraw` adds snapshots: the place.
    """

    def __init__(
        self,
        *,
        num_envs: int = 3,
        episode_steps: int = 60,
        start: int = 0,
        can_redraw: bool = True,
        num_features: int = NUM_FEATURES,
        task: str = "toy/corridor",
    ) -> None:
        self.spec = WorldSpec(
            task=task,
            num_envs=num_envs,
            device=torch.device("cpu"),
            observation_shape=(num_features,),
            observation_dtype=torch.float32,
            view_shape=(num_features,),
            view_dtype=torch.float32,
            num_actions=2,
            episode_steps=episode_steps,
            can_redraw=can_redraw,
            snapshot_bytes=2 if can_redraw else 0,
        )
        self.start = start
        self.clock = torch.arange(num_envs) * 5  # so that borders differ
        self.place = self.clock + start
        self.actions: list[Tensor] = []

    def reset(self, seed: int | None = None) -> Step:  # noqa: ARG002
        return self._emit(torch.ones(self.spec.num_envs, dtype=torch.bool))

    def step(self, actions: Tensor) -> Step:
        self.actions.append(actions)
        self.clock += 1
        ended = self.clock >= self.spec.episode_steps
        self.clock[ended] = 0
        moves = actions if self.spec.num_actions else actions.reshape(len(ended), -1)[:, 0] > 0
        self.place = torch.where(ended, self.start, self.place + moves)
        return self._emit(ended)

    def close(self) -> None: ...

    def snapshot(self) -> Tensor:
        return torch.stack([self.place % 256, self.place // 256], dim=1).to(torch.uint8)

    def redraw(self, snapshots: Tensor) -> Tensor:
        low, high = snapshots.long().unbind(dim=1)
        return self._views(low + 256 * high)

    def redraw_observation(self, snapshots: Tensor) -> Tensor:
        return self.redraw(snapshots)

    def with_continuous_actions(self, shape: tuple[int, ...], gentle: float) -> "Corridor":
        self.spec = dataclasses.replace(
            self.spec, num_actions=0, action_shape=shape, gentle_play=gentle
        )
        return self

    def _views(self, place: Tensor) -> Tensor:
        waves = torch.arange(1, self.spec.view_shape[0] + 1) * 0.05
        return torch.sin(place[:, None] * waves)

    def _emit(self, first: Tensor) -> Step:
        view, nothing = self._views(self.place), torch.zeros(self.spec.num_envs)
        return Step(view, view, nothing, first, torch.zeros_like(first), first.clone())
