"""Adam for the networks of a bonus, stepped in `learn`.

Shapes: B samples of a minibatch.
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from episodic_curiosity.support.checks import check_at_least, check_number

# Of one call of `fit`.
EPOCHS = 4
MINIBATCHES = 4
MAX_NORM = 0.5  # bound on the gradient, as in PPO


class OwnAdam(nn.Module):
    """Adam with its state as buffers: they are saved and checked with those of the bonus."""

    passes: Tensor  # () int64, calls of `fit`

    def __init__(self, network: nn.Module, learning_rate: float, seed: int) -> None:
        super().__init__()
        check_number("learning_rate", learning_rate, above=0)
        check_at_least("seed", seed, 0)
        weights = {
            name: weight for name, weight in network.named_parameters() if weight.requires_grad
        }
        self._weights = list(weights.values())
        self._seed = seed
        self._adam = torch.optim.Adam(self._weights, learning_rate, eps=1e-5, fused=True)
        device = self._weights[0].device
        self.register_buffer("passes", torch.zeros((), dtype=torch.int64, device=device))
        for name, weight in weights.items():
            state = {
                "step": torch.zeros((), device=device),
                "exp_avg": torch.zeros_like(weight),
                "exp_avg_sq": torch.zeros_like(weight),
            }
            self._adam.state[weight] = state
            for moment, tensor in state.items():
                self.register_buffer(f"{moment}_{name}".replace(".", "_"), tensor)

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
        minibatch, which has at most `most` samples. Synchronises.
        """
        if num_samples == 0:
            return None
        generator = torch.Generator().manual_seed(self._seed + 1_000_003 * int(self.passes))
        self.passes += 1
        size = max(1, int(share * num_samples) // MINIBATCHES)
        size = min(size, most or size)
        losses: list[Tensor] = []
        for _ in range(EPOCHS):
            order = torch.randperm(num_samples, generator=generator)[: MINIBATCHES * size]
            batches = order.to(self.passes.device).split(size)
            losses += [self._descend(loss(index)) for index in batches]
        return torch.stack(losses).mean().item()

    def _descend(self, loss: Tensor) -> Tensor:
        self._adam.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(self._weights, MAX_NORM)
        self._adam.step()
        return loss.detach()
