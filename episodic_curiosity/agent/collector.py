"""Plays T steps of N environments at a time, with an agent and a bonus.

On a GPU, and where the world allows it, a step (policy, world, bonus) is one replayed CUDA
graph: nothing synchronises until the rollout is complete. A CPU-simulated world is stepped
between graphs: one acts, one records what is seen, one pays. Where it steps in two parts, the
bonus of a step is computed while the simulators work on the next one, unless the policy sees a
summary of the bonus's memory. Shapes: T steps, N environments, H value heads, S numbers of a
summary.
"""

from collections.abc import Mapping
from math import prod
from typing import Any, cast

import torch
from torch import Tensor

from episodic_curiosity.agent.network import Agent
from episodic_curiosity.agent.tally import EpisodeTally
from episodic_curiosity.bonus.base import Bonus, shown
from episodic_curiosity.support.checks import check_at_least
from episodic_curiosity.support.compiling import fused
from episodic_curiosity.support.cuda_graphs import Captured, graph_device
from episodic_curiosity.support.machine import check_memory
from episodic_curiosity.support.randomness import more_bits, random_bits, seed_words
from episodic_curiosity.support.state import copied
from episodic_curiosity.worlds.base import (
    RedrawableWorld,
    RestorableWorld,
    Rollout,
    Step,
    TwoPartWorld,
    World,
    can_step_in_two,
)

STREAM = 0xDEC1DE  # keeps these random numbers apart from those of the world
RESUMED = 0x2E5  # the same for the seeds of worlds that are reset when a run resumes


class Collector:
    """Fills one rollout after another; the next one overwrites the tensors of the last."""

    def __init__(
        self,
        world: World,
        agent: Agent,
        bonus: Bonus,
        num_steps: int,
        *,
        seed: int,
        bootstrap: bool = True,
        whole_at_start: bool = True,
    ) -> None:
        """With `bootstrap`, truncated episodes get the value of their last frame."""
        check_at_least("num_steps", num_steps, 1)
        agent.config.check_summary(bonus.summary)
        self.world, self.agent, self.bonus = world, agent, bonus
        self.tally = EpisodeTally(world.spec, whole_at_start=whole_at_start)
        self._seed = seed_words(seed)
        self._stream = random_bits(torch.tensor(self._seed[0]), self._seed[1], STREAM).to(
            world.spec.device
        )
        self._bootstrap = bootstrap
        spec, device = world.spec, world.spec.device
        self._env = torch.arange(spec.num_envs, device=device)
        self._clock = torch.zeros((), dtype=torch.int64, device=device)  # steps ever played
        self._slot = torch.zeros(1, dtype=torch.int64, device=device)  # t
        self._rollout = self._room(num_steps)
        # The newest observation; a copy: a slot of the rollout is slow to find on a GPU.
        self._observation = self._rollout.observation[0].clone()
        self._view = None if self._rollout.view is None else self._rollout.view[0].clone()
        # The last observations of truncated episodes, or what they are redrawn from.
        self._final_snapshot: Tensor | None = None  # (T, N, bytes), of worlds that give it
        self._final_rows: list[tuple[int, Tensor, Tensor]] = []  # t, rows, observations
        # The input of the world, and its newest step for the graph that records it.
        self._action = torch.zeros_like(self._rollout.action[0])
        self._held: Step | None = None
        # True if a step is paid while the simulators work on the next one.
        self._is_late = can_step_in_two(world) and bonus.summary is None
        self._taken = self._action.clone()  # the actions that led to the held step
        self._play = Captured(self._step, graph_device(device, spec.can_capture))
        self._around_world = graph_device(device, not spec.can_capture)
        self._act = Captured(self._decide, self._around_world)
        self._see = Captured(self._see_held, self._around_world)
        self._pay = Captured(self._pay_held, self._around_world)

    def reset(self, seed: int | None = None) -> None:
        """Begins a new episode in every environment; a seed restarts their sequence."""
        step = self.world.reset(seed)
        self._start_from(step.observation, step.first, step.view)
        self.tally.open(step)
        self.bonus.begin(shown(self.bonus, step))
        self._hold(step)

    @torch.no_grad()
    def collect(self) -> Rollout:
        """Plays the next T steps; the rollout is valid until the next call."""
        rollout = self._rollout
        rollout.observation[0] = self._observation
        rollout.first[0] = rollout.first[-1]
        self._final_rows.clear()
        self._slot.zero_()
        for time in range(rollout.num_steps):
            self._play(time)
        if self._is_late:
            self._pay()
        rollout.value[-1] = self.agent(self._observation, self.bonus.summary).value
        if self._bootstrap:
            self._value_final_observations()
        return rollout

    def state_dict(self) -> dict[str, Any]:
        """A copy of the state; the world's part only where it can be restored."""
        seen = {"observation": self._observation, "first": self._rollout.first[-1]}
        if self._view is not None:
            seen["view"] = self._view
        state: dict[str, Any] = copied({"clock": self._clock, **seen})
        state["tally"] = self.tally.state_dict()
        if self.world.spec.can_restore:
            state["world"] = cast(RestorableWorld, self.world).state()
        return state

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continues from a state; a world that cannot be restored begins new episodes."""
        self._clock.copy_(state["clock"])
        self.tally.load_state_dict(state["tally"])
        if not self.world.spec.can_restore:
            # Not with the run's seed, which would repeat the very first episodes.
            self.reset(int(random_bits(*self._seed, RESUMED, self._clock)))
            return
        cast(RestorableWorld, self.world).load_state(state["world"])
        self._start_from(state["observation"], state["first"], state.get("view"))

    def _start_from(self, observation: Tensor, first: Tensor, view: Tensor | None) -> None:
        """Sets what the next rollout starts from."""
        self._observation.copy_(observation)
        self._rollout.first[-1] = first
        if self._view is not None and view is not None:
            self._view.copy_(view)

    def _room(self, num_steps: int) -> Rollout:
        """An empty rollout; raises if it does not fit into the free memory."""
        spec, num_values = self.world.spec, self.agent.config.num_values
        steps, longer = (num_steps, spec.num_envs), (num_steps + 1, spec.num_envs)
        acted = torch.int64 if spec.num_actions else torch.float32
        fields = {
            "observation": ((*longer, *spec.observation_shape), spec.observation_dtype),
            "action": ((*steps, *spec.action_shape), acted),
            "log_prob": (steps, torch.float32),
            "value": ((*longer, num_values), torch.float32),
            "reward": (steps, torch.float32),
            "bonus": (steps, torch.float32),
            "first": (longer, torch.bool),
            "terminated": (steps, torch.bool),
            "final_value": ((*steps, num_values), torch.float32),
        }
        if self.bonus.needs_views and spec.can_redraw:
            fields["snapshot"] = ((*steps, spec.snapshot_bytes), torch.uint8)
        elif self.bonus.needs_views:
            fields["view"] = ((*steps, *spec.view_shape), spec.view_dtype)
        if summary_size := self.agent.config.summary_size:
            fields["summary"] = ((*steps, summary_size), torch.float32)
        what = f"a rollout of {num_steps} steps x {spec.num_envs} environments"
        size = sum(prod(shape) * dtype.itemsize for shape, dtype in fields.values())
        advice = "lower `ppo.num_steps` or `world.num_envs`"
        check_memory(what, size, spec.device, advice)
        return Rollout(
            **{
                name: torch.zeros(shape, dtype=dtype, device=spec.device)
                for name, (shape, dtype) in fields.items()
            }
        )

    def _step(self, time: int) -> None:
        """Acts once in every environment. In a CUDA graph `_slot` gives the time."""
        rollout, slot = self._rollout, self._slot
        if rollout.snapshot is not None:
            snapshot = cast(RedrawableWorld, self.world).snapshot()
            rollout.snapshot.index_copy_(0, slot, snapshot[None])
        self._act()
        step = self._late_step(time) if self._is_late else self.world.step(self._action)
        if self._bootstrap:
            self._keep_final(step, time)
        self._hold(step)
        self._see()
        if not self._is_late:
            self._pay()

    def _late_step(self, time: int) -> Step:
        """Steps the world, and pays for the step before while the simulators work."""
        world = cast(TwoPartWorld, self.world)
        world.begin_step(self._action)
        try:
            if time > 0:
                self._pay()
        except BaseException:
            world.end_step()  # it can be stepped or reset again
            raise
        return world.end_step()

    def _decide(self) -> None:
        """Records the view, and decides on the action."""
        rollout, slot = self._rollout, self._slot
        if rollout.view is not None and self._view is not None:
            rollout.view.index_copy_(0, slot, self._view[None])
        summary = self.bonus.summary
        if rollout.summary is not None and summary is not None:
            rollout.summary.index_copy_(0, slot, summary[None])
        draw = _action_bits(self._stream, self._clock, self._env)
        decision = self.agent.decide(self._observation, draw, summary)
        for name, tensor in decision._asdict().items():
            getattr(rollout, name).index_copy_(0, slot, tensor[None])
        action = decision.action
        if not self.world.spec.num_actions:
            action = action.clamp(-1.0, 1.0)
        if self._around_world is None:
            self._action = action
        else:
            self._action.copy_(action)

    def _hold(self, step: Step) -> None:
        """Keeps a step and what led to it: for graphs, always in the same tensors.

        Without a final position the previous place is used. It has been counted already, so
        that coverage does not change.
        """
        if self._around_world is None:
            self._held, self._taken = step, self._action
            return
        self._taken.copy_(self._action)
        final = step.final_position
        if final is None:
            before = (self._held or step).position
            final = None if before is None else before.clone()
        now = step._replace(  # final observations are not always there
            final_observation=None, final_view=None, final_position=final, final_snapshot=None
        )
        if self._held is None:
            self._held = Step._make(None if field is None else field.clone() for field in now)
        for held, field in zip(self._held, now, strict=True):
            assert (held is None) == (field is None), "a world must always emit the same fields"
            if held is not None and field is not None:
                held.copy_(field)

    def _see_held(self) -> None:
        """Records what the next action is decided on."""
        rollout, slot, step = self._rollout, self._slot, self._held
        assert step is not None
        self._clock += 1
        slot += 1
        rollout.observation.index_copy_(0, slot, step.observation[None])
        self._observation.copy_(step.observation)
        rollout.first.index_copy_(0, slot, step.first[None])
        if self._view is not None:
            self._view.copy_(step.view)

    def _pay_held(self) -> None:
        """Pays for the newest step that was seen, and records that."""
        rollout, slot, step = self._rollout, self._slot - 1, self._held
        assert step is not None
        seen = shown(self.bonus, step)
        bonus = self.bonus.bonus_same_step(seen, step.first, action=self._taken)
        self.tally.add(step, self._taken, bonus)
        kept = {"reward": step.reward, "bonus": bonus, "terminated": step.terminated}
        for name, tensor in kept.items():
            getattr(rollout, name).index_copy_(0, slot, tensor[None])

    def _keep_final(self, step: Step, time: int) -> None:
        """Keeps the last observations of truncated episodes."""
        if step.final_snapshot is not None:
            if self._final_snapshot is None:
                shape = (self._rollout.num_steps, *step.final_snapshot.shape)
                self._final_snapshot = step.final_snapshot.new_zeros(shape)
            self._final_snapshot.index_copy_(0, self._slot, step.final_snapshot[None])
        elif step.final_observation is not None:
            rows = step.truncated.nonzero().squeeze(1)
            if len(rows):
                self._final_rows.append((time, rows, step.final_observation[rows]))

    def _value_final_observations(self) -> None:
        """Fills `final_value`; synchronises with the GPU, once per rollout.

        No bonus is shown these observations: the summary is that of the step before.
        """
        rollout, summary = self._rollout, None
        rollout.final_value.zero_()
        for time, rows, observation in self._final_rows:
            if rollout.summary is not None:
                summary = rollout.summary[time, rows]
            rollout.final_value[time, rows] = self.agent(observation, summary).value
        if self._final_snapshot is not None:
            times, envs = rollout.truncated.nonzero(as_tuple=True)
            if len(times) == 1:  # twice: a batch of one would be compiled separately
                times, envs = times.repeat(2), envs.repeat(2)
            if len(times):
                world = cast(RedrawableWorld, self.world)
                observation = world.redraw_observation(self._final_snapshot[times, envs])
                if rollout.summary is not None:
                    summary = rollout.summary[times, envs]
                rollout.final_value[times, envs] = self.agent(observation, summary).value


@fused
def _action_bits(stream: Tensor, clock: Tensor, env: Tensor) -> Tensor:
    """Random bits (N,) for the actions of a step."""
    return more_bits(more_bits(stream, clock), env)
