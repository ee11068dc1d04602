"""Episodic curiosity for custom training loops.

Shapes: N environments.
"""

from typing import Any, Literal

import torch
from numpy.typing import NDArray
from torch import Tensor

from episodic_curiosity.bonus.episodic import EpisodicBonus, EpisodicConfig
from episodic_curiosity.bonus.memory import EpisodicMemory
from episodic_curiosity.bonus.state import check_parts
from episodic_curiosity.reachability.network import RNetwork
from episodic_curiosity.reachability.online import OnlineConfig, OnlineFitting
from episodic_curiosity.support.checks import (
    check_at_least,
    check_mask,
    check_type,
    check_views,
    to_tensor,
)


class EpisodicCuriosity:
    """Computes a bonus for observations that are not reachable from episodic memory.

    Call `bonus` once per step of the N environments. Also call `learn` to refit the R-network
    to the agent's observations (ECO). The bonus is zero until the R-network has been fitted, by
    `learn` or beforehand by `fit`. Tensors must be on the R-network's device; arrays are copied
    to it.
    """

    def __init__(
        self,
        r_network: RNetwork,
        num_envs: int,
        *,
        alpha: float = 0.030,
        beta: float = 0.5,
        novelty_threshold: float = 0.0,
        aggregate: Literal[
            "percentile_90", "tenth_largest", "max", "relative_count"
        ] = "percentile_90",
        memory_capacity: int = 200,
        replacement: Literal["random", "fifo"] = "random",
        online: OnlineConfig | None = None,
        seed: int = 0,
    ) -> None:
        check_type("r_network", r_network, RNetwork)
        check_at_least("num_envs", num_envs, 1)
        if online is not None:
            check_type("online", online, OnlineConfig)
        config = EpisodicConfig(
            alpha=alpha,
            beta=beta,
            novelty_threshold=novelty_threshold,
            aggregate=aggregate,
            memory_capacity=memory_capacity,
            replacement=replacement,
        )
        self.r_network = r_network
        self.num_envs = num_envs
        self.memory = EpisodicMemory(
            num_envs,
            memory_capacity,
            r_network.slot_size,
            replacement=replacement,
            seed=seed,
            device=r_network.device,
        )
        self._bonus = EpisodicBonus(r_network, self.memory, config)
        online = online or OnlineConfig.for_envs(num_envs)
        self._online = OnlineFitting(r_network, num_envs, online, seed)
        self._not_finite = torch.tensor(False, device=r_network.device)

    def bonus(self, view: Tensor | NDArray[Any], first: Tensor | NDArray[Any]) -> Tensor:
        """Returns the bonus (N,) of (N, *view_shape) observations and stores the novel ones.

        Where `first` (N,) is true, an episode begins: the memory is cleared, the bonus is zero.
        """
        view, first = self._checked(view, first)
        with torch.no_grad():
            return self._bonus.rate(self.r_network.embed(view), first)

    def learn(
        self, view: Tensor | NDArray[Any], first: Tensor | NDArray[Any]
    ) -> dict[str, float]:
        """Adds observations to the replay; if a refit is due, refits and returns its metrics.

        A refit clears the memories, because their embeddings are of the previous network.
        """
        view, first = self._checked(view, first)
        self._online.extend(view[None], first[None])
        if not self._online.is_due:
            return {}
        self._raise_if_not_finite()
        report = self._online.refit()
        if report:
            self.memory.clear(where=torch.ones_like(first))
        return report

    def metrics(self) -> dict[str, float]:
        """Metrics for a logger; bonus statistics cover the time since the last call."""
        self._raise_if_not_finite()
        return self._bonus.metrics() | {"r_network_fitted": float(self.r_network.fitted)}

    def state_dict(self) -> dict[str, Any]:
        """A copy of the complete state, including the replay, for an exact resume."""
        return {**self._bonus.state_dict(), "online": self._online.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restores a state with the same R-network, number of environments and memory."""
        check_parts(state, {"r_network", "memory", "online", "paid"})
        rest = {name: part for name, part in state.items() if name != "online"}
        self._bonus.check_state(rest)
        self._online.load_state_dict(state["online"])
        self._bonus.load_state_dict(rest)
        self._not_finite.zero_()

    def _checked(
        self, view: Tensor | NDArray[Any], first: Tensor | NDArray[Any]
    ) -> tuple[Tensor, Tensor]:
        device = self.r_network.device
        if device != self.memory.device:
            raise RuntimeError(
                f"the R-network was moved to {device} after EpisodicCuriosity was created on "
                f"{self.memory.device}; move it before"
            )
        view, first = to_tensor("view", view, device), to_tensor("first", first, device)
        check_views("view", view, self.r_network.config.view_shape, device, self.num_envs)
        check_mask("first", first, self.num_envs, device)
        if device.type == "cuda" and view.dtype == torch.float32:
            # Reading this now would synchronise with the GPU: it is raised at the next sync.
            self._not_finite |= ~view.isfinite().all()
        return view, first

    def _raise_if_not_finite(self) -> None:
        if self._not_finite:
            self._not_finite.zero_()
            raise ValueError("view must be finite, got NaN or infinity in an earlier call")
