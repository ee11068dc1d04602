"""The paper's comparator C: are two embeddings within k steps of each other?

A comparator first converts an embedding to the content of a memory slot (`stored`) or to the
query of the current observation (`asked`): all the work that depends on only one of the two.
`forward` does the rest, for every slot at every step.

Shapes: N environments, K memory slots, D embedding.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from episodic_curiosity.support.compiling import compiles, fused

ROWS_PER_CHUNK = 1024  # on a CPU, so that a layer's activations stay in the cache


class DotComparator(nn.Module):
    """The dot product of the embeddings: one matrix product compares with all slots."""

    def __init__(self, embedding_size: int) -> None:
        super().__init__()
        self.size = embedding_size

    def stored(self, embedding: Tensor) -> Tensor:
        return embedding

    def asked(self, embedding: Tensor) -> Tensor:
        return embedding

    def forward(self, stored: Tensor, asked: Tensor) -> Tensor:
        """Logits (N,) of N pairs."""
        return (stored * asked).sum(dim=-1)

    def with_memory(self, stored: Tensor, asked: Tensor) -> Tensor:
        """Logits (N, K) of (N, K, D) slots and (N, D) queries."""
        # As a row times a matrix: on a CPU six times faster than a matrix times a column.
        return torch.bmm(asked.unsqueeze(1), stored.transpose(1, 2)).squeeze(1)


class MlpComparator(nn.Module):
    """The paper's comparator: normalised concatenation, 4 hidden layers of 512, 2-way output.

    The first layer acts on [memory, current], so it is the sum of one part for each. `stored`
    returns the part of a memory slot, which is computed once.
    """

    def __init__(self, embedding_size: int) -> None:
        super().__init__()
        self.size = 512
        # Normalising a concatenation is the same as normalising its halves.
        self.stored_norm = nn.BatchNorm1d(embedding_size)
        self.asked_norm = nn.BatchNorm1d(embedding_size)
        self.stored_first = nn.Linear(embedding_size, self.size)
        self.asked_first = nn.Linear(embedding_size, self.size, bias=False)
        self.norms = nn.ModuleList(nn.BatchNorm1d(self.size) for _ in range(4))
        self.layers = nn.ModuleList(nn.Linear(self.size, self.size) for _ in range(3))
        self.output = nn.Linear(self.size, 2)

    def stored(self, embedding: Tensor) -> Tensor:
        part: Tensor = self.stored_first(functional.relu(self.stored_norm(embedding)))
        return part

    def asked(self, embedding: Tensor) -> Tensor:
        part: Tensor = self.asked_first(functional.relu(self.asked_norm(embedding)))
        return part

    def forward(self, stored: Tensor, asked: Tensor) -> Tensor:
        """Logits (N,) of N pairs."""
        x = stored + asked
        for norm, layer in zip(self.norms, [*self.layers, self.output], strict=True):
            x = layer(functional.relu(norm(x)))
        return x[:, 1] - x[:, 0]  # the log-odds of a softmax over two

    def with_memory(self, stored: Tensor, asked: Tensor) -> Tensor:
        """Logits (N, K) of (N, K, D) slots and (N, D) queries, as in eval mode.

        For inference only: on a GPU the logits have no gradient.
        """
        if compiles(stored.device):
            return _with_memory(self, stored, asked)
        layers = self.folded_layers()
        envs_per_chunk = max(1, ROWS_PER_CHUNK // stored.shape[1])
        chunks = zip(stored.split(envs_per_chunk), asked.split(envs_per_chunk), strict=True)
        return torch.cat([layers.compare(*chunk, torch.float32) for chunk in chunks])

    def folded_layers(self) -> "FoldedLayers":
        """Merges the layers with the normalisations between them.

        Computed at every call, for a few thousandths of the work, so that it cannot go stale.
        """
        folded = []
        for layer, norm in zip(self.layers, self.norms[1:], strict=True):
            assert isinstance(layer, nn.Linear)
            scale, shift = _affine(norm)
            folded.append(
                (layer.weight * scale[:, None], torch.addcmul(shift, layer.bias, scale))
            )
        return FoldedLayers(
            *_affine(self.norms[0]),
            folded,
            # The 2-way output as its log-odds.
            self.output.weight[1] - self.output.weight[0],
            self.output.bias[1] - self.output.bias[0],
        )


class FoldedLayers(NamedTuple):
    """The layers of an MlpComparator after the first, with normalisations merged."""

    scale: Tensor  # (D,)
    shift: Tensor  # (D,)
    hidden: list[tuple[Tensor, Tensor]]  # weights (D, D) and biases (D,)
    weight: Tensor  # (D,)
    bias: Tensor  # ()

    def compare(self, stored: Tensor, asked: Tensor, dtype: torch.dtype) -> Tensor:
        """Logits (N, K) of (N, K, D) slots; the hidden layers compute in `dtype`."""
        num_envs, num_slots, size = stored.shape
        asked = torch.addcmul(self.shift, asked, self.scale)
        x = torch.addcmul(asked.unsqueeze(1), stored, self.scale)
        x = x.view(-1, size).relu_().to(dtype)
        for weight, bias in self.hidden:
            x = torch.addmm(bias.to(dtype), x, weight.t().to(dtype)).relu_()
        return torch.addmv(self.bias, x.float(), self.weight).view(num_envs, num_slots)


@fused
def _with_memory(comparator: MlpComparator, stored: Tensor, asked: Tensor) -> Tensor:
    """In bfloat16: several times as fast on a GPU, and close enough (test_network.py)."""
    return comparator.folded_layers().compare(stored, asked, torch.bfloat16)


def _affine(norm: nn.Module) -> tuple[Tensor, Tensor]:
    """A batch normalisation in eval mode as x * scale + shift."""
    assert isinstance(norm, nn.BatchNorm1d)
    assert norm.running_mean is not None
    assert norm.running_var is not None
    scale = norm.weight * torch.rsqrt(norm.running_var + norm.eps)
    return scale, norm.bias - norm.running_mean * scale


COMPARATORS: dict[str, Callable[[int], DotComparator | MlpComparator]] = {
    "mlp": MlpComparator,
    "dot": DotComparator,
}
