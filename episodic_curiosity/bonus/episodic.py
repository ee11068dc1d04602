"""The episodic-curiosity bonus, for observations that are not reachable from memory.

Savinov et al. 2019, section 2. Shapes: N environments, K memory slots, D embedding.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import torch
from torch import Tensor

from episodic_curiosity.bonus.aggregates import AGGREGATES
from episodic_curiosity.bonus.memory import EpisodicMemory
from episodic_curiosity.bonus.state import check_part, check_parts, copied
from episodic_curiosity.bonus.statistics import BonusStatistics
from episodic_curiosity.reachability.network import Embeddings
from episodic_curiosity.support.checks import check_at_least, check_choice, check_number
from episodic_curiosity.worlds.base import Rollout, Step


@dataclass(frozen=True, kw_only=True)
class EpisodicConfig:
    """The bonus, in the paper's symbols (section 2)."""

    alpha: float = 0.030  # scale
    beta: float = 0.5  # 1.0 where episodes can end early
    novelty_threshold: float = 0.0  # observations with a larger bonus are stored
    aggregate: Literal["percentile_90", "tenth_largest", "max", "relative_count"] = (
        "percentile_90"  # F
    )
    memory_capacity: int = 200  # K
    replacement: Literal["random", "fifo"] = "random"  # when the memory is full

    def __post_init__(self) -> None:
        check_choice("aggregate", self.aggregate, AGGREGATES)
        check_choice("replacement", self.replacement, ("random", "fifo"))
        check_at_least("memory_capacity", self.memory_capacity, 1)
        check_number("alpha", self.alpha, above=0)
        check_number("beta", self.beta)
        check_number("novelty_threshold", self.novelty_threshold)


class Reachability(Protocol):
    """The part of RNetwork that the bonus uses."""

    @property
    def fitted(self) -> Tensor: ...
    @property
    def held_out_accuracy(self) -> Tensor: ...
    def embed(self, view: Tensor) -> Embeddings: ...
    def compare(self, stored: Tensor, asked: Tensor) -> Tensor: ...
    def state_dict(self) -> dict[str, Any]: ...
    def load_state_dict(self, state_dict: Mapping[str, Any]) -> object: ...


class EpisodicBonus:
    """b = alpha * (beta - F(C(m, E(o)) for m in memory)), one b per environment."""

    needs_views = False

    def __init__(
        self, r_network: Reachability, memory: EpisodicMemory, config: EpisodicConfig
    ) -> None:
        self.r_network = r_network
        self.memory = memory
        self.config = config
        self._paid = BonusStatistics(memory.device)

    @torch.no_grad()
    def bonus(self, step: Step, action: Tensor | None = None) -> Tensor:  # noqa: ARG002
        """Returns the bonus (N,) of the current observations and stores the novel ones."""
        return self.rate(self.r_network.embed(step.view), step.first)

    @torch.no_grad()
    def rate(self, embeddings: Embeddings, first: Tensor) -> Tensor:
        """Returns the bonus (N,) of embedded observations and stores the novel ones.

        The first observation of an episode is stored, but its bonus is zero: no action led to
        it. The same holds after a memory was cleared in mid-episode. The bonus is zero until
        the R-network has been fitted, because it would be noise.
        """
        self.memory.clear(where=first)
        is_empty = self.memory.added == 0
        bonus = self.config.alpha * (self.config.beta - self._similarity(embeddings.asked))
        novel = bonus > self.config.novelty_threshold
        self.memory.add(embeddings.stored, where=novel | is_empty)
        bonus = bonus.masked_fill(is_empty | ~self.r_network.fitted, 0.0)
        self._paid.add(bonus, where=~first)
        return bonus

    def learn(self, rollout: Rollout) -> dict[str, float]:  # noqa: ARG002
        """Does nothing: the R-network was fitted beforehand."""
        return {}

    def metrics(self) -> dict[str, float]:
        """Bonus statistics since the last call, and memory use; synchronises with the GPU."""
        count, capacity = self.memory.count.double(), self.memory.capacity
        metrics = {
            **self._paid.metrics(),
            "memory_fill": count.mean().item() / capacity,
            "memory_full": (count == capacity).double().mean().item(),  # share of environments
        }
        if self.r_network.fitted:
            metrics["r_network_accuracy"] = self.r_network.held_out_accuracy.item()
        return metrics

    def state_dict(self) -> dict[str, Any]:
        """A copy of the R-network, the memories and the bonus statistics."""
        return {
            "r_network": copied(self.r_network.state_dict()),
            "memory": copied(self.memory.state_dict()),
            "paid": self._paid.sums.clone(),
        }

    def check_state(self, state: Mapping[str, Any]) -> None:
        """Raises unless `load_state_dict` accepts this state."""
        check_parts(state, {"r_network", "memory", "paid"})
        check_part(state, "r_network", self.r_network.state_dict())
        check_part(state, "memory", self.memory.state_dict())
        check_part(state, "paid", self._paid.sums)

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restores a state with the same R-network, number of environments and memory."""
        self.check_state(state)
        self.r_network.load_state_dict(state["r_network"])
        self.memory.load_state_dict(state["memory"])
        self._paid.sums.copy_(state["paid"])

    def _similarity(self, asked: Tensor) -> Tensor:
        """F (N,) over each environment's memory."""
        count = self.memory.count
        slots = self.memory.embeddings  # (N, K, D)
        if slots.device.type == "cpu":  # no synchronisation needed: skip empty slots
            slots = slots[:, : max(1, int(count.max()))]
        similarity = self.r_network.compare(slots, asked)  # (N, K)
        return AGGREGATES[self.config.aggregate](similarity, count)
