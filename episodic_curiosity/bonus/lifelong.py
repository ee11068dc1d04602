"""The lifelong factor of an episodic bonus: larger for observations seldom seen in the run.

Badia et al. 2020 (NGU). Shapes: N environments, B observations.
"""

import math

import torch
from torch import Tensor, nn

from episodic_curiosity.bonus.distillation import RandomDistillation
from episodic_curiosity.bonus.statistics import BonusStatistics


class Lifelong(nn.Module):
    """clip(1 + (e - mean of e) / deviation of e, 1, L), e being RND's error.

    The mean and the deviation are of all past errors, updated in `learn`; before its
    second call the factor is 1.
    """

    mean: Tensor  # () float32
    spread: Tensor  # () float32

    def __init__(
        self, distillation: RandomDistillation, most: float, device: torch.device | str
    ) -> None:
        """`most` is L."""
        super().__init__()
        self.distillation = distillation
        self.most = most
        self.register_buffer("mean", torch.zeros((), device=device))
        self.register_buffer("spread", torch.full((), math.inf, device=device))
        self.past = BonusStatistics(torch.device(device))  # of errors

    def factor(self, observation: Tensor, where: Tensor) -> Tensor:
        """Returns the factors (N,); errors of the rows in the (N,) mask count as past ones."""
        error = self.distillation(observation).error
        self.past.add(error, where=where & self.distillation.is_ready)
        return (1 + (error - self.mean) / self.spread).clamp(1.0, self.most)

    def learn(self, observations: Tensor) -> dict[str, float]:
        """Fits RND's predictor to (B, ...) observations; synchronises."""
        mean, spread = self.past.mean_and_spread()
        self.mean.copy_(mean)
        self.spread.copy_(torch.where(spread > 0, spread, math.inf))
        return self.distillation.learn(observations)
