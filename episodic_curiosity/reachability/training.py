"""Fits an R-network to pairs of observations: Savinov et al. 2019, section S2."""

from dataclasses import dataclass

from torch import Tensor

from episodic_curiosity.reachability.accuracy import accuracy_on, check_experience
from episodic_curiosity.reachability.batches import balanced_pairs, batches_of, split
from episodic_curiosity.reachability.descent import Descent
from episodic_curiosity.reachability.drawn_once import keep_drawn
from episodic_curiosity.reachability.experience import Experience
from episodic_curiosity.reachability.fit_config import FitConfig
from episodic_curiosity.reachability.network import RNetwork
from episodic_curiosity.support.checks import check_type
from episodic_curiosity.support.progress import progress_bar

ITERATIONS_PER_CHECK = 500  # of the loss: each check synchronises with the GPU


@dataclass(frozen=True, kw_only=True)
class FitReport:
    """Accuracy and loss of a fitted R-network."""

    accuracy: float  # on training batches, over the last tenth
    held_out_accuracy: float  # on an equal number of near and far pairs
    loss: float  # over the last tenth
    iterations: int  # training batches


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
    observation is in both. On a CPU the same seed gives the same weights. A fit that fails
    restores the previous weights: FloatingPointError if the loss is not finite.

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
            check_experience(name, views, r_network)
    if held_out is None:
        experience, held_out = split(experience, config)
    held_out_pairs = balanced_pairs(held_out, config, seed)
    batches = batches_of(experience, config, seed)
    num_iterations = config.num_iterations(experience.first.numel())
    if r_network.device.type == "cpu":
        num_views = 2 * config.batch_size * num_iterations
        experience = keep_drawn(experience, r_network.prepare, num_views)
    num_recent = max(1, num_iterations // 10)
    descent = Descent(r_network, experience, config)
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
    except BaseException:
        r_network.load_state_dict(before)
        raise
    finally:
        r_network.eval()
        descent.close()
    loss, accuracy = (descent.sums / num_recent).tolist()
    r_network.fitted.fill_(True)
    r_network.held_out_accuracy.fill_(accuracy_on(r_network, held_out, held_out_pairs))
    return FitReport(
        accuracy=accuracy,
        held_out_accuracy=r_network.held_out_accuracy.item(),
        loss=loss,
        iterations=num_iterations,
    )


def _check_loss(loss: Tensor, config: FitConfig) -> None:
    if not loss.isfinite():
        raise FloatingPointError(
            f"the R-network's loss became {loss.item()}: lower the learning rate "
            f"({config.learning_rate}) or check the observations"
        )
