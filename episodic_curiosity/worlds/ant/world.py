"""AntWorld: N ants as a World.

MuJoCo simulates on the CPU; the tensors of a step are on the device. Shapes: N environments,
R of them, F features.
"""

import hashlib
import os
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from math import prod
from typing import TYPE_CHECKING, Literal

import torch
from torch import Tensor

from episodic_curiosity.support.checks import (
    check_at_least,
    check_choice,
    check_number,
    check_size,
    check_tensor,
    check_type,
    first_difference,
)
from episodic_curiosity.support.machine import check_memory
from episodic_curiosity.support.randomness import random_below, random_bits, seed_words
from episodic_curiosity.worlds.ant import rules
from episodic_curiosity.worlds.ant.body import NUM_MOTORS, NUM_POSITIONS, NUM_VELOCITIES, Ants
from episodic_curiosity.worlds.ant.rules import EPISODE_STEPS, ORACLE_CELL, Purpose
from episodic_curiosity.worlds.ant.scene import Scene
from episodic_curiosity.worlds.ant.view import HeadCamera
from episodic_curiosity.worlds.base import SPLITS, Split, Step, WorldSpec

if TYPE_CHECKING:
    from episodic_curiosity.worlds.ant.opengl import OpenGLCamera
    from episodic_curiosity.worlds.base import Picture

# A snapshot is x, y, the features (the first five are the torso's height and rotation) and the
# floor's seed, four bytes each.
NUM_FEATURES = NUM_POSITIONS - 2 + NUM_VELOCITIES  # F = 27
SNAPSHOT_NUMBERS = 2 + NUM_FEATURES + 1


class AntWorld:
    """One of the ant tasks: body features for the policy, the head camera for curiosity."""

    def __init__(
        self,
        task: str,
        *,
        num_envs: int,
        seed: int,
        device: torch.device,
        split: Split,
        view_size: tuple[int, int] | None = (120, 160),
        episode_steps: int = EPISODE_STEPS,
        stagger: bool = False,
        gentle_play: float = 1.0,
        floor_period: int | None = None,
        final_frames: bool = True,
        **unknown: object,
    ) -> None:
        """`view_size` is (height, width); None disables rendering: the view is the observation.

        `stagger` starts the first episodes at a random step count. `gentle_play` bounds the
        random actions of every second ant: 0.3 keeps it on its feet. `floor_period` is the
        number of tiles after which the floor repeats; None: never. Without `final_frames` the
        last view of an episode is not rendered, and `final_view` is None.
        """
        if unknown:
            raise ValueError(
                f"ants have no option {min(unknown)!r}; there are view_size, episode_steps, "
                "stagger, gentle_play, floor_period and final_frames"
            )
        check_at_least("episode_steps", episode_steps, 1)
        check_type("stagger", stagger, bool)
        check_type("final_frames", final_frames, bool)
        check_number("gentle_play", gentle_play, above=0.0)
        if gentle_play > 1.0:
            raise ValueError(f"gentle_play must be at most 1, got {gentle_play}")
        if floor_period is not None:
            check_at_least("floor_period", floor_period, 1)
        self._device = device
        self._pays = task == "escape-circle"
        self._stagger, self._final_frames = stagger, final_frames
        self._floor_period = floor_period
        self._split = SPLITS.index(split)
        self._ants = Ants(num_envs)
        self._episodes = rules.no_episodes(self._keys(num_envs, seed))
        self._begun = False
        self._thread, self._is_closed = ThreadPoolExecutor(1), False
        self._process = os.getpid()  # a fork of it has no threads
        self._simulated: Future[Tensor] | None = None  # the unstable ants, after begin_step
        self._head: HeadCamera | None = None
        view_shape: tuple[int, ...] = (NUM_FEATURES,)
        if view_size is not None:
            view_size = check_size("view_size", view_size)
            what, frames = f"a world of {num_envs} ants", 3 * num_envs * prod(view_size)
            check_memory(what, frames, device, "lower `num_envs` or `view_size`")
            self._head = HeadCamera(view_size, self._device)
            view_shape = (3, *view_size)
        self._pictures: dict[tuple[int, int], OpenGLCamera] = {}
        identity = (task, split, episode_steps, *([floor_period] if floor_period else ()))
        digest = hashlib.sha256(repr(identity).encode()).digest()
        self._identity = torch.tensor(int.from_bytes(digest[:7], "big"))
        self.spec = WorldSpec(
            task=f"ant/{task}",
            num_envs=num_envs,
            device=self._device,
            observation_shape=(NUM_FEATURES,),
            observation_dtype=torch.float32,
            view_shape=view_shape,
            view_dtype=torch.float32 if view_size is None else torch.uint8,
            num_actions=0,
            action_shape=(NUM_MOTORS,),
            gentle_play=gentle_play,
            episode_steps=episode_steps,
            can_restore=True,
            can_redraw=True,
            can_capture_redraw=True,
            steps_in_two=True,
            snapshot_bytes=4 * SNAPSHOT_NUMBERS,
            has_position=True,
            oracle_cell=ORACLE_CELL,
        )

    def reset(self, seed: int | None = None) -> Step:
        """Starts a new episode in every environment; a seed restarts the episode sequence."""
        self._give_up_step()
        count = self.spec.num_envs
        if seed is not None:
            self._episodes = rules.no_episodes(self._keys(count, seed))
        self._begin(torch.arange(count))
        if self._stagger:
            phase = random_below(self.spec.episode_steps, self._episodes.key, Purpose.PHASE)
            self._episodes.clock.copy_(phase)
        self._begun = True
        no = torch.zeros(count, dtype=torch.bool)
        return self._emit(torch.zeros(count), ~no, no, no)

    def step(self, actions: Tensor) -> Step:
        """Steps every environment; the final_... fields are None unless an episode ends.

        The motors clip actions to [-1, 1]. An unstable simulation terminates the episode.
        """
        self.begin_step(actions)
        return self.end_step()

    def begin_step(self, actions: Tensor) -> None:
        """Starts MuJoCo's simulation of the step in a thread."""
        self._check_process()
        self._check_begun()
        if self._is_closed:
            raise RuntimeError("this world is closed")
        in_inference = torch.is_inference_mode_enabled()  # a thread has a mode of its own
        self._simulated = self._thread.submit(
            self._simulate, self._checked(actions), in_inference
        )

    def end_step(self) -> Step:
        """Waits for MuJoCo and returns the step."""
        if self._simulated is None:
            raise RuntimeError("call begin_step() before end_step()")
        simulated, self._simulated = self._simulated, None
        lost = simulated.result()
        positions, episodes = self._ants.positions, self._episodes
        episodes.clock.add_(1)
        reward = torch.zeros(self.spec.num_envs)
        if self._pays:
            reward = rules.pass_circles(episodes, positions)
        terminated = lost | ~rules.is_healthy(positions)
        truncated = ~terminated & (episodes.clock >= self.spec.episode_steps)
        ended = terminated | truncated
        rows = ended.nonzero().squeeze(1)
        if not len(rows):
            return self._emit(reward, ended, terminated, truncated)
        last = self._numbers().to(self._device)
        self._begin(rows)
        step = self._emit(reward, ended, terminated, truncated)
        if self._final_frames:
            rows = rows.to(self._device)
            view = self._draw(last[rows])
            room = view.new_zeros(len(last), *view.shape[1:])
            step = step._replace(final_view=room.index_copy_(0, rows, view))
        return step._replace(final_observation=_features(last), final_position=_place(last))

    def snapshot(self) -> Tensor:
        """Returns the current views and observations as (N, 120) bytes."""
        self._check_begun()
        return self._numbers().view(torch.uint8).to(self._device)

    def redraw(self, snapshots: Tensor) -> Tensor:
        """Renders the views of any number of snapshots, identical to the originals."""
        return self._draw(self._unpacked(snapshots))

    def redraw_observation(self, snapshots: Tensor) -> Tensor:
        """Returns the observations of any number of snapshots."""
        return _features(self._unpacked(snapshots))

    def picture(
        self,
        env: int = 0,
        *,
        person: Literal["first", "third"] = "third",
        size: tuple[int, int] = (360, 480),
    ) -> "Picture":
        """Renders (h, w, 3) bytes for display with OpenGL, with the ant's body and shadow."""
        from episodic_curiosity.worlds.ant.opengl import OpenGLCamera

        self._check_begun()
        check_choice("person", person, ("first", "third"))
        size = check_size("size", size)
        if size not in self._pictures:
            self._pictures[size] = OpenGLCamera(size, floor_period=self._floor_period)
        floor = int(rules.floor_seed(self._episodes.key, self._episodes.number)[env])
        return self._pictures[size].draw(self._ants.positions[env], floor, person=person)

    def state(self) -> dict[str, Tensor]:
        """Returns a copy of everything; `load_state` resumes from it bit for bit."""
        self._check_begun()
        return {name: field.clone() for name, field in self._fields().items()}

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        """Resumes from the state of a world of the same task, options and size."""
        self._give_up_step()
        fields = self._fields()
        if difference := first_difference(state, fields):
            raise ValueError(f"this is not a state of {self.spec.task}: it {difference}")
        if int(state["identity"]) != int(self._identity):
            raise ValueError(
                "the state must be of a world of the same task, split, episode_steps and "
                "floor_period, got one of another"
            )
        for name, field in fields.items():
            field.copy_(state[name])
        self._begun = True

    def close(self) -> None:
        """Ends the thread and frees the OpenGL cameras; safe to call again."""
        self._is_closed = True
        self._thread.shutdown()
        while self._pictures:
            self._pictures.popitem()[1].close()

    def _fields(self) -> dict[str, Tensor]:
        """Everything that determines future steps, not copied."""
        body = {"body": self._ants.state, "identity": self._identity}
        return self._episodes._asdict() | body

    def _keys(self, num_envs: int, seed: int) -> Tensor:
        return random_bits(torch.arange(num_envs), *seed_words(seed), self._split)

    def _begin(self, rows: Tensor) -> None:
        """Starts new episodes in the environments listed in `rows` (R,)."""
        episodes = self._episodes
        episodes.number[rows] += 1
        positions, velocities = rules.draw_start(episodes.key[rows], episodes.number[rows])
        self._ants.place(rows, positions, velocities)
        episodes.clock[rows] = 0
        episodes.start[rows] = positions[:, :2]
        episodes.circles[rows] = 0

    def _check_begun(self) -> None:
        if not self._begun:
            raise RuntimeError("call reset() first: no episode has begun")
        self._check_between()

    def _simulate(self, actions: Tensor, in_inference: bool) -> Tensor:
        with torch.inference_mode(in_inference):
            return self._ants.step(actions)

    def _give_up_step(self) -> None:
        """Waits for MuJoCo; its current step is never emitted."""
        self._check_process()
        simulated, self._simulated = self._simulated, None
        if simulated is not None:
            wait([simulated])

    def _check_process(self) -> None:
        if os.getpid() != self._process:
            raise RuntimeError(
                "a world of ants must be used in the process that made it, got a fork of that"
            )

    def _check_between(self) -> None:
        if self._simulated is not None:
            raise RuntimeError("call end_step() first: MuJoCo is within a step")

    def _checked(self, actions: Tensor) -> Tensor:
        """Checks the actions and returns them on the CPU."""
        if not isinstance(actions, Tensor) or not actions.is_floating_point():
            kind = actions.dtype if isinstance(actions, Tensor) else type(actions).__name__
            raise ValueError(f"actions must be a float32 tensor, got {kind}")
        check_tensor("actions", actions, (self.spec.num_envs, NUM_MOTORS), self._device)
        actions = actions.detach().cpu()
        if not actions.isfinite().all():
            raise ValueError("actions must be finite, got NaN or infinity")
        return actions

    def _numbers(self) -> Tensor:
        """Content of the snapshots, (N, 30) float32 on the CPU; the last is the seed's bits."""
        floor = rules.floor_seed(self._episodes.key, self._episodes.number)
        moving = torch.cat((self._ants.positions, self._ants.velocities), dim=1)
        return torch.cat((moving.float(), floor[:, None].view(torch.float32)), dim=1)

    def _unpacked(self, snapshots: Tensor) -> Tensor:
        size = self.spec.snapshot_bytes
        if (
            not isinstance(snapshots, Tensor)
            or snapshots.dtype != torch.uint8
            or snapshots.shape[1:] != (size,)
        ):
            raise ValueError(f"snapshots must be (rows, {size}) of dtype uint8")
        return snapshots.to(self._device).contiguous().view(torch.float32)

    def _draw(self, numbers: Tensor) -> Tensor:
        """Renders the views of (R, 30) numbers on the device."""
        if self._head is None:
            return _features(numbers)
        turn = numbers[:, 3:7].contiguous()
        floor = numbers[:, -1].contiguous().view(torch.int32)
        return self._head.draw(Scene(_place(numbers), turn, floor, self._floor_period))

    def _emit(
        self, reward: Tensor, first: Tensor, terminated: Tensor, truncated: Tensor
    ) -> Step:
        # In one copy, since each one synchronises with the GPU.
        events = torch.stack((reward, first, terminated, truncated), dim=1)  # (N, 4) float32
        numbers, events = (
            torch.cat((self._numbers(), events), dim=1)
            .to(self._device)
            .split((SNAPSHOT_NUMBERS, 4), dim=1)
        )
        observation = _features(numbers)
        first, terminated, truncated = (events[:, 1:] > 0).unbind(dim=1)
        return Step(
            observation=observation,
            view=observation if self._head is None else self._draw(numbers),
            reward=events[:, 0].contiguous(),
            first=first.contiguous(),
            terminated=terminated.contiguous(),
            truncated=truncated.contiguous(),
            position=_place(numbers),
        )


def _features(numbers: Tensor) -> Tensor:
    return numbers[:, 2 : 2 + NUM_FEATURES].contiguous()


def _place(numbers: Tensor) -> Tensor:
    return numbers[:, :3].contiguous()
