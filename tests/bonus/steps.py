"""Rollouts of calls that were made to a bonus."""

import torch

from episodic_curiosity.testing.calls import Call
from episodic_curiosity.worlds.base import Rollout


def rollout_of(calls: list[Call]) -> Rollout:
    """All but the newest view of these calls, as our trainer would hand them to `learn`."""
    first = torch.stack([call.opens for call in calls])
    seen = torch.stack([call.seen for call in calls]).nan_to_num()
    nothing = torch.zeros(first[1:].shape)
    values = torch.zeros(*first.shape, 1)
    return Rollout(
        observation=seen,
        action=torch.stack([call.action for call in calls[1:]]),
        log_prob=nothing,
        value=values,
        reward=nothing,
        bonus=nothing,
        first=first,
        terminated=nothing.bool(),
        final_value=values[1:],
        view=seen[:-1],
    )
