"""dense-2: ten good and ten bad things and the body on 21 points of a grid in one room.

Shapes: N environments, B = 20 things.
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
POINT_BITS = 7  # hold the number of one of the points
FIRST_POINT = (-450.0, -700.0)

# bad thing, good thing, wall look, floor look; the same in every split, as the paper plays the
# level's training script throughout
CONFIGURATIONS = (
    (Sprite.HAT, Sprite.CAN, CORRIDOR_LOOK, CORRIDOR_LOOK),
    (Sprite.CAKE, Sprite.BALLOON, CORRIDOR_LOOK, CORRIDOR_LOOK),
    (Sprite.CAKE, Sprite.BALLOON, BRIGHT_RED_WALL, BRIGHT_BLUE_FLOOR),
)


class Things(NamedTuple):
    """One episode's room, for each row."""

    sprite: Tensor  # (N, B) uint8
    place: Tensor  # (N, B, 2) float32
    start: Tensor  # (N, 2) float32, where the body begins
    wall_look: Tensor  # (N,) uint8
    floor_look: Tensor  # (N,) uint8


def configurations(device: torch.device) -> Tensor:
    """(C, 4) uint8, what `scatter` chooses from."""
    return torch.tensor(CONFIGURATIONS, dtype=torch.uint8, device=device)


def scatter(draw: Tensor, configurations: Tensor) -> Things:
    """Draws a configuration and 21 different points from (N,) random bits."""
    chosen = configurations[random_below(len(configurations), draw, 0)]  # (N, 4)
    points = torch.arange(COLUMNS * ROWS, device=draw.device)
    # Each point's number below its bits; a sort would be compiled, for minutes.
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
