"""Evaluation: reward and coverage of complete episodes, on levels not seen in training.

Shapes: N environments, E episodes of each that count, T steps of the longest first one.
"""

from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from episodic_curiosity.agent.network import Agent
from episodic_curiosity.bonus.base import Bonus, shown
from episodic_curiosity.bonus.coverage import Coverage, place_reached
from episodic_curiosity.support.checks import check_at_least
from episodic_curiosity.support.cuda_graphs import Captured, graph_device
from episodic_curiosity.support.progress import Progress
from episodic_curiosity.support.randomness import random_bits, seed_words
from episodic_curiosity.support.statistics import Summary, summarise
from episodic_curiosity.worlds.base import FinishingWorld, Step, World, WorldSpec

STREAM = 0xE7A1  # keeps these random numbers apart from those of training
CHECK_EVERY = 50  # steps between two checks for completion: each synchronises with the GPU


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """Measurements, one entry for each of N * E episodes; the first N are first episodes."""

    task: str
    deterministic: bool
    reward: NDArray[Any]  # (N * E,) float64, the sum of an episode's rewards
    length: NDArray[Any]  # (N * E,) int64, in steps
    coverage: NDArray[Any] | None  # (N * E,) int64, Grid-Oracle cells; None without positions
    action_shares: dict[str, float]  # over all steps that count; empty for continuous actions
    # (T + 1, N, 3) places of each environment's first episode, NaN once it is over.
    trajectories: NDArray[Any] | None = None

    def summary(self) -> dict[str, Summary]:
        """Mean, standard deviation and 95 % interval of each measurement."""
        measured = {"reward": self.reward, "coverage": self.coverage, "length": self.length}
        return {
            name: summarise(values) for name, values in measured.items() if values is not None
        }

    def to_dict(self) -> dict[str, Any]:
        """Values for JSON; trajectories are left out."""
        summary = self.summary()
        return {
            "task": self.task,
            "deterministic": self.deterministic,
            "summary": {name: short._asdict() for name, short in summary.items()},
            "action_shares": self.action_shares,
            "episodes": {name: getattr(self, name).tolist() for name in summary},
        }

    def report(self) -> str:
        """A table as text."""
        how = "most likely" if self.deterministic else "sampled"
        lines = [
            f"{self.task}: {len(self.reward)} episodes, {how} actions",
            f"{'':10}{'mean':>10}{'deviation':>12}   95 % interval of the mean",
        ]
        for name, short in self.summary().items():
            deviation = "-" if short.deviation is None else f"{short.deviation:.2f}"
            interval = f"{short.low:.2f} .. {short.high:.2f}"
            lines.append(f"{name:10}{short.mean:10.2f}{deviation:>12}   {interval}")
        if self.action_shares:
            shares = sorted(self.action_shares.items(), key=lambda item: -item[1])
            lines.append("actions: " + ", ".join(f"{name} {part:.0%}" for name, part in shares))
        return "\n".join(lines)


class Play:
    """An agent playing in a world from its reset; the same seed gives the same episodes.

    An agent that sees its memory needs a bonus, which the caller shows every step before the
    agent acts again.
    """

    def __init__(
        self,
        agent: Agent,
        world: World,
        *,
        deterministic: bool,
        seed: int,
        bonus: Bonus | None = None,
    ) -> None:
        spec = world.spec
        _check_fits(agent, spec)
        self._bonus = bonus if agent.config.summary_size else None
        agent.config.check_summary(None if self._bonus is None else self._bonus.summary)
        self._agent, self._world, self._deterministic = agent, world, deterministic
        self._envs = torch.arange(spec.num_envs, device=spec.device)
        self._words = seed_words(seed)
        self._clock = torch.zeros((), dtype=torch.int64, device=spec.device)
        self.start = world.reset(seed)
        self._observation = self.start.observation.clone()

    def finish(self, where: Tensor) -> None:
        """Plays no episode after the current one in the rows of a mask, if the world can."""
        if self._world.spec.can_finish:
            cast(FinishingWorld, self._world).finish(where)

    @torch.no_grad()
    def step(self) -> tuple[Step, Tensor]:
        """Acts once in every environment; returns the step and the actions that led to it."""
        summary = None if self._bonus is None else self._bonus.summary
        if self._deterministic:
            action: Tensor = self._agent(self._observation, summary).policy.mode
        else:
            draw = random_bits(self._envs, *self._words, STREAM, self._clock)
            action = self._agent.decide(self._observation, draw, summary).action
        action = action if self._world.spec.num_actions else action.clamp(-1.0, 1.0)
        step = self._world.step(action)
        self._observation.copy_(step.observation)
        self._clock.add_(1)
        return step, action


@torch.no_grad()
def evaluate(
    agent: Agent,
    world: World,
    *,
    num_episodes: int = 100,
    deterministic: bool = False,
    seed: int = 0,
    trajectories: bool = False,
    progress: bool = False,
    bonus: Bonus | None = None,
) -> Evaluation:
    """Plays at least `num_episodes` complete episodes of a world, reset with that seed.

    The first E = ceil(num_episodes / N) episodes of each environment count: taking the first
    to end of all environments would favour short ones. So N * E episodes count. The world
    should not be staggered.

    Args:
        agent: acts, with observations of the world's shape.
        world: is reset; made with `make_world(..., split="test")` for unseen levels.
        num_episodes: the least number of episodes.
        deterministic: takes the likeliest actions; they are sampled otherwise, as in the paper.
        seed: of the world's episodes and of the actions.
        trajectories: keeps the positions of every episode.
        progress: shows a bar on a terminal.
        bonus: is shown every step and pays nothing; an agent that sees its memory needs it.
    """
    check_at_least("num_episodes", num_episodes, 1)
    spec = world.spec
    rounds = -(-num_episodes // spec.num_envs)
    tally = _Tally(spec, rounds, trajectories=trajectories)
    play = Play(agent, world, deterministic=deterministic, seed=seed, bonus=bonus)
    tally.follow(play.start)
    if bonus is not None:
        bonus.begin(shown(bonus, play.start))

    def play_once() -> None:
        play.finish(tally.is_final)
        step, action = play.step()
        if bonus is not None:
            bonus.bonus_same_step(shown(bonus, step), step.first, action=action)
        tally.add(step, action)

    step = Captured(play_once, graph_device(spec.device, spec.can_capture))
    most = rounds * spec.episode_steps
    with Progress(most * spec.num_envs, is_shown=progress) as display:
        for time in range(1, most + 1):
            step()
            if time % CHECK_EVERY == 0:
                if tally.is_complete():
                    break
                display.update(time * spec.num_envs, {})
        is_complete = tally.is_complete()
        if is_complete:
            display.finish(time * spec.num_envs)
    if not is_complete:
        raise RuntimeError(
            f"{spec.task} plays episodes of more than the {spec.episode_steps} steps it says"
        )
    return tally.evaluation(deterministic)


class _Tally:
    """Measures the episodes being played and keeps those that count, all on the device."""

    def __init__(self, spec: WorldSpec, rounds: int, *, trajectories: bool) -> None:
        count, device = spec.num_envs, spec.device
        self._spec, self._rounds = spec, rounds
        self._coverage = Coverage.of(spec) if spec.has_position else None
        self._envs = torch.arange(count, device=device)
        self._finished = torch.zeros(count, dtype=torch.int64, device=device)
        # Reward, length and coverage of the current episodes and of those that count; the last
        # row takes the episodes that do not.
        self._present = torch.zeros(count, 3, dtype=torch.float64, device=device)
        self._kept = torch.zeros(rounds + 1, count, 3, dtype=torch.float64, device=device)
        self._chosen = torch.zeros(spec.num_actions, dtype=torch.int64, device=device)
        self._places: Tensor | None = None
        if trajectories:
            if not spec.has_position:
                raise ValueError(f"{spec.task} does not tell positions: it has no trajectories")
            # The last row takes the steps after the first episodes.
            shape = (spec.episode_steps + 2, count, 3)
            self._places = torch.full(shape, torch.nan, device=device)
        self._time = torch.zeros(1, dtype=torch.int64, device=device)

    def follow(self, step: Step) -> None:
        """Takes the places of a step, a reset's included."""
        if self._coverage is not None:
            self._present[:, 2] = self._coverage.add(step)
        if self._places is not None:
            over = (self._finished > 0)[:, None]
            row = self._time.clamp(max=len(self._places) - 1)
            here = place_reached(step).masked_fill(over, torch.nan)
            self._places.index_copy_(0, row, here[None])
            self._time += 1

    def add(self, step: Step, action: Tensor) -> None:
        """Takes a step and the action that led to it."""
        ended = step.terminated | step.truncated
        self._present[:, 0] += step.reward
        self._present[:, 1] += 1.0
        if self._spec.num_actions:
            self._chosen.index_add_(0, action, (self._finished < self._rounds).long())
        self.follow(step)
        row = self._finished.clamp(max=self._rounds)  # (N,)
        kept = self._kept[row, self._envs]
        self._kept[row, self._envs] = torch.where(ended[:, None], self._present, kept)
        self._finished += ended
        self._present.masked_fill_(ended[:, None], 0.0)

    @property
    def is_final(self) -> Tensor:
        """(N,) bool, no episode after the current one counts."""
        return self._finished >= self._rounds - 1

    def is_complete(self) -> bool:
        """True if all episodes that count have ended; synchronises with the GPU."""
        return bool((self._finished >= self._rounds).all())

    def evaluation(self, deterministic: bool) -> Evaluation:
        """The measurements of the episodes that count."""
        reward, length, coverage = self._kept[: self._rounds].flatten(0, 1).T.cpu().numpy()
        names = self._spec.action_names or [str(n) for n in range(self._spec.num_actions)]
        shares = (self._chosen / self._chosen.sum()).tolist()
        return Evaluation(
            task=self._spec.task,
            deterministic=deterministic,
            reward=reward,
            length=length.astype(np.int64),
            coverage=None if self._coverage is None else coverage.astype(np.int64),
            action_shares=dict(zip(names, shares, strict=True)),
            trajectories=None if self._places is None else _taken(self._places[:-1]),
        )


def _taken(places: Tensor) -> NDArray[Any]:
    """The places of the steps that any environment took."""
    taken: NDArray[Any] = places[places.isfinite().any(dim=2).any(dim=1)].cpu().numpy()
    return taken


def _check_fits(agent: Agent, spec: WorldSpec) -> None:
    config = agent.config
    ours = f"{config.observation_shape} and {_actions(config.num_actions, config.continuous)}"
    actions = _actions(spec.num_actions or spec.action_shape[0], not spec.num_actions)
    theirs = f"{spec.observation_shape} and {actions}"
    if ours != theirs:
        raise ValueError(
            f"the agent is for observations of shape {ours}, {spec.task} has {theirs}"
        )
    if agent.device != spec.device:
        raise ValueError(f"the agent is on {agent.device}, {spec.task} on {spec.device}")


def _actions(count: int, continuous: bool) -> str:
    return f"actions of {count} entries" if continuous else f"{count} actions"
