"""Start, reward and end of an ant's episodes.

The paper's supplement S1, on the CPU like MuJoCo. Shapes: N environments, R episodes.
"""

import math
from enum import IntEnum
from typing import NamedTuple

import torch
from torch import Tensor

from episodic_curiosity.support.randomness import random_bits, random_unit
from episodic_curiosity.worlds.ant.body import NUM_POSITIONS, NUM_VELOCITIES

EPISODE_STEPS = 1000
ORACLE_CELL = 5.0  # units, the side of a Grid-Oracle cell
START = 100.0  # an episode starts at most this far from the floor's centre, in x and in y
HEIGHT = 0.75  # of the torso at the start
LOWEST, HIGHEST = 0.2, 1.0  # of the torso; outside, an episode ends
NOISE = 0.1  # of positions and velocities at the start
FIRST_CIRCLE, NEXT_CIRCLE = 10.0, 0.5  # radii, around the start


class Purpose(IntEnum):
    """Separates random numbers by their use."""

    PLACE = 0
    JOINTS = 1
    VELOCITIES = 2
    FLOOR = 3
    PHASE = 4


class Episodes(NamedTuple):
    """State of the episodes of N environments."""

    key: Tensor  # (N,) int64, seeds an environment's random numbers
    number: Tensor  # (N,) int64, episodes started
    clock: Tensor  # (N,) int64, steps taken in the episode
    start: Tensor  # (N, 2) float64, in units
    circles: Tensor  # (N,) int64, circles passed


def no_episodes(key: Tensor) -> Episodes:
    """The state before the first episode."""
    zeros = torch.zeros_like(key)
    start = torch.zeros(len(key), 2, dtype=torch.float64)
    return Episodes(key, zeros, zeros.clone(), start, zeros.clone())


def draw_start(key: Tensor, number: Tensor) -> tuple[Tensor, Tensor]:
    """Draws the initial positions (R, 15) and velocities (R, 14) of episodes, float64."""
    place = 2 * _uniform(key, number, Purpose.PLACE, 2) - 1
    noise = 2 * _uniform(key, number, Purpose.JOINTS, NUM_POSITIONS) - 1
    rest = torch.zeros_like(noise)
    rest[:, :2] = START * place
    rest[:, 2] = HEIGHT
    rest[:, 3] = 1.0  # an upright quaternion
    radius, angle = _uniform(key, number, Purpose.VELOCITIES, 2 * NUM_VELOCITIES).chunk(2, 1)
    normal = (-2 * (1 - radius).log()).sqrt() * (2 * math.pi * angle).cos()
    # Rounded, since a logarithm's last bit may depend on the rest of the batch.
    return rest + NOISE * noise, NOISE * normal.float().double()


def floor_seed(key: Tensor, number: Tensor) -> Tensor:
    """(R,) int32, the seeds of the episodes' floors."""
    return (random_bits(key, number, Purpose.FLOOR) - (1 << 31)).to(torch.int32)


def is_healthy(positions: Tensor) -> Tensor:
    """(N,) bool: the torso is neither too low nor too high."""
    return (positions[:, 2] >= LOWEST) & (positions[:, 2] <= HIGHEST)


def pass_circles(episodes: Episodes, positions: Tensor) -> Tensor:
    """Counts the circles passed for the first time, (N,) float32, and records them."""
    distance = (positions[:, :2] - episodes.start).square().sum(1).sqrt()
    passed = ((distance - FIRST_CIRCLE) / NEXT_CIRCLE).floor().to(torch.int64) + 1
    passed = torch.maximum(passed, episodes.circles)
    new = passed - episodes.circles
    episodes.circles.copy_(passed)
    return new.to(torch.float32)


def _uniform(key: Tensor, number: Tensor, purpose: Purpose, count: int) -> Tensor:
    """(R, count) float64 in [0, 1)."""
    return random_unit(key[:, None], number[:, None], purpose, torch.arange(count)).double()
