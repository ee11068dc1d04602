"""NovelD: a bonus for steps to where RND's error is larger, paid once per episode.

Zhang et al. 2021. Shapes: N environments, K memory slots, D = 512, S steps.
"""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import normalize

from episodic_curiosity.bonus.aggregates import maximum
from episodic_curiosity.bonus.base import Sight
from episodic_curiosity.bonus.diagnosis import Advice
from episodic_curiosity.bonus.distillation import NUM_OUTPUTS
from episodic_curiosity.bonus.memory import EpisodicMemory
from episodic_curiosity.bonus.method import Method
from episodic_curiosity.bonus.rnd import RND, RNDConfig
from episodic_curiosity.bonus.summary import SIZE
from episodic_curiosity.support.checks import check_at_least, check_number


@dataclass(frozen=True, kw_only=True)
class NovelDConfig(RNDConfig):
    """The published alpha, RND's settings, and a novelty test that is ours, not searched."""

    alpha: float = 0.5  # weight of the novelty before the step, as published
    novelty_threshold: float = 0.05  # new is what is less similar than 1 minus this
    memory_capacity: int = 200  # K

    def __post_init__(self) -> None:
        super().__post_init__()
        check_number("alpha", self.alpha)
        check_number("novelty_threshold", self.novelty_threshold)
        check_at_least("memory_capacity", self.memory_capacity, 1)


class NovelD(RND):
    """b = scale * max(n(o') - alpha * n(o), 0) where o' is new in this episode, else 0.

    n is RND's error over the running deviation of its discounted sum. An observation is new if
    the cosine similarity of RND's target features to all in the episode's memory is below
    1 - novelty_threshold. New ones are stored: N * K * D * 4 bytes. Nothing is paid before the
    second call of `learn`, as with RND.

    Args:
        observation_shape: of one environment, (channels, height, width) or (features,).
        num_envs: N, the number of environments.
        config: the settings.
        observation_dtype: torch.uint8 or torch.float32; None: bytes for frames, else floats.
        num_steps: S, the newest steps that `learn` takes in: S * N times the bytes of an
            observation; 0: `learn` is given rollouts.
        seed: of the weights, the order of learning and what a full memory forgets.
        device: of all tensors.
    """

    advice = Advice(
        is_bounded=False,
        if_constant="try a bonus.novelty_threshold below {config.novelty_threshold:.3g}",
        if_full="try a bonus.memory_capacity above {config.memory_capacity}, or a "
        "bonus.novelty_threshold above {config.novelty_threshold:.3g}",
    )
    defaults = NovelDConfig
    summary_size = SIZE
    config: NovelDConfig
    previous: Tensor  # (N,) float32, RND's error before the step

    def __init__(
        self,
        observation_shape: tuple[int, ...],
        num_envs: int,
        config: NovelDConfig | None = None,
        *,
        observation_dtype: torch.dtype | None = None,
        num_steps: int = 128,
        seed: int = 0,
        device: torch.device | str = "cpu",
    ) -> None:
        super().__init__(
            observation_shape,
            num_envs,
            config,
            observation_dtype=observation_dtype,
            num_steps=num_steps,
            seed=seed,
            device=device,
        )
        self.memory = EpisodicMemory(
            num_envs, self.config.memory_capacity, NUM_OUTPUTS, seed=seed, device=device
        )
        self.register_buffer("previous", torch.zeros(num_envs, device=device))

    def pay(self, now: Sight) -> Tensor:
        error, target = self.distil(now)
        is_new = self.remember(target, now.opens, now.rows)
        gain = (error - self.config.alpha * self.previous).clamp(min=0)
        self.previous.copy_(torch.where(now.rows, error, self.previous))
        paid = self.config.scale * gain / self.deviation.divisor
        return paid.masked_fill(~is_new, 0.0)

    def remember(self, target: Tensor, opens: Tensor, rows: Tensor) -> Tensor:
        """Returns where (N, D) target features are new in their episode, and stores those.

        Where `opens`, the memory is emptied first. Rows outside `rows` are not stored.
        """
        self.memory.clear(where=opens)
        direction = normalize(target, dim=1)
        similarity = torch.bmm(self.memory.slots, direction[:, :, None]).squeeze(2)  # (N, K)
        largest = maximum(similarity, self.memory.count)
        self.memory.summarise(largest, similarity, where=rows)
        is_new = 1 - largest > self.config.novelty_threshold
        self.memory.add(direction, where=is_new & rows)
        return is_new

    def statistics(self) -> dict[str, float]:
        return super().statistics() | self.memory.statistics()


METHOD = Method(
    name="ppo+noveld",
    line="NovelD: steps to where RND errs more, paid once per episode",
    config=NovelDConfig,
    bonus=NovelD,
    ppo={},
)
