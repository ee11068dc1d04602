"""The running standard deviation of a bonus's return, which a bonus can be divided by.

Burda et al. 2019 (RND), section 2.4. Shapes: N environments.
"""

import torch
from torch import Tensor, nn

from episodic_curiosity.bonus.statistics import BonusStatistics
from episodic_curiosity.support.checks import check_discount


class ReturnDeviation(nn.Module):
    """The standard deviation of all past discounted sums of a bonus.

    The sum continues across episodes and counts from an environment's first non-zero bonus.
    """

    divisor: Tensor  # () float32
    discounted: Tensor  # (N,) float32

    def __init__(
        self, num_envs: int, gamma: float, device: torch.device | str, *, unknown: float = 1.0
    ) -> None:
        """`unknown` is the divisor until there is a deviation."""
        super().__init__()
        check_discount("gamma", gamma)
        self.gamma = gamma
        self.unknown = unknown
        self.register_buffer("divisor", torch.full((), unknown, device=device))
        self.register_buffer("discounted", torch.zeros(num_envs, device=device))
        self.past = BonusStatistics(torch.device(device))  # of all past discounted sums

    def add(self, bonus: Tensor, where: Tensor) -> None:
        """Adds (N,) bonuses in the rows of the (N,) mask; never synchronises."""
        discounted = torch.where(where, self.gamma * self.discounted + bonus, self.discounted)
        self.discounted.copy_(discounted)
        self.past.add(discounted, where=where & (discounted != 0))

    def update(self) -> None:
        """Sets the divisor, which is constant until the next call."""
        _, spread = self.past.mean_and_spread()
        self.divisor.copy_(torch.where(spread > 0, spread, self.unknown))
