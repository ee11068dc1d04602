"""Adam for the networks of a bonus, stepped in `learn`.

Shapes: B samples of a minibatch.
"""

import math
from collections.abc import Callable
from typing import Any, Self

import torch
from torch import Tensor, nn

from episodic_curiosity.support.adam import MOMENTS, FusedAdam
from episodic_curiosity.support.checks import check_at_least, check_number
from episodic_curiosity.support.randomness import later_seed

# Of one call of `fit`.
EPOCHS = 4
MINIBATCHES = 4
MAX_NORM = 0.5  # bound on the gradient, as in PPO


class OwnAdam(nn.Module):
    """Adam with its state as buffers: they are saved and checked with those of the bonus."""

    passes: Tensor  # () int64, calls of `new_generator`

    def __init__(self, network: nn.Module, learning_rate: float, seed: int) -> None:
        super().__init__()
        check_number("learning_rate", learning_rate, above=0)
        check_at_least("seed", seed, 0)
        weights = {
            name: weight for name, weight in network.named_parameters() if weight.requires_grad
        }
        self._weights = {name.replace(".", "_"): weight for name, weight in weights.items()}
        self._seed = seed
        self._adam = FusedAdam([(weights.values(), 0.0)], learning_rate, eps=1e-5)
        device = next(iter(weights.values())).device
        self.register_buffer("passes", torch.zeros((), dtype=torch.int64, device=device))
        for name, weight in self._weights.items():
            for moment in MOMENTS:
                self.register_buffer(f"{moment}_{name}", self._adam.state[weight][moment])

    def _apply(self, *arguments: Any, **options: Any) -> Self:
        """Moves the buffers, as `to` does, which replaces them."""
        super()._apply(*arguments, **options)  # type: ignore[no-untyped-call]
        self._use_buffers()
        return self

    def _use_buffers(self) -> None:
        """Makes the buffers Adam's state of each weight."""
        for name, weight in self._weights.items():
            self._adam.state[weight] = {
                moment: self.get_buffer(f"{moment}_{name}") for moment in MOMENTS
            }

    def fit(
        self,
        num_samples: int,
        loss: Callable[[Tensor], Tensor],
        *,
        share: float = 1.0,
        most: int | None = None,
    ) -> float | None:
        """Takes four passes of four steps; returns the mean loss, None without samples.

        A pass is over a random share of the samples. `loss` takes the (B,) indices of a
        minibatch, which has at most `most` samples. Synchronises. Raises FloatingPointError if
        the loss is not finite: the weights are then unusable.
        """
        if num_samples == 0:
            return None
        generator = self.new_generator()
        size = max(1, int(share * num_samples) // MINIBATCHES)
        size = min(size, most or size)
        losses: list[Tensor] = []
        for _ in range(EPOCHS):
            order = torch.randperm(num_samples, generator=generator)[: MINIBATCHES * size]
            batches = order.to(self.passes.device).split(size)
            losses += [self.descend(loss(index)) for index in batches]
        return finite(torch.stack(losses).mean().item())

    def new_generator(self) -> torch.Generator:
        """Returns random numbers for another pass, on the CPU; synchronises."""
        generator = torch.Generator().manual_seed(
            later_seed(self._seed, 1_000_003 * int(self.passes))
        )
        self.passes += 1
        return generator

    def descend(self, loss: Tensor) -> Tensor:
        """Takes one gradient step; returns the loss, detached."""
        self._adam.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(self._weights.values(), MAX_NORM)
        self._adam.step()
        return loss.detach()


def finite(loss: float) -> float:
    """Returns a mean loss; raises FloatingPointError if it is not finite."""
    if not math.isfinite(loss):
        raise FloatingPointError(
            f"the loss of the bonus became {loss}: lower its learning rate or check the "
            f"observations"
        )
    return loss
