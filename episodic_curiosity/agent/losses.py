"""PPO's two losses, per sample.

Schulman et al. 2017, equation 7; value clipping as in OpenAI's baselines. Shapes: B samples,
H value heads.
"""

import torch
from torch import Tensor


def clipped_gain(log_ratio: Tensor, advantage: Tensor, clip_range: Tensor) -> Tensor:
    """PPO's clipped objective, (B,)."""
    ratio = log_ratio.exp()
    clipped = ratio.clamp(1.0 - clip_range, 1.0 + clip_range)
    return torch.minimum(ratio * advantage, clipped * advantage)


def value_error(
    value: Tensor, old_value: Tensor, target: Tensor, clip_range: Tensor | None
) -> Tensor:
    """Half the squared error of the value, (B, H).

    With a clip range it is the maximum of this and the error of the value clipped to that range
    around the old value.
    """
    error = (value - target).square()
    if clip_range is not None:
        clipped = old_value + (value - old_value).clamp(-clip_range, clip_range)
        error = torch.maximum(error, (clipped - target).square())
    return 0.5 * error
