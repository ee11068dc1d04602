"""Batches of pairs from experience, for training and for the held-out accuracy."""

from collections.abc import Iterator

import torch
from torch import Generator, Tensor

from episodic_curiosity.reachability.experience import Experience, Window
from episodic_curiosity.reachability.fit_config import FitConfig
from episodic_curiosity.reachability.pairs import Pairs, draw_pairs, find_episodes
from episodic_curiosity.support.checks import check_seed

MAX_EACH = 5_000  # pairs of each kind, for an accuracy to within half a per cent


class NoPairsError(ValueError):
    """The experience has no pairs of one kind: its episodes are too short."""


def balanced_pairs(experience: Experience, config: FitConfig, seed: int) -> Pairs:
    """Draws an equal number of near and far pairs."""
    pairs = _shuffled_pairs(experience, config, _generator(experience, seed))
    near, far = (kind.nonzero(as_tuple=True)[0] for kind in (pairs.reachable, ~pairs.reachable))
    num_each = min(len(near), len(far), MAX_EACH)
    return pairs.select(torch.cat([near[:num_each], far[:num_each]]))


def split(experience: Experience, config: FitConfig) -> tuple[Experience, Experience]:
    """The older steps for training, the newest for the held-out accuracy."""
    num_steps = experience.first.shape[0]
    if num_steps < config.least_steps:
        raise ValueError(
            f"fitting at k = {config.pairs.k}, gamma = {config.pairs.gamma} needs at least "
            f"{config.least_steps} steps of every environment, got {num_steps}"
        )
    num_held_out = max(int(num_steps * config.held_out_share), config.least_steps // 2)
    border = num_steps - num_held_out
    return Window(experience, 0, border), Window(experience, border, num_steps)


def batches_of(experience: Experience, config: FitConfig, seed: int) -> Iterator[Pairs]:
    """Yields batches in endless passes over the experience, with new pairs in every pass."""
    generator = _generator(experience, seed)
    while True:
        pairs = _shuffled_pairs(experience, config, generator)
        batch_size = min(config.batch_size, len(pairs.reachable))
        for start in range(0, len(pairs.reachable) - batch_size + 1, batch_size):
            yield pairs.select(slice(start, start + batch_size))


def _shuffled_pairs(experience: Experience, config: FitConfig, generator: Generator) -> Pairs:
    first = experience.first
    pairs = draw_pairs(first, config.pairs, generator)
    num_reachable, num_pairs = int(pairs.reachable.sum()), len(pairs.reachable)
    if num_reachable in (0, num_pairs):
        if num_reachable and config.pairs.far_from == "other_episodes":
            raise NoPairsError(
                f"no unreachable pair could be drawn from {first.shape[0]} steps of "
                f"{first.shape[1]} environments: far_from='other_episodes' needs two episodes"
            )
        missing, wanted, advice = "reachable", 1, ""
        if num_reachable:
            missing, wanted = "unreachable", config.pairs.margin + 1
            # Pairs are drawn at random: a little more may not be enough.
            advice = "; lower gamma, keep more steps, or give far_from='other_episodes'"
        longest = int(find_episodes(first).length.max())
        raise NoPairsError(
            f"no {missing} pair could be drawn from {first.shape[0]} steps of "
            f"{first.shape[1]} environments: the longest stretch of one episode has {longest} "
            f"steps, k = {config.pairs.k} and gamma = {config.pairs.gamma} need more than "
            f"{wanted}{advice}"
        )
    order = torch.randperm(num_pairs, generator=generator, device=generator.device)
    return pairs.select(order)


def observations(
    experience: Experience, pairs: Pairs, device: torch.device
) -> tuple[Tensor, Tensor, Tensor]:
    """Both observations (B, ...) and the label (B,) as a float, on the R-network's device."""
    # In one call: on a GPU few frames take as long to render as many.
    time = torch.cat([pairs.first, pairs.second])
    env = torch.cat([pairs.first_env, pairs.second_env])
    to_gpu = device.type == "cuda"  # from a GPU, a CPU would read what has not arrived yet
    first, second = experience.views(time, env).to(device, non_blocking=to_gpu).chunk(2)
    return first, second, pairs.reachable.to(device, torch.float32, non_blocking=to_gpu)


def _generator(experience: Experience, seed: int) -> Generator:
    return Generator(experience.first.device).manual_seed(check_seed(seed))
