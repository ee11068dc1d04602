"""A world that plays from a script, and a bonus that can be foretold."""

from collections.abc import Mapping
from typing import Literal

import torch
from torch import Tensor

from episodic_curiosity.bonus.base import Sight
from episodic_curiosity.bonus.nothing import NoBonus
from episodic_curiosity.worlds.base import Step, WorldSpec

Final = Literal["observation", "snapshot"]
NUM_ACTIONS = 4


def script(num_steps: int, num_envs: int, final: Final = "observation", seed: int = 0):
    """Steps after a reset, with observations of 4 numbers and views of 6.

    What is left of an episode at its end is there only in steps that end one, and only in the
    rows that do; elsewhere it is NaN.
    """
    generator = torch.Generator().manual_seed(seed)

    def some(*shape: int) -> Tensor:
        return torch.randn(num_envs, *shape, generator=generator)

    steps = []
    for time in range(num_steps + 1):
        first = (some() > 0.7) if time else torch.ones(num_envs, dtype=torch.bool)
        terminated = first & (some() > 0) & (time > 0)
        step = Step(
            observation=some(4),
            view=some(6),
            reward=some() if time else torch.zeros(num_envs),
            first=first,
            terminated=terminated,
            truncated=first & ~terminated & (time > 0),
            position=60 * some(3),
        )
        if time and first.any():
            last = torch.where(first[:, None], some(4), torch.nan)
            place = torch.where(first[:, None], 60 * some(3), torch.nan)
            step = step._replace(final_position=place)
            if final == "observation":
                step = step._replace(final_observation=last)
            else:
                step = step._replace(final_snapshot=last.view(torch.uint8))
        steps.append(step)
    return steps


class Scripted:
    """Emits what is in the script, whatever is done; snapshots are bytes of what they show."""

    def __init__(
        self,
        steps: list[Step],
        *,
        continuous: bool = False,
        redraws: bool = False,
        restores: bool = True,
        positions: bool = True,
        in_two: bool = False,
    ) -> None:
        self._steps = steps
        self.calls: list[str] = []  # of a world that steps in two parts
        self._time = 0
        self.actions: list[Tensor] = []
        self.seeds: list[int | None] = []  # of the resets
        self.spec = WorldSpec(
            task="test/script",
            num_envs=len(steps[0].first),
            device=torch.device("cpu"),
            observation_shape=(4,),
            observation_dtype=torch.float32,
            view_shape=(6,),
            view_dtype=torch.float32,
            num_actions=0 if continuous else NUM_ACTIONS,
            action_shape=(2,) if continuous else (),
            episode_steps=len(steps),
            can_restore=restores,
            can_redraw=redraws,
            steps_in_two=in_two,
            snapshot_bytes=24 if redraws else 0,
            has_position=positions,
            oracle_cell=30.0 if positions else 0.0,
        )

    def reset(self, seed: int | None = None) -> Step:
        self.seeds.append(seed)
        self._time = 0
        return self._steps[0]

    def step(self, actions: Tensor) -> Step:
        self.actions.append(actions)
        self._time += 1
        return self._steps[self._time]

    def begin_step(self, actions: Tensor) -> None:
        self.calls.append("begin")
        self.actions.append(actions)

    def end_step(self) -> Step:
        self.calls.append("end")
        self._time += 1
        return self._steps[self._time]

    def close(self) -> None:
        pass

    def state(self) -> dict[str, Tensor]:
        return {"time": torch.tensor(self._time)}

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        self._time = int(state["time"])

    def snapshot(self) -> Tensor:
        return self._steps[self._time].view.view(torch.uint8)

    def redraw(self, snapshots: Tensor) -> Tensor:
        return snapshots.view(torch.float32)

    def redraw_observation(self, snapshots: Tensor) -> Tensor:
        return snapshots.view(torch.float32)


class ByPlace(NoBonus):
    """Pays by where the agent is, and remembers what it was shown."""

    sees = "view"

    def __init__(self, num_envs: int, needs_views: bool = False) -> None:
        super().__init__(num_envs, None, "cpu")
        self.needs_views = needs_views
        self.shown: list[Sight] = []

    def pay(self, now: Sight) -> Tensor:
        self.shown.append(now)
        return 0.1 * now.seen[:, 0]
