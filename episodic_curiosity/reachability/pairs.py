"""Trajectories -> (first, second, reachable): which observations are close in time.

Savinov et al. 2019, section 2.3: pairs at most k steps apart are reachable, pairs more than
gamma * k apart in the same episode are not, distances in between are not used. Not in the
paper: unreachable pairs of two episodes, for worlds where little is far within one.
Shapes: T steps, N environments, P pairs, E episodes, M moves of the longest walk, S steps that
an unreachable one is drawn from.
"""

from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import torch
from torch import Generator, Tensor

from episodic_curiosity.support.checks import check_at_least, check_choice
from episodic_curiosity.support.config_json import ADDED

ONLINE_STRIDE = 5  # the online walk advances by 1 plus a draw of 1 to 5, for any k
STEPS_PER_PAIR = 4  # roughly that of a walk at k = 5; sizes a pass of the uniform sampler


@dataclass(frozen=True, kw_only=True)
class PairsConfig:
    """Distances of reachable and unreachable pairs, and how pairs are drawn."""

    k: int = 5  # the paper's k: reachable within k steps
    gamma: int = 5  # unreachable beyond gamma * k steps
    # "offline" and "online" walk along each episode as the authors' release does; "uniform"
    # draws uniformly from all steps.
    sampler: Literal["offline", "online", "uniform"] = "offline"
    # Unreachable pairs: of one episode, as in the paper, or of two, without a distance.
    far_from: Literal["same_episode", "other_episodes"] = field(
        default="same_episode", metadata=ADDED
    )

    def __post_init__(self) -> None:
        check_at_least("k", self.k, 1)
        check_at_least("gamma", self.gamma, 1)
        check_choice("sampler", self.sampler, ("offline", "online", "uniform"))
        check_choice("far_from", self.far_from, ("same_episode", "other_episodes"))

    @property
    def margin(self) -> int:
        return self.gamma * self.k


class Pairs(NamedTuple):
    """P pairs of observations, as indices into (T, N) trajectories."""

    first_env: Tensor  # (P,) int64, environment of the observation in memory
    first: Tensor  # (P,) int64, its time
    second_env: Tensor  # (P,) int64, environment of the current observation
    second: Tensor  # (P,) int64, its time
    reachable: Tensor  # (P,) bool

    def select(self, index: Tensor | slice) -> "Pairs":
        return Pairs(*(field[index] for field in self))


class Steps(NamedTuple):
    """S of the steps of (T, N) trajectories, environment by environment, in order of time."""

    number: Tensor  # (S,) int64, environment * T + time
    num_steps: int  # T


class Episodes(NamedTuple):
    """The E episodes of (T, N) trajectories, including those cut by the ends of the data."""

    env: Tensor  # (E,) int64
    start: Tensor  # (E,) int64, time of the first step
    length: Tensor  # (E,) int64

    def select(self, index: Tensor) -> "Episodes":
        return Episodes(*(field[index] for field in self))


def draw_pairs(first: Tensor, config: PairsConfig, generator: Generator) -> Pairs:
    """Draws pairs in one pass over trajectories; (T, N) bool `first` marks episode starts.

    Drawn on the device of `first`, with a generator of that device, and in the order of time:
    shuffle before training.
    """
    if first.dim() != 2 or first.dtype != torch.bool or 0 in first.shape:
        raise ValueError(
            f"first must be (steps, environments) of dtype bool and not empty, "
            f"got {tuple(first.shape)} of {first.dtype}"
        )
    episodes = find_episodes(first)
    others = None if config.far_from == "same_episode" else _of_several(episodes, first)
    if config.sampler == "uniform":
        return _uniform(episodes, others, config, generator)
    # Episodes of similar length are walked together: one table for all would be as wide as the
    # longest, and mostly empty.
    doublings = episodes.length.double().log2().long()
    walks = [
        _walk(episodes.select(doublings == size), others, config, generator)
        for size in doublings.unique().tolist()
    ]
    return Pairs(*(torch.cat(fields) for fields in zip(*walks, strict=True)))


def find_episodes(first: Tensor) -> Episodes:
    """Finds all episodes, environment by environment, in the order of time."""
    begins = first.clone()
    begins[0] = True  # the data may start in mid-episode
    env, start = begins.t().nonzero(as_tuple=True)
    num_steps = first.shape[0]
    next_start = torch.cat([start[1:], start.new_zeros(1)])
    end = torch.where(next_start > start, next_start, num_steps)
    return Episodes(env, start, end - start)


def _of_several(episodes: Episodes, first: Tensor) -> Steps:
    """The steps of episodes that have several: one of a single step may be an empty place."""
    in_order = first.t().reshape(-1)  # environment by environment
    alone = torch.zeros_like(in_order)
    num_steps = first.shape[0]
    alone[(episodes.env * num_steps + episodes.start)[episodes.length == 1]] = True
    return Steps((~alone).nonzero()[:, 0], num_steps)


def _walk(
    episodes: Episodes, others: Steps | None, config: PairsConfig, generator: Generator
) -> Pairs:
    """Walks all these episodes in parallel: each row of an (E, M) table is one episode's walk.

    At t, a distance d of 1..k is drawn. A coin decides whether (t, t + d) becomes a reachable
    pair, in either order, or t is paired with a far step. Then t advances.
    """
    num_moves = int(episodes.length.max()) // 2 + 1  # a move is 2 steps at least
    table = (episodes.length.shape[0], num_moves)

    reach = _randint(1, config.k, table, generator)
    if config.sampler == "offline":
        move = reach + 1
    else:
        move = _randint(1, ONLINE_STRIDE, table, generator) + 1
    time = move.cumsum(dim=1) - move  # inside the episode, from 0
    row, column = (time + reach < episodes.length[:, None]).nonzero(as_tuple=True)
    time, reach = time[row, column], reach[row, column]

    here = episodes.select(row)
    far_env, far, has_far = _draw_far(here, time, others, config, generator)
    reachable = _coin(time.shape, generator)
    flipped = reachable & _coin(time.shape, generator)
    step, near = here.start + time, here.start + time + reach
    pairs = Pairs(
        first_env=here.env,
        first=torch.where(flipped, near, step),
        second_env=torch.where(reachable, here.env, far_env),
        second=torch.where(reachable, torch.where(flipped, step, near), far),
        reachable=reachable,
    )
    return pairs.select(reachable | has_far)


def _uniform(
    episodes: Episodes, others: Steps | None, config: PairsConfig, generator: Generator
) -> Pairs:
    """Half reachable and half not, each from steps drawn uniformly from those that have any."""
    device = episodes.length.device
    episode = torch.arange(episodes.length.shape[0], device=device)
    episode = episode.repeat_interleave(episodes.length)  # of each of the T * N steps
    offset = torch.arange(episode.shape[0], device=device)
    time = offset - (episodes.length.cumsum(0) - episodes.length)[episode]
    length = episodes.length[episode]

    has_near = length > 1
    if others is None:
        has_far = (time > config.margin) | (length - 1 - time > config.margin)
    else:
        has_far = has_near & (length < len(others.number))
    half = max(1, episode.shape[0] // STEPS_PER_PAIR // 2)
    near_anchor = _choose(has_near.nonzero(as_tuple=True)[0], half, generator)
    far_anchor = _choose(has_far.nonzero(as_tuple=True)[0], half, generator)

    near = _draw_near(time[near_anchor], length[near_anchor], config.k, generator)
    far_env, far, _ = _draw_far(
        episodes.select(episode[far_anchor]), time[far_anchor], others, config, generator
    )
    anchor = torch.cat([near_anchor, far_anchor])
    here = episodes.select(episode[anchor])
    num_near = near_anchor.shape[0]
    return Pairs(
        first_env=here.env,
        first=here.start + time[anchor],
        second_env=torch.cat([here.env[:num_near], far_env]),
        second=torch.cat([here.start[:num_near] + near, far]),
        reachable=torch.arange(anchor.shape[0], device=device) < num_near,
    )


def _draw_near(time: Tensor, length: Tensor, k: int, generator: Generator) -> Tensor:
    """A uniform step of the same episode, at most k steps away and not the step itself."""
    before = time.clamp(max=k)
    after = (length - 1 - time).clamp(max=k)
    near = time - before + _below(before + after, generator)
    return near + (near >= time)


def _draw_far(
    here: Episodes,
    time: Tensor,
    others: Steps | None,
    config: PairsConfig,
    generator: Generator,
) -> tuple[Tensor, Tensor, Tensor]:
    """A uniform unreachable step for each of P: environment, time, and whether there is one.

    `here` are the episodes of the P steps, `time` theirs inside it. The step is of the same
    episode, or else one of the `others`.
    """
    if others is None:
        before = (time - config.margin).clamp(min=0)
        after = (here.length - 1 - time - config.margin).clamp(min=0)
        drawn = _below(before + after, generator)
        far = torch.where(drawn < before, drawn, drawn - before + time + config.margin + 1)
        return here.env, here.start + far, before + after > 0

    # The S steps in a row, without those of the step's own episode.
    number, num_steps = others
    choices = len(number) - here.length
    drawn = _below(choices, generator)
    own = torch.searchsorted(number, here.env * num_steps + here.start)
    drawn = torch.where(drawn < own, drawn, drawn + here.length)
    far = number[drawn.clamp(max=len(number) - 1)]
    return far // num_steps, far % num_steps, choices > 0


def _randint(low: int, high: int, shape: tuple[int, int], generator: Generator) -> Tensor:
    """Integers from low to high, both included."""
    return torch.randint(low, high + 1, shape, generator=generator, device=generator.device)


def _below(limit: Tensor, generator: Generator) -> Tensor:
    """Integers in [0, limit); 0 where the limit is 0."""
    unit = torch.rand(
        limit.shape, generator=generator, device=generator.device, dtype=torch.float64
    )
    return (unit * limit).long()


def _coin(shape: torch.Size, generator: Generator) -> Tensor:
    return torch.rand(shape, generator=generator, device=generator.device) < 0.5


def _choose(candidates: Tensor, how_many: int, generator: Generator) -> Tensor:
    """Draws with replacement; returns an empty tensor if there are no candidates."""
    if candidates.shape[0] == 0:
        return candidates
    limit = candidates.new_full((how_many,), candidates.shape[0])
    return candidates[_below(limit, generator)]
