"""Fits an R-network to pairs of observations.

Savinov et al. 2019, section S2. Shapes: B pairs in a batch.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec

import torch
from torch import Generator, Tensor, nn
from torch.nn import functional

from episodic_curiosity.checks import check_at_least
from episodic_curiosity.reachability.experience import Experience, Window
from episodic_curiosity.reachability.network import RNetwork
from episodic_curiosity.reachability.pairs import (
    STEPS_PER_PAIR,
    Pairs,
    PairsConfig,
    draw_pairs,
    find_episodes,
)

MAX_EACH = 5_000  # pairs of each kind: an accuracy to within half a per cent
EVALUATION_BATCH = 512


@dataclass(frozen=True, kw_only=True)
class FitConfig:
    """Adam on the logistic loss; the defaults are the paper's for DeepMind Lab."""

    iterations: int | None = 200_000  # one of these two is set, the other None
    epochs: int | None = None  # of a pair for every 4 steps, drawn anew in every pass
    batch_size: int = 64
    learning_rate: float = 1e-4
    convolution_l2: float = 1e-4  # times the squared weights, added to the loss
    held_out_share: float = 0.05  # of the steps, the newest, where no others are given
    pairs: PairsConfig = field(default_factory=PairsConfig)

    def __post_init__(self) -> None:
        if (self.iterations is None) == (self.epochs is None):
            raise ValueError(
                f"set one of iterations and epochs and leave the other None, "
                f"got {self.iterations} and {self.epochs}"
            )
        check_at_least("iterations", 1 if self.iterations is None else self.iterations, 1)
        check_at_least("epochs", 1 if self.epochs is None else self.epochs, 1)
        check_at_least("batch_size", self.batch_size, 2)
        if not 0 < self.held_out_share < 1:
            raise ValueError(f"held_out_share must be in (0, 1), got {self.held_out_share}")

    @property
    def least_steps(self) -> int:
        """Of every environment, so that training and held-out steps both hold far pairs."""
        return 4 * (self.pairs.margin + 1)

    def num_iterations(self, num_steps: int) -> int:
        """Batches of training on so many steps of experience."""
        if self.iterations is not None:
            return self.iterations
        assert self.epochs is not None
        return max(1, self.epochs * num_steps // STEPS_PER_PAIR // self.batch_size)


@dataclass(frozen=True, kw_only=True)
class FitReport:
    """How well the R-network tells near from far."""

    accuracy: float  # on pairs while they were trained on, over the last tenth
    held_out_accuracy: float
    loss: float  # over the last tenth
    iterations: int


class NoPairsError(ValueError):
    """The experience has no pairs of one kind: its episodes are too short."""


def fit(
    r_network: RNetwork,
    experience: Experience,
    config: FitConfig | None = None,
    *,
    held_out: Experience | None = None,
    seed: int = 0,
    progress: bool = True,  # a bar, where a person is watching
) -> FitReport:
    """Trains the R-network in place and marks it as fitted; the same seed, the same weights.

    Without `held_out` experience the newest steps are held out of training, so that no
    observation is on both sides.
    """
    config = config or FitConfig()
    if held_out is None:
        experience, held_out = _split(experience, config)
    held_out_pairs = _balanced_pairs(held_out, config, seed)
    batches = _batches(experience, config, seed)
    optimiser = _adam(r_network, config)
    num_iterations = config.num_iterations(experience.first.numel())
    num_recent = max(1, num_iterations // 10)
    recent_loss = torch.zeros((), device=r_network.device)
    recent_correct = torch.zeros((), device=r_network.device)

    r_network.train()
    with _progress_bar(num_iterations, progress) as advance:
        for iteration in range(num_iterations):
            first, second, reachable = _observations(
                experience, next(batches), r_network.device
            )
            logits = r_network(first, second)
            loss = functional.binary_cross_entropy_with_logits(logits, reachable)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            if iteration >= num_iterations - num_recent:
                recent_loss += loss.detach()
                recent_correct += _share_correct(logits, reachable)
            advance()
    r_network.eval()
    if not recent_loss.isfinite():
        raise FloatingPointError(
            f"the R-network's loss became {recent_loss.item()}: lower the learning rate "
            f"({config.learning_rate}) or look at the observations"
        )
    r_network.fitted.fill_(True)
    return FitReport(
        accuracy=recent_correct.item() / num_recent,
        held_out_accuracy=_accuracy(r_network, held_out, held_out_pairs),
        loss=recent_loss.item() / num_recent,
        iterations=num_iterations,
    )


def accuracy(
    r_network: RNetwork,
    experience: Experience,
    pairs: PairsConfig | None = None,
    *,
    seed: int = 0,
) -> float:
    """The share of pairs that the R-network tells right, as many near as far ones."""
    config = FitConfig(pairs=pairs or PairsConfig())
    return _accuracy(r_network, experience, _balanced_pairs(experience, config, seed))


@torch.no_grad()
def _accuracy(r_network: RNetwork, experience: Experience, pairs: Pairs) -> float:
    correct = torch.zeros((), device=r_network.device)
    num_pairs = len(pairs.reachable)
    for start in range(0, num_pairs, EVALUATION_BATCH):
        part = pairs.select(slice(start, start + EVALUATION_BATCH))
        first, second, reachable = _observations(experience, part, r_network.device)
        correct += _share_correct(r_network(first, second), reachable) * len(reachable)
    return correct.item() / num_pairs


def _balanced_pairs(experience: Experience, config: FitConfig, seed: int) -> Pairs:
    """As many near pairs as far ones."""
    pairs = _shuffled_pairs(experience, config, _generator(experience, seed))
    near, far = (kind.nonzero(as_tuple=True)[0] for kind in (pairs.reachable, ~pairs.reachable))
    num_each = min(len(near), len(far), MAX_EACH)
    return pairs.select(torch.cat([near[:num_each], far[:num_each]]))


def _split(experience: Experience, config: FitConfig) -> tuple[Experience, Experience]:
    """The older steps for training, the newest for the held-out accuracy."""
    num_steps = experience.first.shape[0]
    if num_steps < config.least_steps:
        raise ValueError(
            f"fitting at k = {config.pairs.k}, gamma = {config.pairs.gamma} wants at least "
            f"{config.least_steps} steps of every environment, got {num_steps}"
        )
    num_held_out = max(int(num_steps * config.held_out_share), config.least_steps // 2)
    border = num_steps - num_held_out
    return Window(experience, 0, border), Window(experience, border, num_steps)


def _batches(experience: Experience, config: FitConfig, seed: int) -> Iterator[Pairs]:
    """Pass after pass over the experience, every pass with new pairs in a new order."""
    generator = _generator(experience, seed)
    while True:
        pairs = _shuffled_pairs(experience, config, generator)
        batch_size = min(config.batch_size, len(pairs.reachable))
        for start in range(0, len(pairs.reachable) - batch_size + 1, batch_size):
            yield pairs.select(slice(start, start + batch_size))


def _shuffled_pairs(experience: Experience, config: FitConfig, generator: Generator) -> Pairs:
    first = experience.first
    pairs = draw_pairs(first, config.pairs, generator)
    num_reachable, num_pairs = int(pairs.reachable.sum()), len(pairs.reachable)
    if num_reachable in (0, num_pairs):
        missing = "reachable" if num_reachable == 0 else "unreachable"
        longest = int(find_episodes(first).length.max())
        raise NoPairsError(
            f"no {missing} pair could be drawn: the longest episode has {longest} steps, "
            f"k = {config.pairs.k} and gamma = {config.pairs.gamma} want more than "
            f"{config.pairs.margin + 1}"
        )
    order = torch.randperm(num_pairs, generator=generator, device=generator.device)
    return pairs.select(order)


def _observations(
    experience: Experience, pairs: Pairs, device: torch.device
) -> tuple[Tensor, Tensor, Tensor]:
    """Both observations (B, ...) and the label (B,) as a float, on the R-network's device."""
    first = experience.views(pairs.first, pairs.env).to(device, non_blocking=True)
    second = experience.views(pairs.second, pairs.env).to(device, non_blocking=True)
    return first, second, pairs.reachable.to(device, torch.float32, non_blocking=True)


def _generator(experience: Experience, seed: int) -> Generator:
    return Generator(experience.first.device).manual_seed(seed)


def _share_correct(logits: Tensor, reachable: Tensor) -> Tensor:
    return ((logits.detach() > 0) == (reachable > 0.5)).float().mean()


def _adam(r_network: RNetwork, config: FitConfig) -> torch.optim.Adam:
    convolutions = [m.weight for m in r_network.modules() if isinstance(m, nn.Conv2d)]
    convolutions = [weight for weight in convolutions if weight.requires_grad]
    chosen = {id(weight) for weight in convolutions}
    others = [p for p in r_network.parameters() if p.requires_grad and id(p) not in chosen]
    # Adam adds weight_decay * w to the gradient: that of half the squared weights.
    groups = [
        {"params": convolutions, "weight_decay": 2 * config.convolution_l2},
        {"params": others},
    ]
    return torch.optim.Adam(
        [g for g in groups if g["params"]], config.learning_rate, fused=True
    )


@contextmanager
def _progress_bar(total: int, wanted: bool) -> Iterator[Callable[[], None]]:
    """A bar on the terminal; nothing elsewhere, or where rich is not installed."""
    if not (wanted and sys.stderr.isatty() and find_spec("rich")):
        yield lambda: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

    columns = (
        "fitting the R-network",
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=total)
        yield lambda: bar.advance(task)
