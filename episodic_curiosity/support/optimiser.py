"""One Adam with gradient clipping for all parameters; its state is by parameter name."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from episodic_curiosity.support.adam import MOMENTS, FusedAdam
from episodic_curiosity.support.checks import first_difference


class Optimiser:
    """Adam with the settings of OpenAI's baselines; fill `learning_rate` before a step.

    The state is created with the optimiser and changed in place, so that it can be loaded at
    any time and a CUDA graph can capture a step.
    """

    def __init__(
        self, parameters: Mapping[str, nn.Parameter], max_gradient_norm: float
    ) -> None:
        self.parameters = dict(parameters)
        self.max_gradient_norm = max_gradient_norm
        weights = list(self.parameters.values())
        self.learning_rate = torch.zeros((), device=weights[0].device)
        self._adam = FusedAdam([(weights, 0.0)], self.learning_rate, eps=1e-5)

    def descend(self, loss: Tensor) -> Tensor:
        """Takes one gradient step; returns the gradient's norm before clipping, 0-dim."""
        self._adam.zero_grad()
        loss.backward()
        norm = nn.utils.clip_grad_norm_(self.parameters.values(), self.max_gradient_norm)
        self._adam.step()
        return norm

    def state_dict(self) -> dict[str, dict[str, Tensor]]:
        """Returns a copy: for each of MOMENTS, a tensor per parameter."""
        return {
            moment: {name: tensor.clone() for name, tensor in tensors.items()}
            for moment, tensors in self._moments().items()
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Resumes from a state of the same parameters."""
        self.check_state(state)
        for moment, tensors in self._moments().items():
            for name, tensor in tensors.items():
                tensor.copy_(state[moment][name])

    def check_state(self, state: Mapping[str, Any]) -> None:
        """Raises unless `load_state_dict` accepts this state."""
        if state.keys() != set(MOMENTS):
            raise ValueError(
                f"an optimiser's state has {', '.join(MOMENTS)}, got {sorted(state)}"
            )
        for moment, tensors in self._moments().items():
            if difference := first_difference(state[moment], tensors):
                raise ValueError(f"the optimiser's {moment} {difference}")

    def _moments(self) -> dict[str, dict[str, Tensor]]:
        return {
            moment: {
                name: self._adam.state[weight][moment]
                for name, weight in self.parameters.items()
            }
            for moment in MOMENTS
        }
