"""A run's folder with the evaluation of its agent."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from episodic_curiosity.runs.config import Run
from episodic_curiosity.runs.evaluate import Evaluation
from episodic_curiosity.runs.metrics_files import read_metrics, read_timing
from episodic_curiosity.support.statistics import Summary


class Trained(NamedTuple):
    """One run and its evaluation."""

    run: Run
    folder: Path
    evaluation: Evaluation

    @property
    def coverage(self) -> Summary:
        """Grid-Oracle cells per episode."""
        return self.evaluation.summary()["coverage"]

    @property
    def steps(self) -> int:
        """All environment steps, including those for the R-network."""
        return int(read_metrics(self.folder)[-1]["steps"])

    @property
    def minutes(self) -> float:
        """Total training time, over all resumes."""
        return read_timing(self.folder)[-1]["seconds"] / 60


def mean_coverage(group: Sequence[Trained]) -> float:
    """Mean of the seeds' mean coverage."""
    return float(np.mean([each.coverage.mean for each in group]))
