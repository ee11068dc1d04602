"""Running bonus statistics, kept on the device until read."""

import torch
from torch import Tensor, nn

from episodic_curiosity.support.compiling import fused


class BonusStatistics(nn.Module):
    """Number, sum and sum of squares of the added values, kept on the device."""

    sums: Tensor  # (3,) float64

    def __init__(self, device: torch.device) -> None:
        super().__init__()
        self.register_buffer("sums", torch.zeros(3, dtype=torch.float64, device=device))

    def add(self, values: Tensor, where: Tensor) -> None:
        """Adds the (N,) values where the (N,) mask is true."""
        _add(self.sums, values, where)

    def mean_and_spread(self) -> tuple[Tensor, Tensor]:
        """Mean and standard deviation, () each; zero if no value was added."""
        number, total, total_square = self.sums.unbind()
        number = number.clamp(min=1.0)
        mean = total / number
        variance = total_square / number - mean.square()
        return mean, variance.clamp(min=0.0).sqrt()

    def metrics(self) -> dict[str, float]:
        """Bonus statistics since the last call, then resets; synchronises with the GPU."""
        mean, spread = torch.stack(self.mean_and_spread()).tolist()
        self.sums.zero_()
        return {"bonus_mean": mean, "bonus_spread": spread}


@fused
def _add(sums: Tensor, values: Tensor, where: Tensor) -> None:
    counted = values.double().masked_fill(~where, 0.0)
    sums += torch.stack([where.sum(), counted.sum(), counted.square().sum()])
