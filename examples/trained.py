"""A run's folder with the evaluation of its agent."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from episodic_curiosity.runs.config import Run
from episodic_curiosity.runs.evaluate import Evaluation
from episodic_curiosity.runs.evaluate_folder import evaluate_run
from episodic_curiosity.runs.metrics_files import METRICS, read_metrics, read_timing
from episodic_curiosity.runs.train import train
from episodic_curiosity.support.statistics import Summary
from examples.walks import Walk, walk

NUM_WALKS = 4  # of the test episodes, drawn from above


class Trained(NamedTuple):
    """One run, its evaluation and its first test episodes."""

    run: Run
    folder: Path
    evaluation: Evaluation
    walks: list[Walk]

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


def train_and_evaluate(run: Run, folder: Path, episodes: int) -> Trained:
    """Trains or resumes an agent and evaluates it on unseen levels."""
    train(run, folder, resume=True, progress=False)
    evaluation = evaluate_run(folder, episodes=episodes, device=run.device)
    num_walks = min(NUM_WALKS, run.world.num_envs, episodes)
    return Trained(run, folder, evaluation, walk(folder, num_walks))


def newest_metrics(folder: Path) -> dict[str, float]:
    """The newest line of a run's metrics, which may not have begun."""
    lines = read_metrics(folder) if (folder / METRICS).exists() else []
    return lines[-1] if lines else {"steps": 0}


def mean_coverage(group: Sequence[Trained]) -> float:
    """Mean of the seeds' mean coverage."""
    return float(np.mean([each.coverage.mean for each in group]))
