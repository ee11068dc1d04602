"""Learning curves: what a run's folder recorded, as the points of a line."""

import math
from pathlib import Path

import numpy as np

from episodic_curiosity.record import read_metrics

NUM_POINTS = 40  # a single line of metrics is the mean of a few episodes only: noise

Points = tuple[tuple[float, float], ...]


def curve(folder: Path, metric: str, num_points: int = NUM_POINTS) -> Points:
    """A metric over the steps; neighbouring lines are averaged into so many points at most.

    A point stands at the last step that it covers. Empty where nothing was recorded.
    """
    lines = [
        (line["steps"], line[metric])
        for line in read_metrics(folder)
        if math.isfinite(line.get(metric, math.nan))
    ]
    pieces = np.array_split(np.array(lines), min(num_points, len(lines))) if lines else []
    return tuple((float(piece[-1, 0]), float(piece[:, 1].mean())) for piece in pieces)
