"""A summary of an episodic memory, for a policy that sees its memory.

Not in the paper, whose conclusion wishes for such a policy. Shapes: N environments, K memory
slots, S = 8 numbers.
"""

import torch
from torch import Tensor, nn

from episodic_curiosity.support.compiling import fused

# In this order: the familiarity of what is seen now and a step earlier; its averages; the
# filled share of the memory; the ages of the most similar and of the newest slot.
AVERAGED = (4.0, 16.0, 64.0)  # steps that the averages reach back
HALF = 64.0  # steps after which an age is one half
SIZE = 2 + len(AVERAGED) + 3  # S


class MemorySummary(nn.Module):
    """S numbers in [0, 1] for each environment; zeros where its memory is empty.

    They are of the newest observation and the memory before it was added. Rows without one
    keep theirs. Nothing here synchronises with the GPU.
    """

    values: Tensor  # (N, S) float32
    clock: Tensor  # (N,) int64, observations ever
    stored: Tensor  # (N, K) int64, when each slot was filled, by `clock`
    _rates: Tensor  # (3,) of the averages
    _rows: Tensor  # (N,) int64, 0 .. N - 1

    def __init__(self, num_envs: int, capacity: int, device: torch.device) -> None:
        super().__init__()
        row = torch.arange(num_envs, device=device)
        self.register_buffer("values", torch.zeros(num_envs, SIZE, device=device))
        self.register_buffer("clock", torch.zeros_like(row))
        self.register_buffer("stored", row.new_zeros((num_envs, capacity)))
        rates = 1 / torch.tensor(AVERAGED, device=device)
        self.register_buffer("_rates", rates, persistent=False)
        self.register_buffer("_rows", row, persistent=False)

    def clear(self, where: Tensor) -> None:
        """Forgets the rows of the (N,) mask, whose memories are emptied."""
        self.values.masked_fill_(where[:, None], 0.0)

    def update(
        self, familiarity: Tensor, closeness: Tensor, count: Tensor, where: Tensor
    ) -> None:
        """Takes in an observation of the rows of the (N,) mask, before it is stored.

        `familiarity` (N,) is of the observation with the whole memory, from 0 to 1; `closeness`
        (N, up to K) is largest at the slot that is most like it, in any unit.
        """
        self.clock += where
        now = _summarise(
            self.values, self.clock, self.stored, self._rates, familiarity, closeness, count
        )
        self.values.copy_(torch.where(where[:, None], now, self.values))

    def store(self, slot: Tensor, where: Tensor) -> None:
        """Notes that the observation was stored in slot (N,), in the rows of the (N,) mask."""
        kept = self.stored[self._rows, slot]
        self.stored[self._rows, slot] = torch.where(where, self.clock, kept)


@fused
def _summarise(
    before: Tensor,
    clock: Tensor,
    stored: Tensor,
    rates: Tensor,
    familiarity: Tensor,
    closeness: Tensor,
    count: Tensor,
) -> Tensor:
    """The summary (N, S) after the summary `before`."""
    num_slots = closeness.shape[1]
    is_empty = (count == 0)[:, None]
    is_held = torch.arange(num_slots, device=count.device) < count[:, None]  # (N, num_slots)
    known = familiarity.clamp(0, 1)[:, None].masked_fill(is_empty, 0.0)
    averages = torch.lerp(before[:, 2 : 2 + len(AVERAGED)], known, rates)
    fill = count[:, None] / stored.shape[1]
    age = clock[:, None] - stored[:, :num_slots]
    nearest = closeness.masked_fill(~is_held, -torch.inf).argmax(dim=1, keepdim=True)
    newest = torch.where(is_held, age, clock[:, None]).amin(dim=1, keepdim=True)
    ages = torch.cat([age.gather(1, nearest), newest], dim=1).masked_fill(is_empty, 0)
    return torch.cat([known, before[:, :1], averages, fill, ages / (ages + HALF)], dim=1)
