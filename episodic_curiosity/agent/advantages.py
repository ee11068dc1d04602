"""Generalised advantage estimation (Schulman et al. 2016).

Shapes: T steps, N environments, H value heads.
"""

import torch
from torch import Tensor

from episodic_curiosity.worlds.base import Rollout


@torch.no_grad()
def advantages(
    rollout: Rollout,
    reward: Tensor,
    *,
    gamma: float | Tensor,
    lam: float,
    timeouts_are_ends: bool = False,
) -> Tensor:
    """(T, N, H) advantages for the (T, N, H) reward of each head; gamma may be one per head.

    The value after an action is 0 where the episode terminated, `final_value` where it was
    truncated, and the next value elsewhere. With `timeouts_are_ends` it is 0 after truncation,
    too.
    """
    is_last = rollout.first[1:, :, None]  # (T, N, 1)
    if timeouts_are_ends:
        follows = rollout.value[1:].masked_fill(is_last, 0.0)
    else:
        follows = torch.where(is_last, rollout.final_value, rollout.value[1:])
        follows = follows.masked_fill(rollout.terminated[:, :, None], 0.0)
    # TD errors, to which the discounted later ones of the episode are added.
    advantage = reward + gamma * follows - rollout.value[:-1]
    decay = gamma * lam * ~is_last
    for t in reversed(range(rollout.num_steps - 1)):
        advantage[t].addcmul_(decay[t], advantage[t + 1])
    return advantage
