"""Learning curves of runs and results, as the points of a line."""

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np

from episodic_curiosity.experiments.measure import OF_EPISODES
from episodic_curiosity.runs.metrics_files import read_metrics
from episodic_curiosity.show.report.chart import Points

NUM_POINTS = 40  # few enough to smooth the noise of single lines of metrics


def curve(folder: Path, metric: str, num_points: int = NUM_POINTS) -> Points:
    """A metric of a run over the steps; empty if none was recorded."""
    return thinned(read_metrics(folder), metric, num_points)


def thinned(
    lines: Sequence[Mapping[str, float]], metric: str, num_points: int = NUM_POINTS
) -> Points:
    """A metric over the steps, with lines averaged into at most `num_points` points.

    Each episode has the same weight. A point is at the last step of its piece, even if the
    metric was not measured there, so that the points of all seeds align. A piece without
    measurements has no point.
    """
    # All pieces but the last have one size: unequal ones would put a kink into the line. A
    # short last piece is merged with the one before it.
    size = max(1, math.ceil(len(lines) / num_points))
    borders = list(range(0, len(lines), size))
    if len(borders) > 1 and 2 * (len(lines) - borders[-1]) <= size:
        borders.pop()
    pieces = [lines[start:end] for start, end in pairwise([*borders, len(lines)])]
    means = ((float(piece[-1]["steps"]), _mean(piece, metric)) for piece in pieces)
    return tuple((steps, mean) for steps, mean in means if mean is not None)


def mean_curve(curves: Sequence[Points]) -> Points:
    """The mean of several curves at the steps that all of them have.

    A mean of fewer curves would jump where another begins.
    """
    if not curves:
        return ()
    by_steps = [dict(points) for points in curves]
    shared = sorted(set.intersection(*(set(points) for points in by_steps)))
    return tuple(
        (steps, sum(points[steps] for points in by_steps) / len(by_steps)) for steps in shared
    )


def _mean(lines: Sequence[Mapping[str, float]], metric: str) -> float | None:
    known = [line for line in lines if math.isfinite(line.get(metric, math.nan))]
    if not known:
        return None
    is_of_episodes = metric in OF_EPISODES
    weights = [line.get("episodes", 1.0) if is_of_episodes else 1.0 for line in known]
    return float(np.average([line[metric] for line in known], weights=weights))
