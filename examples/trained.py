"""A run's folder together with how good its agent turned out to be."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from episodic_curiosity.runs.config import Run
from episodic_curiosity.runs.evaluate import Evaluation
from episodic_curiosity.runs.metrics_files import read_metrics, read_timing
from episodic_curiosity.support.statistics import Summary


class Trained(NamedTuple):
    """One run and what came of it."""

    run: Run
    folder: Path
    evaluation: Evaluation

    @property
    def coverage(self) -> Summary:
        """Grid-Oracle cells in an episode."""
        return self.evaluation.summary()["coverage"]

    @property
    def steps(self) -> int:
        """All that were played, those for the R-network included."""
        return int(read_metrics(self.folder)[-1]["steps"])

    @property
    def minutes(self) -> float:
        """Of training, all sittings together."""
        return read_timing(self.folder)[-1]["seconds"] / 60


def mean_coverage(group: Sequence[Trained]) -> float:
    """Of runs with different seeds, each as heavy as the others."""
    return float(np.mean([each.coverage.mean for each in group]))
