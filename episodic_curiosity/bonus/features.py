"""Features of observations, and models that predict from them: ICM's, shared by other bonuses.

Pathak et al. 2017. Shapes: B observations, D = 288 features, A action size.
"""

import torch
from torch import Tensor, nn
from torch.nn.functional import adaptive_avg_pool2d, cross_entropy, normalize

from episodic_curiosity.support.compiling import run_network
from episodic_curiosity.support.convolutions import Halving
from episodic_curiosity.support.elu import ELU
from episodic_curiosity.support.pixels import autocast, computing_in, to_input

SIDE = 42  # of the input frames, in pixels
NUM_FEATURES = 288  # output of the four convolutions: 32 filters x 3 x 3
HIDDEN = 256


class Shrunk(nn.Module):
    """Shrinks frames to 42 x 42, with values in [0, 1].

    Of 84 x 84 it takes every second pixel, as the authors' release does; frames whose sides are
    no multiples of 42 are averaged over areas.
    """

    def forward(self, frames: Tensor) -> Tensor:
        height, width = frames.shape[2:]
        if height % SIDE or width % SIDE:
            return adaptive_avg_pool2d(to_input(frames), SIDE)
        return to_input(frames[:, :, :: height // SIDE, :: width // SIDE])


def feature_network(observation_shape: tuple[int, ...]) -> nn.Sequential:
    """Four convolutions over shrunk frames, or two layers over vectors."""
    layers: list[nn.Module] = []
    if len(observation_shape) == 3:
        for num_inputs in (observation_shape[0], 32, 32, 32):
            layers += [_glorot(Halving(num_inputs, 32, 3)), ELU()]
        return nn.Sequential(Shrunk(), *layers, nn.Flatten())
    for num_inputs, num_outputs in ((observation_shape[0], HIDDEN), (HIDDEN, NUM_FEATURES)):
        layers += [_glorot(nn.Linear(num_inputs, num_outputs)), ELU()]
    return nn.Sequential(*layers)


def see(features: nn.Module, observation: Tensor) -> Tensor:
    """Returns the features (B, D) of observations, float32."""
    if observation.dim() == 2:
        seen: Tensor = features(to_input(observation))
        return seen
    device = observation.device
    with autocast(device, computing_in(device)):
        seen = run_network(features, observation)
    return seen.float()


def prediction_model(num_inputs: int, num_outputs: int) -> nn.Sequential:
    """One hidden layer."""
    hidden, output = nn.Linear(num_inputs, HIDDEN), nn.Linear(HIDDEN, num_outputs)
    return nn.Sequential(_faint(hidden), nn.ReLU(), _faint(output))


def action_error(guess: Tensor, action: Tensor) -> Tensor:
    """The errors (B,) of an inverse model's predictions (B, A).

    Cross-entropy of discrete actions; the squared error of continuous ones, clipped to [-1, 1]
    as in the world.
    """
    if not action.is_floating_point():
        return cross_entropy(guess, action, reduction="none")
    return (guess - action.flatten(1).clamp(-1.0, 1.0)).square().mean(dim=1)


def _glorot(layer: nn.Linear | nn.Conv2d) -> nn.Module:
    nn.init.xavier_uniform_(layer.weight)
    assert layer.bias is not None
    nn.init.zeros_(layer.bias)
    return layer


def _faint(layer: nn.Linear) -> nn.Linear:
    """Scales each output's weights to norm 0.01, so that first predictions are near zero."""
    with torch.no_grad():
        layer.weight.copy_(0.01 * normalize(torch.randn_like(layer.weight), dim=1))
        layer.bias.zero_()
    return layer
