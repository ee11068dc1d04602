"""The episodic-curiosity bonus, for observations that are not reachable from memory.

Savinov et al. 2019, section 2. Shapes: N environments, K memory slots, D embedding.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Protocol, Self

import torch
from torch import Tensor

from episodic_curiosity.bonus.aggregates import AGGREGATES
from episodic_curiosity.bonus.base import Bonus, BonusConfig, BonusContext, Sight
from episodic_curiosity.bonus.diagnosis import Advice
from episodic_curiosity.bonus.memory import EpisodicMemory
from episodic_curiosity.bonus.method import Method
from episodic_curiosity.bonus.summary import SIZE
from episodic_curiosity.reachability.network import Embeddings
from episodic_curiosity.reachability.online import OnlineFitting
from episodic_curiosity.support.checks import (
    check_at_least,
    check_choice,
    check_number,
    check_type,
)
from episodic_curiosity.support.compiling import fused
from episodic_curiosity.worlds.base import Rollout, WorldSpec


@dataclass(frozen=True, kw_only=True)
class EpisodicConfig(BonusConfig):
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

    @property
    def largest(self) -> float:
        """The largest bonus of a step."""
        return self.alpha * self.beta


class Reachability(Protocol):
    """The part of RNetwork that the bonus uses."""

    @property
    def device(self) -> torch.device: ...
    @property
    def view_shape(self) -> tuple[int, ...]: ...
    @property
    def slot_size(self) -> int: ...
    @property
    def fitted(self) -> Tensor: ...
    @property
    def held_out_accuracy(self) -> Tensor: ...
    def embed(self, view: Tensor, where: Tensor | None = None) -> Embeddings: ...
    def compare(self, stored: Tensor, asked: Tensor) -> Tensor: ...
    def state_dict(self) -> dict[str, Any]: ...
    def load_state_dict(self, state_dict: Mapping[str, Any]) -> object: ...


class EpisodicBonus(Bonus):
    """b = alpha * (beta - F(C(m, E(o)) for m in memory)), one b per environment.

    With `fitting`, the R-network is refitted to what is seen (ECO); without, it was fitted
    beforehand (EC).
    """

    learnt: ClassVar[tuple[str, ...]] = ("r_network",)
    summary_size = SIZE
    config: EpisodicConfig
    advice = Advice(
        scale="alpha",
        if_constant="the R-network finds everything reachable, or nothing: check {fit}",
        if_full="try a bonus.memory_capacity above {config.memory_capacity}, or a "
        "bonus.novelty_threshold between {config.novelty_threshold:.3g} and "
        "{config.largest:.3g}, the largest bonus of a step",
    )

    def __init__(
        self,
        r_network: Reachability,
        num_envs: int,
        config: EpisodicConfig,
        *,
        fitting: OnlineFitting | None = None,
        seed: int = 0,
    ) -> None:
        device = r_network.device
        super().__init__(num_envs, r_network.view_shape, device)
        self.config = config
        self.r_network = r_network
        self.memory = EpisodicMemory(
            num_envs,
            config.memory_capacity,
            r_network.slot_size,
            replacement=config.replacement,
            seed=seed,
            device=device,
        )
        self.fitting = fitting
        self.learns = fitting is not None
        self.recorded = None if fitting is None else fitting.recorded  # moved and saved with it
        self.needs_views = fitting is not None and fitting.replay is not None

    @classmethod
    def for_run(cls, config: EpisodicConfig, spec: WorldSpec, context: BonusContext) -> Self:
        assert context.r_network is not None
        return cls(
            context.r_network, spec.num_envs, config, fitting=context.fitting, seed=context.seed
        )

    def pay(self, now: Sight) -> Tensor:
        """Returns the bonus (N,) of the current observations and stores the novel ones.

        The first observation of an episode is stored. So is the first one after a memory was
        cleared in mid-episode; its bonus is zero. The bonus is zero until the R-network has
        been fitted, because it would be noise.
        """
        if self.r_network.device != self.device:
            raise RuntimeError(
                f"the R-network was moved to {self.r_network.device} after the bonus was "
                f"created on {self.device}; move it before"
            )
        self._record_views(now)
        return self.rate(self.r_network.embed(now.seen, where=now.rows), now.opens, now.rows)

    def record(self, now: Sight) -> None:
        self._record_views(now)

    @property
    def learns_from_steps(self) -> bool:
        return self.recorded is not None

    def rate(self, embeddings: Embeddings, opens: Tensor, rows: Tensor) -> Tensor:
        """Returns the bonus (N,) of embedded observations and stores the novel ones of `rows`.

        Where `opens`, the memory is emptied first.
        """
        self.memory.clear(where=opens)
        similarities = self.r_network.compare(self.memory.slots, embeddings.asked)  # (N, K)
        similarity = AGGREGATES[self.config.aggregate](similarities, self.memory.count)
        fitted = self.r_network.fitted
        self.memory.summarise(similarity * fitted, similarities, where=rows)
        held, config = (self.memory.added, rows, fitted), self.config
        scales = config.alpha, config.beta, config.novelty_threshold
        bonus, novel = _rate(similarity, *held, *scales)
        self.memory.add(embeddings.stored, where=novel)
        return bonus

    def learn(self, rollout: Rollout | None = None) -> dict[str, float]:
        """Refits the R-network if that is due, and returns the metrics of the refit.

        A refit clears the memories, because their embeddings are of the previous network.
        """
        if self.fitting is None:
            if rollout is None:
                raise ValueError(
                    "learn refits the R-network during training: give online=OnlineConfig(), "
                    "got an R-network that is fitted beforehand"
                )
            return {}
        if rollout is not None:
            check_type("rollout", rollout, Rollout)
            self.fitting.extend(_seen(rollout), rollout.first[:-1])
        is_due = self.fitting.is_due
        if is_due or rollout is None:  # in a custom loop `is_due` has waited for the GPU
            self.raise_if_not_finite()
        if not is_due:
            return {}
        report = self.fitting.refit()
        if report:
            self.memory.clear(where=self._everywhere)
        return report

    def load_learnt(self, state: Mapping[str, Any], names: tuple[str, ...]) -> None:
        """As that of Bonus; another R-network clears the memories, as a refit does."""
        super().load_learnt(state, names)
        if "r_network" in names:
            self.memory.clear(where=self._everywhere)

    def statistics(self) -> dict[str, float]:
        """Bonus statistics since the last call, memory use and refits."""
        metrics = {
            **super().statistics(),
            **self.memory.statistics(),
            "r_network_fitted": float(self.r_network.fitted),
        }
        if self.r_network.fitted:
            metrics["r_network_accuracy"] = self.r_network.held_out_accuracy.item()
        if self.fitting is not None:
            metrics["r_network_fits"] = float(self.fitting.num_fits)
            metrics["r_network_steps_since_fit"] = float(self.fitting.steps_since_fit)
        return metrics

    def troubles(self) -> dict[str, str]:
        found = super().troubles()
        if self.fitting is not None and self.fitting.is_late:
            found["late"] = (
                f"the R-network should be refitted every {self.fitting.config.refit_every:,} "
                f"steps, {self.fitting.steps_since_fit:,} have passed: call learn()"
            )
        if self.fitting is None and not self.r_network.fitted:
            found["unfitted"] = (
                "the R-network is not fitted, so the bonus is zero: call fit_r_network(), or "
                "give online=OnlineConfig() and call learn()"
            )
        return found

    def get_extra_state(self) -> Any:
        """The state of the refits, including the replay (without the frames of a FrameFile)."""
        return None if self.fitting is None else self.fitting.state_dict()

    def set_extra_state(self, state: Any) -> None:
        if self.fitting is not None:
            self.fitting.load_state_dict(state)

    def check_extra_state(self, extra: Any) -> None:
        if (extra is None) != (self.fitting is None):
            wanted = "with" if self.fitting is not None else "without"
            raise ValueError(f"the bonus's state must be of a run {wanted} refits")
        if self.fitting is not None:
            self.fitting.check_state(extra)

    def _record_views(self, now: Sight) -> None:
        if self.fitting is not None and self.recorded is not None:
            self.fitting.record(now.seen, now.opens, where=now.rows)


@fused
def _rate(
    similarity: Tensor,
    added: Tensor,
    rows: Tensor,
    fitted: Tensor,
    alpha: float,
    beta: float,
    novelty_threshold: float,
) -> tuple[Tensor, Tensor]:
    """The bonus (N,), and where its observation is stored, (N,) bool."""
    is_empty = added == 0
    bonus = alpha * (beta - similarity)
    novel = bonus > novelty_threshold
    return bonus.masked_fill(is_empty | ~fitted, 0.0), (novel | is_empty) & rows


def _seen(rollout: Rollout) -> Tensor:
    """The snapshots or views (T, N, ...) of a rollout, for the replay."""
    if rollout.snapshot is not None:
        return rollout.snapshot
    return rollout.observation[:-1] if rollout.view is None else rollout.view


EC = Method(
    name="ppo+ec",
    line="episodic curiosity, R-network fitted to random play before the run",
    config=EpisodicConfig,
    bonus=EpisodicBonus,
    r_network="random_play",
)
ECO = Method(
    name="ppo+eco",
    line="episodic curiosity, R-network refitted to the agent's play during the run",
    config=EpisodicConfig,
    bonus=EpisodicBonus,
    r_network="online",
)
