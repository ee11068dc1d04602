"""PPO's two losses, sample by sample.

Schulman et al. 2017, equation 7, and OpenAI's baselines for the clipped value. Shapes:
B samples, H value heads.
"""

import torch
from torch import Tensor


def clipped_gain(log_ratio: Tensor, advantage: Tensor, clip_range: Tensor) -> Tensor:
    """What the new policy gains, (B,); going further than the clip range gains no more."""
    ratio = log_ratio.exp()
    clipped = ratio.clamp(1.0 - clip_range, 1.0 + clip_range)
    return torch.minimum(ratio * advantage, clipped * advantage)


def value_error(
    value: Tensor, old_value: Tensor, target: Tensor, clip_range: Tensor | None
) -> Tensor:
    """Half the squared error, (B, H).

    With a range it is no less than that of a value held within the range of the old one, so
    that going further gains nothing.
    """
    error = (value - target).square()
    if clip_range is not None:
        clipped = old_value + (value - old_value).clamp(-clip_range, clip_range)
        error = torch.maximum(error, (clipped - target).square())
    return 0.5 * error
