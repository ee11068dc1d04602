"""The accuracy of an R-network: the share of pairs whose label it predicts.

Shapes: B pairs.
"""

import torch
from torch import Tensor

from episodic_curiosity.reachability.batches import balanced_pairs, observations
from episodic_curiosity.reachability.experience import Experience
from episodic_curiosity.reachability.fit_config import FitConfig
from episodic_curiosity.reachability.network import RNetwork
from episodic_curiosity.reachability.pairs import Pairs, PairsConfig
from episodic_curiosity.support.checks import check_views

EVALUATION_BATCH = 512


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
    r_network.check_ready()
    config = FitConfig(pairs=pairs or PairsConfig())
    check_experience("experience", experience, r_network)
    return accuracy_on(r_network, experience, balanced_pairs(experience, config, seed))


@torch.no_grad()
def accuracy_on(r_network: RNetwork, experience: Experience, pairs: Pairs) -> float:
    correct = torch.zeros((), device=r_network.device)
    num_pairs = len(pairs.reachable)
    for start in range(0, num_pairs, EVALUATION_BATCH):
        part = pairs.select(slice(start, start + EVALUATION_BATCH))
        first, second, reachable = observations(experience, part, r_network.device)
        correct += share_correct(r_network(first, second), reachable) * len(reachable)
    return correct.item() / num_pairs


def share_correct(logits: Tensor, reachable: Tensor) -> Tensor:
    return ((logits.detach() > 0) == (reachable > 0.5)).float().mean()


def check_experience(name: str, experience: Experience, r_network: RNetwork) -> None:
    """Checks an observation, so that a wrong shape is found before training."""
    if not (hasattr(experience, "first") and hasattr(experience, "views")):
        given = type(experience).__name__
        raise TypeError(f"{name} must be like Frames(views, first), got {given}")
    # Two rows: a batch of one would be compiled separately.
    here = torch.zeros(2, dtype=torch.int64, device=experience.first.device)
    view = experience.views(here, here)[:1]
    check_views(f"{name}'s observations", view, r_network.config.view_shape, view.device)
