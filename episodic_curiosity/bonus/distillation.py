"""Random network distillation: the error in predicting a fixed random network.

Burda et al. 2019. Shapes: B observations, D = 512 outputs.
"""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from episodic_curiosity.bonus.features import NUM_FEATURES, SIDE, Shrunk, feature_network
from episodic_curiosity.bonus.own_adam import OwnAdam
from episodic_curiosity.support.checks import check_seed, check_share
from episodic_curiosity.support.compiling import run_network
from episodic_curiosity.support.pixels import to_input

NUM_OUTPUTS = 512  # D
CLIP = 5.0  # of whitened observations, as in the paper
LEAST_VARIANCE = 1e-6  # a quarter of a grey level
CHUNK = 1024  # observations that are whitened at once, to bound memory


class Distilled(NamedTuple):
    """Outputs of the two networks for B observations."""

    error: Tensor  # (B,) the predictor's mean squared error
    target: Tensor  # (B, D) the random network's outputs


class Whitening(nn.Module):
    """Subtracts the running mean of every input and divides by its running deviation.

    Until inputs were added, it changes nothing.
    """

    mean: Tensor  # (...)
    variance: Tensor  # (...)
    count: Tensor  # () float64

    def __init__(self, shape: tuple[int, ...], device: torch.device | str) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(shape, device=device))
        self.register_buffer("variance", torch.ones(shape, device=device))
        self.register_buffer("count", torch.zeros((), dtype=torch.float64, device=device))

    def add(self, inputs: Tensor) -> None:
        """Takes (B, ...) inputs into the mean and the variance."""
        variance, mean = torch.var_mean(inputs, dim=0, correction=0)
        old, number = self.count, len(inputs)
        total = old + number
        share = (number / total).float()
        difference = mean - self.mean
        spread = difference.square() * share * (old / total).float()
        self.variance.lerp_(variance, share).add_(spread)
        self.mean.lerp_(mean, share)
        self.count.copy_(total)

    def forward(self, inputs: Tensor) -> Tensor:
        deviation = self.variance.clamp(min=LEAST_VARIANCE).sqrt()
        return ((inputs - self.mean) / deviation).clamp(-CLIP, CLIP)


class RandomDistillation(nn.Module):
    """A fixed random network and a predictor of its outputs, on whitened observations.

    Frames are shrunk to 42 x 42. The convolutions are ICM's.
    """

    def __init__(
        self,
        observation_shape: tuple[int, ...],
        *,
        learning_rate: float,
        share: float,
        seed: int,
        device: torch.device | str,
    ) -> None:
        """A pass of `learn` is over the part `share` of the observations."""
        super().__init__()
        check_share("share", share)
        is_frame = len(observation_shape) == 3
        shape = (observation_shape[0], SIDE, SIDE) if is_frame else observation_shape
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(check_seed(seed))
            target = nn.Sequential(feature_network(shape), nn.Linear(NUM_FEATURES, NUM_OUTPUTS))
            predictor = nn.Sequential(
                feature_network(shape),
                nn.Linear(NUM_FEATURES, NUM_OUTPUTS),
                nn.ReLU(),
                nn.Linear(NUM_OUTPUTS, NUM_OUTPUTS),
                nn.ReLU(),
                nn.Linear(NUM_OUTPUTS, NUM_OUTPUTS),
            )
        self.shrunk = Shrunk() if is_frame else None
        self.whitening = Whitening(shape, device)
        self.target = target.requires_grad_(False).to(device)
        self.predictor = predictor.to(device)
        self.adam = OwnAdam(self.predictor, learning_rate, seed)
        self._share = share

    @property
    def is_ready(self) -> Tensor:
        """() bool, observations are whitened: errors before are not comparable."""
        return self.whitening.count > 0

    def __call__(self, observation: Tensor) -> Distilled:
        """Returns the errors and the targets of (B, ...) observations."""
        inputs = self.whitening(self._inputs(observation))
        # In float32 on a GPU too: rounding would be an error that never shrinks.
        target = run_network(self.target, inputs)
        predicted = run_network(self.predictor, inputs)
        return Distilled((predicted - target).square().mean(dim=1), target)

    def learn(self, observations: Tensor) -> dict[str, float]:
        """Whitens by (B, ...) observations and fits the predictor to them; synchronises."""
        with torch.no_grad():
            for chunk in observations.split(CHUNK):
                if len(chunk):
                    self.whitening.add(self._inputs(chunk))
        loss = self.adam.fit(
            len(observations),
            lambda index: self(observations[index]).error.mean(),
            share=self._share,
        )
        return {} if loss is None else {"rnd_loss": loss}

    def _inputs(self, observation: Tensor) -> Tensor:
        inputs: Tensor = (
            to_input(observation) if self.shrunk is None else self.shrunk(observation)
        )
        return inputs
