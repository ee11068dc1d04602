"""Episodic curiosity for custom training loops."""

from typing import Literal

import torch

from episodic_curiosity.bonus.episodic import EpisodicBonus, EpisodicConfig
from episodic_curiosity.reachability.network import RNetwork
from episodic_curiosity.reachability.online import OnlineConfig, OnlineFitting
from episodic_curiosity.support.checks import check_type


class EpisodicCuriosity(EpisodicBonus):
    """Computes a bonus for observations that are not reachable from episodic memory.

    Call `begin` where episodes begin and `bonus` after every step of the N environments, or
    `bonus_same_step` for both. The bonus is zero until the R-network has been fitted:
    beforehand by `fit_r_network` (EC), or, with `online`, by `learn`, to what `begin` and
    `bonus` were shown (ECO). Tensors must be on the R-network's device; arrays are copied to
    it.

    Args:
        r_network: judges whether one observation can be reached from another.
        num_envs: N, the number of environments that are stepped as one batch.
        alpha: scale of the bonus, which is at most alpha * beta.
        beta: 0.5 if episodes have a fixed length, 1 if they can end early.
        novelty_threshold: observations with a larger bonus are stored.
        aggregate: F, how the similarities to all of memory become one number.
        memory_capacity: K, the observations remembered per environment.
        replacement: which observation a full memory forgets, a random one or the oldest.
        online: refit the R-network during training; None: it is fitted beforehand.
        view_dtype: with `online`, torch.uint8 or torch.float32, in which views are recorded;
            None: bytes for frames, floats for vectors.
        seed: of all random numbers.
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
        view_dtype: torch.dtype | None = None,
        seed: int = 0,
    ) -> None:
        check_type("r_network", r_network, RNetwork)
        config = EpisodicConfig(
            alpha=alpha,
            beta=beta,
            novelty_threshold=novelty_threshold,
            aggregate=aggregate,
            memory_capacity=memory_capacity,
            replacement=replacement,
        )
        fitting = None
        if online is not None:
            check_type("online", online, OnlineConfig)
            fitting = OnlineFitting(r_network, num_envs, online, seed, view_dtype=view_dtype)
        super().__init__(r_network, num_envs, config, fitting=fitting, seed=seed)
