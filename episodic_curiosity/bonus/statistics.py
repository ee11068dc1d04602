"""How much was paid, told without waiting for the device until somebody asks."""

import torch
from torch import Tensor


class BonusStatistics:
    """Number, sum and sum of squares of what was added, kept on the device."""

    def __init__(self, device: torch.device) -> None:
        self.sums = torch.zeros(3, dtype=torch.float64, device=device)

    def add(self, values: Tensor, where: Tensor) -> None:
        """Adds those of the (N,) values where the (N,) mask is true."""
        counted = values.double().masked_fill(~where, 0.0)
        self.sums += torch.stack([where.sum(), counted.sum(), counted.square().sum()])

    def mean_and_spread(self) -> tuple[Tensor, Tensor]:
        """Mean and standard deviation, () each; zero while nothing was added."""
        number, total, total_square = self.sums.unbind()
        number = number.clamp(min=1.0)
        mean = total / number
        variance = total_square / number - mean.square()
        return mean, variance.clamp(min=0.0).sqrt()

    def metrics(self) -> dict[str, float]:
        """The bonus since this was last asked; waits for the device."""
        mean, spread = torch.stack(self.mean_and_spread()).tolist()
        self.sums.zero_()
        return {"bonus_mean": mean, "bonus_spread": spread}
