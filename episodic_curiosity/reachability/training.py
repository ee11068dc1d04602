"""Fits an R-network to pairs of observations.

Savinov et al. 2019, section S2. Shapes: B pairs in a batch.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Generator, Tensor, nn
from torch.nn import functional

from episodic_curiosity.reachability.drawn_once import keep_drawn
from episodic_curiosity.reachability.experience import Experience, Window
from episodic_curiosity.reachability.network import CUSTOM, RNetwork
from episodic_curiosity.reachability.pairs import (
    STEPS_PER_PAIR,
    Pairs,
    PairsConfig,
    draw_pairs,
    find_episodes,
)
from episodic_curiosity.support.checks import (
    check_at_least,
    check_number,
    check_seed,
    check_type,
    check_views,
    short,
)
from episodic_curiosity.support.compiling import fused_in_training
from episodic_curiosity.support.cuda_graphs import Captured, graph_device
from episodic_curiosity.support.progress import progress_bar

MAX_EACH = 5_000  # pairs of each kind, for an accuracy to within half a per cent
EVALUATION_BATCH = 512
ITERATIONS_PER_CHECK = 500  # of the loss: each check synchronises with the GPU


@dataclass(frozen=True, kw_only=True)
class FitConfig:
    """Adam on the logistic loss; the defaults are the paper's for DeepMind Lab."""

    iterations: int | None = 200_000  # one of these two is set, the other None
    epochs: int | None = None  # of one pair per 4 steps, redrawn in every pass
    batch_size: int = 64  # pairs
    learning_rate: float = 1e-4  # of Adam
    convolution_l2: float = 1e-4  # times the squared weights, added to the loss
    held_out_share: float = 0.05  # newest share of the steps, unless `held_out` is given
    pairs: PairsConfig = field(default_factory=PairsConfig)  # which ones are drawn

    def __post_init__(self) -> None:
        if (self.iterations is None) == (self.epochs is None):
            raise ValueError(
                f"set one of iterations and epochs and leave the other None, "
                f"got {short(self.iterations)} and {short(self.epochs)}"
            )
        check_at_least("iterations", 1 if self.iterations is None else self.iterations, 1)
        check_at_least("epochs", 1 if self.epochs is None else self.epochs, 1)
        check_at_least("batch_size", self.batch_size, 2)
        check_number("learning_rate", self.learning_rate, above=0)
        check_type("pairs", self.pairs, PairsConfig)
        check_number("convolution_l2", self.convolution_l2)
        check_number("held_out_share", self.held_out_share)
        if not 0 < self.held_out_share < 1:
            raise ValueError(f"held_out_share must be in (0, 1), got {self.held_out_share}")

    @property
    def least_steps(self) -> int:
        """The minimum per environment, half for training and half held out.

        Wherever borders fall, this many contain an episode, or half of one, with a far pair.
        """
        return 8 * (self.pairs.margin + 1)

    def num_iterations(self, num_steps: int) -> int:
        """The number of training batches for `num_steps` steps of experience."""
        if self.iterations is not None:
            return self.iterations
        assert self.epochs is not None
        return max(1, self.epochs * num_steps // STEPS_PER_PAIR // self.batch_size)


@dataclass(frozen=True, kw_only=True)
class FitReport:
    """Accuracy and loss of a fitted R-network."""

    accuracy: float  # on training batches, over the last tenth
    held_out_accuracy: float  # on an equal number of near and far pairs
    loss: float  # over the last tenth
    iterations: int  # training batches


class NoPairsError(ValueError):
    """The experience has no pairs of one kind: its episodes are too short."""


def fit_r_network(
    r_network: RNetwork,
    experience: Experience,
    config: FitConfig | None = None,
    *,
    held_out: Experience | None = None,
    seed: int = 0,
    progress: bool = True,
) -> FitReport:
    """Trains the R-network in place and marks it as fitted.

    Without `held_out` experience the newest steps are held out of training, so that no
    observation is in both. On a CPU the same seed gives the same weights. If the loss is not
    finite, the previous weights are restored and FloatingPointError is raised.

    Args:
        r_network: is changed in place.
        experience: `Frames(views, first)`, or anything with these two.
        config: amount of training, batch size, rate and pairs; None: the paper's.
        held_out: experience for the held-out accuracy; None: the newest steps.
        seed: of the pairs and their order.
        progress: shows a bar on a terminal.
    """
    config = config or FitConfig()
    check_type("config", config, FitConfig)
    for name, views in (("experience", experience), ("held_out", held_out)):
        if views is not None:
            _check_experience(name, views, r_network)
    if held_out is None:
        experience, held_out = _split(experience, config)
    held_out_pairs = _balanced_pairs(held_out, config, seed)
    batches = _batches(experience, config, seed)
    num_iterations = config.num_iterations(experience.first.numel())
    if r_network.device.type == "cpu":
        num_views = 2 * config.batch_size * num_iterations
        experience = keep_drawn(experience, r_network.prepare, num_views)
    num_recent = max(1, num_iterations // 10)
    descent = _Descent(r_network, experience, config)
    before = {name: tensor.clone() for name, tensor in r_network.state_dict().items()}

    r_network.train()
    try:
        with progress_bar("fitting the R-network", num_iterations, progress) as advance:
            for iteration in range(num_iterations):
                if iteration == num_iterations - num_recent:
                    descent.sums.zero_()
                descent.learn(next(batches))
                if iteration % ITERATIONS_PER_CHECK == 0 or iteration == num_iterations - 1:
                    _check_loss(descent.loss, config)
                advance()
    except FloatingPointError:
        r_network.load_state_dict(before)
        raise
    finally:
        r_network.eval()
        descent.close()
    loss, share_correct = (descent.sums / num_recent).tolist()
    r_network.fitted.fill_(True)
    r_network.held_out_accuracy.fill_(_accuracy(r_network, held_out, held_out_pairs))
    return FitReport(
        accuracy=share_correct,
        held_out_accuracy=r_network.held_out_accuracy.item(),
        loss=loss,
        iterations=num_iterations,
    )


class _Descent:
    """Takes steps of Adam on batches of pairs; on a GPU each step replays a CUDA graph."""

    def __init__(self, r_network: RNetwork, experience: Experience, config: FitConfig) -> None:
        device = r_network.device
        self.loss = torch.zeros((), device=device)  # of the last batch
        self.sums = torch.zeros(2, device=device)  # of losses and accuracies
        self._r_network, self._experience = r_network, experience
        self._optimiser = _adam(r_network, config)
        self._pairs: Pairs | None = None  # the same tensors for all batches of one size
        self._step = Captured(self._descend, None)

    def learn(self, pairs: Pairs) -> None:
        """Takes one gradient step on these pairs, without synchronising."""
        if self._pairs is None or len(self._pairs.reachable) != len(pairs.reachable):
            self._pairs = Pairs(*(part.clone() for part in pairs))
            device, experience = self._r_network.device, self._experience
            can_capture = getattr(experience, "can_capture", False)
            together = experience.first.device == device
            self._step = Captured(self._descend, graph_device(device, can_capture and together))
        else:
            for held, new in zip(self._pairs, pairs, strict=True):
                held.copy_(new)
        self._step()

    def close(self) -> None:
        """Releases the graph, which keeps this object alive, and the experience."""
        del self._step, self._experience

    def _descend(self) -> None:
        assert self._pairs is not None
        device = self._r_network.device
        first, second, reachable = _observations(self._experience, self._pairs, device)
        has_custom = self._r_network.config.embedder == CUSTOM  # which may not compile
        loss_of = _loss_eagerly if has_custom else _loss
        loss, share_correct = loss_of(self._r_network, first, second, reachable)
        self._optimiser.zero_grad()
        loss.backward()
        self._optimiser.step()
        self.loss.copy_(loss.detach())
        self.sums += torch.stack([self.loss, share_correct])


def _loss_eagerly(
    r_network: RNetwork, first: Tensor, second: Tensor, reachable: Tensor
) -> tuple[Tensor, Tensor]:
    """The logistic loss of (B,) pairs, and the share of them that are told correctly."""
    logits = r_network(first, second)
    loss = functional.binary_cross_entropy_with_logits(logits, reachable)
    return loss, _share_correct(logits, reachable)


_loss = fused_in_training(_loss_eagerly)


def _check_experience(name: str, experience: Experience, r_network: RNetwork) -> None:
    """Checks an observation, so that a wrong shape is found before training."""
    if not (hasattr(experience, "first") and hasattr(experience, "views")):
        given = type(experience).__name__
        raise TypeError(f"{name} must be like Frames(views, first), got {given}")
    # Two rows: a batch of one would be compiled separately.
    here = torch.zeros(2, dtype=torch.int64, device=experience.first.device)
    view = experience.views(here, here)[:1]
    check_views(f"{name}'s observations", view, r_network.config.view_shape, view.device)


def _check_loss(loss: Tensor, config: FitConfig) -> None:
    if not loss.isfinite():
        raise FloatingPointError(
            f"the R-network's loss became {loss.item()}: lower the learning rate "
            f"({config.learning_rate}) or check the observations"
        )


def pair_accuracy(
    r_network: RNetwork,
    experience: Experience,
    pairs: PairsConfig | None = None,
    *,
    seed: int = 0,
) -> float:
    """The accuracy of the R-network on an equal number of near and far pairs.

    Args:
        r_network: a fitted one.
        experience: `Frames(views, first)`, or anything with these two.
        pairs: which ones are drawn; None: the paper's.
        seed: of the pairs.
    """
    config = FitConfig(pairs=pairs or PairsConfig())
    _check_experience("experience", experience, r_network)
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
    """Draws an equal number of near and far pairs."""
    pairs = _shuffled_pairs(experience, config, _generator(experience, seed))
    near, far = (kind.nonzero(as_tuple=True)[0] for kind in (pairs.reachable, ~pairs.reachable))
    num_each = min(len(near), len(far), MAX_EACH)
    return pairs.select(torch.cat([near[:num_each], far[:num_each]]))


def _split(experience: Experience, config: FitConfig) -> tuple[Experience, Experience]:
    """The older steps for training, the newest for the held-out accuracy."""
    num_steps = experience.first.shape[0]
    if num_steps < config.least_steps:
        raise ValueError(
            f"fitting at k = {config.pairs.k}, gamma = {config.pairs.gamma} needs at least "
            f"{config.least_steps} steps of every environment, got {num_steps}"
        )
    num_held_out = max(int(num_steps * config.held_out_share), config.least_steps // 2)
    border = num_steps - num_held_out
    return Window(experience, 0, border), Window(experience, border, num_steps)


def _batches(experience: Experience, config: FitConfig, seed: int) -> Iterator[Pairs]:
    """Yields batches in endless passes over the experience, with new pairs in every pass."""
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
        wanted = 1 if num_reachable == 0 else config.pairs.margin + 1
        longest = int(find_episodes(first).length.max())
        raise NoPairsError(
            f"no {missing} pair could be drawn from {first.shape[0]} steps: the longest "
            f"stretch of one episode has {longest}, k = {config.pairs.k} and gamma = "
            f"{config.pairs.gamma} need more than {wanted}"
        )
    order = torch.randperm(num_pairs, generator=generator, device=generator.device)
    return pairs.select(order)


def _observations(
    experience: Experience, pairs: Pairs, device: torch.device
) -> tuple[Tensor, Tensor, Tensor]:
    """Both observations (B, ...) and the label (B,) as a float, on the R-network's device."""
    # In one call: on a GPU few frames take as long to render as many.
    time, env = torch.cat([pairs.first, pairs.second]), pairs.env.repeat(2)
    first, second = experience.views(time, env).to(device, non_blocking=True).chunk(2)
    return first, second, pairs.reachable.to(device, torch.float32, non_blocking=True)


def _generator(experience: Experience, seed: int) -> Generator:
    return Generator(experience.first.device).manual_seed(check_seed(seed))


def _share_correct(logits: Tensor, reachable: Tensor) -> Tensor:
    return ((logits.detach() > 0) == (reachable > 0.5)).float().mean()


def _adam(r_network: RNetwork, config: FitConfig) -> torch.optim.Adam:
    convolutions: list[nn.Parameter] = []
    others: list[nn.Parameter] = []
    for layer in r_network.modules():
        for name, weight in layer.named_parameters(recurse=False):
            decays = isinstance(layer, nn.Conv2d) and name == "weight"
            if weight.requires_grad:
                (convolutions if decays else others).append(weight)
    # Adam's weight_decay penalises half the squared weights, hence the factor of 2.
    groups: list[dict[str, Any]] = [
        {"params": convolutions, "weight_decay": 2 * config.convolution_l2},
        {"params": others},
    ]
    on_gpu = r_network.device.type == "cuda"
    return torch.optim.Adam(groups, config.learning_rate, fused=True, capturable=on_gpu)
