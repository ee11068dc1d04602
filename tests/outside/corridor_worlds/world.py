"""Corridors: a body goes west or east, and sees itself as a white column."""

import os
import signal
from collections.abc import Mapping

import torch
from torch import Tensor

from episodic_curiosity.worlds.base import Split, Step, WorldSpec

STOPS_AFTER = int(os.environ.get("CORRIDOR_STOPS_AFTER", "-1"))  # steps, as Ctrl-C would


class CorridorWorld:
    """N corridors; the start depends on the seed, the environment and the episode."""

    def __init__(
        self,
        task: str,
        *,
        num_envs: int,
        seed: int,
        device: torch.device,
        split: Split,  # noqa: ARG002, all corridors are alike
        observation_size: tuple[int, int] = (36, 36),
        view_size: tuple[int, int] | None = None,
        length: int = 9,
        episode_steps: int = 6,
    ) -> None:
        assert view_size in (None, observation_size)
        shape = (3, *observation_size)
        self.spec = WorldSpec(
            task=f"corridor/{task}",
            num_envs=num_envs,
            device=device,
            observation_shape=shape,
            observation_dtype=torch.uint8,
            view_shape=shape,
            view_dtype=torch.uint8,
            num_actions=2,
            action_names=("west", "east"),
            episode_steps=episode_steps,
            can_restore=True,
            has_position=True,
            oracle_cell=1.0,
        )
        self._length, self._seed = length, seed
        self._place, self._clock, self._episode = torch.zeros(
            3, num_envs, dtype=torch.int64, device=device
        )
        self._begun, self._steps_left = False, STOPS_AFTER

    def reset(self, seed: int | None = None) -> Step:
        if seed is not None:
            self._seed = seed
            self._episode.zero_()
        everywhere = torch.ones_like(self._clock, dtype=torch.bool)
        self._begin(everywhere)
        self._begun = True
        return self._emit(torch.zeros_like(everywhere))._replace(first=everywhere)

    def step(self, actions: Tensor) -> Step:
        if not self._begun:
            raise RuntimeError("call reset() first")
        if actions.shape != self._clock.shape or actions.is_floating_point():
            raise ValueError(f"an action per corridor is wanted, got {tuple(actions.shape)}")
        if ((actions < 0) | (actions > 1)).any():
            raise ValueError("actions must be 0 or 1")
        self._steps_left -= 1
        if self._steps_left == 0:
            os.kill(os.getpid(), signal.SIGINT)
        self._place = (self._place + 2 * actions - 1).clamp(0, self._length - 1)
        self._clock = self._clock + 1
        arrived = self._place == self._length - 1
        ended = arrived | (self._clock == self.spec.episode_steps)
        last, position = self._draw(), self._position()
        self._begin(ended)
        step = self._emit(arrived)._replace(first=ended, truncated=ended & ~arrived)
        return step._replace(final_observation=last, final_view=last, final_position=position)

    def close(self) -> None:
        pass

    def state(self) -> dict[str, Tensor]:
        fields = {"place": self._place, "clock": self._clock, "episode": self._episode}
        fields["seed"] = torch.tensor(self._seed)
        return {name: field.clone() for name, field in fields.items()}

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        if missing := self.state().keys() - state.keys():
            raise ValueError(f"this is no state of a corridor: it lacks {missing.pop()}")
        self._place, self._clock = state["place"].clone(), state["clock"].clone()
        self._episode, self._seed = state["episode"].clone(), int(state["seed"])
        self._begun = True

    def _begin(self, where: Tensor) -> None:
        numbers = torch.arange(self.spec.num_envs, device=self.spec.device)
        start = (3 * numbers + 5 * self._episode + self._seed) % (self._length - 1)
        self._place = torch.where(where, start, self._place)
        self._clock = torch.where(where, 0, self._clock)
        self._episode = self._episode + where

    def _emit(self, arrived: Tensor) -> Step:
        frames = self._draw()
        return Step(
            observation=frames,
            view=frames,
            reward=arrived.float(),
            first=arrived,
            terminated=arrived,
            truncated=torch.zeros_like(arrived),
            position=self._position(),
        )

    def _draw(self) -> Tensor:
        width = self.spec.observation_shape[2]
        column = torch.arange(width, device=self.spec.device) * self._length // width
        lit = (column == self._place[:, None]).to(torch.uint8) * 255  # (N, w)
        return lit[:, None, None].repeat(1, *self.spec.observation_shape[:2], 1)

    def _position(self) -> Tensor:
        return torch.stack([self._place, 0 * self._place, 0 * self._place], dim=1).float()
