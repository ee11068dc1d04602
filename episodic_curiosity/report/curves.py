"""Learning curves: what a run's folder or a result recorded, as the points of a line."""

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np

from episodic_curiosity.record import read_metrics
from episodic_curiosity.report.chart import Points

NUM_POINTS = 40  # a single line of metrics is the mean of a few episodes only: noise


def curve(folder: Path, metric: str, num_points: int = NUM_POINTS) -> Points:
    """A metric of a run's folder over the steps; empty where nothing was recorded."""
    return thinned(read_metrics(folder), metric, num_points)


def thinned(
    lines: Iterable[Mapping[str, float]], metric: str, num_points: int = NUM_POINTS
) -> Points:
    """A metric over the steps; neighbouring lines are averaged into so many points at most.

    A point stands at the last step that it covers.
    """
    known = [
        (line["steps"], line[metric])
        for line in lines
        if math.isfinite(line.get(metric, math.nan))
    ]
    # All pieces but the last are of one size: unequal ones would put a kink into the line.
    size = max(1, math.ceil(len(known) / num_points))
    pieces = [np.array(known[start : start + size]) for start in range(0, len(known), size)]
    return tuple((float(piece[-1, 0]), float(piece[:, 1].mean())) for piece in pieces)


def mean_curve(curves: Sequence[Points]) -> Points:
    """The mean of several curves at the steps where each of them has a point."""
    if not curves:
        return ()
    by_steps = [dict(points) for points in curves]
    shared = sorted(set.intersection(*(set(points) for points in by_steps)))
    return tuple(
        (steps, sum(points[steps] for points in by_steps) / len(by_steps)) for steps in shared
    )
