"""The room of dense-2: ten good objects, ten bad ones and the body on a grid of points.

Shapes: N environments, B = 20 objects.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from episodic_curiosity.support.randomness import random_below, random_bits
from episodic_curiosity.worlds.lab.elements import Sprite
from episodic_curiosity.worlds.maze.render.textures import (
    BRIGHT_BLUE_FLOOR,
    BRIGHT_RED_WALL,
    CORRIDOR_LOOK,
)

BAD = (Sprite.HAT, Sprite.CAKE)
GOOD = (Sprite.CAN, Sprite.BALLOON)
NUM_EACH = 10
COLUMNS, ROWS, SPACING = 10, 9, 150.0
POINT_BITS = 7  # enough to number the 90 points
FIRST_POINT = (-450.0, -700.0)

# Bad object, good object, wall look, floor look. The same in every split: the paper uses the
# training script of the level throughout.
CONFIGURATIONS = (
    (Sprite.HAT, Sprite.CAN, CORRIDOR_LOOK, CORRIDOR_LOOK),
    (Sprite.CAKE, Sprite.BALLOON, CORRIDOR_LOOK, CORRIDOR_LOOK),
    (Sprite.CAKE, Sprite.BALLOON, BRIGHT_RED_WALL, BRIGHT_BLUE_FLOOR),
)


class Things(NamedTuple):
    """The objects and looks of one episode, for each row."""

    sprite: Tensor  # (N, B) uint8
    place: Tensor  # (N, B, 2) float32
    start: Tensor  # (N, 2) float32, position of the body
    wall_look: Tensor  # (N,) uint8
    floor_look: Tensor  # (N,) uint8


def configurations(device: torch.device) -> Tensor:
    """Returns CONFIGURATIONS as a (C, 4) uint8 tensor."""
    return torch.tensor(CONFIGURATIONS, dtype=torch.uint8, device=device)


def scatter(draw: Tensor, configurations: Tensor) -> Things:
    """Draws a configuration and 21 distinct points from (N,) random bits."""
    chosen = configurations[random_below(len(configurations), draw, 0)]  # (N, 4)
    points = torch.arange(COLUMNS * ROWS, device=draw.device)
    # Random bits above each point's number, then topk: a sort would compile for minutes.
    numbered = random_bits(draw[:, None], 1, points) << POINT_BITS | points
    order = numbered.topk(2 * NUM_EACH + 1, largest=False).values & ((1 << POINT_BITS) - 1)
    x = order % COLUMNS * SPACING + FIRST_POINT[0]
    y = order // COLUMNS * SPACING + FIRST_POINT[1]
    place = torch.stack((x, y), dim=2)  # (N, 21, 2)
    return Things(
        sprite=chosen[:, :2].repeat_interleave(NUM_EACH, dim=1),
        place=place[:, :-1].contiguous(),
        start=place[:, -1].contiguous(),
        wall_look=chosen[:, 2],
        floor_look=chosen[:, 3],
    )
