"""Learning curves: what a run's folder or a result recorded, as the points of a line."""

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np

from episodic_curiosity.experiments.measure import OF_EPISODES
from episodic_curiosity.runs.metrics_files import read_metrics
from episodic_curiosity.show.report.chart import Points

NUM_POINTS = 40  # a single line of metrics is the mean of a few episodes only: noise


def curve(folder: Path, metric: str, num_points: int = NUM_POINTS) -> Points:
    """A metric of a run's folder over the steps; empty where nothing was recorded."""
    return thinned(read_metrics(folder), metric, num_points)


def thinned(
    lines: Sequence[Mapping[str, float]], metric: str, num_points: int = NUM_POINTS
) -> Points:
    """A metric over the steps; neighbouring lines are averaged into so many points at most.

    Each episode weighs the same. A point stands at the last step that it covers, whether the
    metric was measured there or not: so do those of other seeds. A piece without any
    measurement has no point.
    """
    # All pieces but the last are of one size: unequal ones would put a kink into the line, and
    # so would a short last one.
    size = max(1, math.ceil(len(lines) / num_points))
    borders = list(range(0, len(lines), size))
    if len(borders) > 1 and 2 * (len(lines) - borders[-1]) <= size:
        borders.pop()
    pieces = [lines[start:end] for start, end in pairwise([*borders, len(lines)])]
    means = ((float(piece[-1]["steps"]), _mean(piece, metric)) for piece in pieces)
    return tuple((steps, mean) for steps, mean in means if mean is not None)


def mean_curve(curves: Sequence[Points]) -> Points:
    """The mean of several curves at the steps where each of them has a point.

    A mean of fewer would jump wherever one more begins.
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
