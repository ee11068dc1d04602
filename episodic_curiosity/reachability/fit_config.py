"""How long and on which pairs an R-network is fitted."""

from dataclasses import dataclass, field

from episodic_curiosity.reachability.pairs import STEPS_PER_PAIR, PairsConfig
from episodic_curiosity.support.checks import check_at_least, check_number, check_type, short


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

        Wherever borders fall, this many contain an episode, or half of one, with a far pair of
        that episode.
        """
        return 8 * (self.pairs.margin + 1)

    def num_iterations(self, num_steps: int) -> int:
        """The number of training batches for `num_steps` steps of experience."""
        if self.iterations is not None:
            return self.iterations
        assert self.epochs is not None
        return max(1, self.epochs * num_steps // STEPS_PER_PAIR // self.batch_size)
