"""Adam in torch's fused kernel.

torch.optim.Adam computes the same, bit for bit, but imports torch's compiler when it is made,
which takes a second in each process that trains.
"""

from collections.abc import Iterable

import torch
from torch import Tensor, nn
from torch.optim.adam import adam

BETAS = (0.9, 0.999)
MOMENTS = ("step", "exp_avg", "exp_avg_sq")  # the state of a parameter


class FusedAdam:
    """Steps groups of parameters; a parameter without a gradient is left as it is."""

    def __init__(
        self,
        groups: Iterable[tuple[Iterable[nn.Parameter], float]],
        learning_rate: float | Tensor,
        eps: float = 1e-8,
    ) -> None:
        """A group is parameters and their weight decay.

        A learning rate that is a tensor is read in each step.
        """
        self.groups = [(list(weights), decay) for weights, decay in groups]
        self._learning_rate, self._eps = learning_rate, eps
        self.state: dict[nn.Parameter, dict[str, Tensor]] = {
            weight: {
                "step": torch.zeros((), device=weight.device),
                "exp_avg": torch.zeros_like(weight),
                "exp_avg_sq": torch.zeros_like(weight),
            }
            for weights, _ in self.groups
            for weight in weights
        }

    def zero_grad(self) -> None:
        """Removes all gradients."""
        for weight in self.state:
            weight.grad = None

    @torch.no_grad()
    def step(self) -> None:
        """Takes one gradient step; does not synchronise, and can be captured."""
        beta1, beta2 = BETAS
        for weights, decay in self.groups:
            moved: list[Tensor] = [weight for weight in weights if weight.grad is not None]
            steps, averages, squares = (
                [self.state[weight][moment] for weight in weights if weight.grad is not None]
                for moment in MOMENTS
            )
            adam(
                moved,
                [weight.grad for weight in weights if weight.grad is not None],
                averages,
                squares,
                [],
                steps,
                fused=True,
                amsgrad=False,
                beta1=beta1,
                beta2=beta2,
                lr=self._learning_rate,
                weight_decay=decay,
                eps=self._eps,
                maximize=False,
            )
