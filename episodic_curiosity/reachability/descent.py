"""Gradient steps of an R-network on batches of pairs.

Shapes: B pairs in a batch.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional

from episodic_curiosity.reachability.accuracy import share_correct
from episodic_curiosity.reachability.architecture import CUSTOM
from episodic_curiosity.reachability.batches import observations
from episodic_curiosity.reachability.experience import Experience
from episodic_curiosity.reachability.fit_config import FitConfig
from episodic_curiosity.reachability.network import RNetwork
from episodic_curiosity.reachability.pairs import Pairs
from episodic_curiosity.support.adam import FusedAdam
from episodic_curiosity.support.compiling import fused_in_training
from episodic_curiosity.support.cuda_graphs import Captured, graph_device


class Descent:
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
        first, second, reachable = observations(self._experience, self._pairs, device)
        has_custom = self._r_network.config.embedder == CUSTOM  # which may not compile
        loss_of = _loss_eagerly if has_custom else _loss
        loss, correct = loss_of(self._r_network, first, second, reachable)
        self._optimiser.zero_grad()
        loss.backward()
        self._optimiser.step()
        self.loss.copy_(loss.detach())
        self.sums += torch.stack([self.loss, correct])


def _loss_eagerly(
    r_network: RNetwork, first: Tensor, second: Tensor, reachable: Tensor
) -> tuple[Tensor, Tensor]:
    """The logistic loss of (B,) pairs, and the share of them that is predicted correctly."""
    logits = r_network(first, second)
    loss = functional.binary_cross_entropy_with_logits(logits, reachable)
    return loss, share_correct(logits, reachable)


_loss = fused_in_training(_loss_eagerly)


def _adam(r_network: RNetwork, config: FitConfig) -> FusedAdam:
    convolutions: list[nn.Parameter] = []
    others: list[nn.Parameter] = []
    for layer in r_network.modules():
        for name, weight in layer.named_parameters(recurse=False):
            decays = isinstance(layer, nn.Conv2d) and name == "weight"
            if weight.requires_grad:
                (convolutions if decays else others).append(weight)
    # Adam's weight decay penalises half the squared weights, hence the factor of 2.
    groups = [(convolutions, 2 * config.convolution_l2), (others, 0.0)]
    return FusedAdam(groups, config.learning_rate)
