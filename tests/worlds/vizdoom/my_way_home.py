"""The map of MyWayHome, and somebody who knows the way."""

import torch
from torch import Tensor

GOAL = (1040.0, -352.0)
SPOTS = {  # where episodes start, by the number that the map gives each spot
    10: (240.0, -176.0),
    11: (464.0, -176.0),
    12: (470.331, -321.672),
    13: (466.983, -466.749),
    14: (460.326, -596.12),
    15: (543.986, -672.089),
    16: (575.372, -171.77),
    17: (686.83, -173.247),
    18: (686.646, -62.382),
    19: (464.098, -60.496),
    20: (460.326, 56.436),
    21: (571.6, 54.55),
    22: (694.19, 58.322),
    23: (871.474, 54.55),
    24: (1043.1, 60.208),
    25: (1039.737, -61.676),
    26: (1039.328, -169.884),
}
# The next spot on the way from each; from the last one the goal is in sight.
ONWARD = {15: 14, 14: 13, 13: 12, 12: 11, 10: 11, 11: 19, 19: 20, 20: 21, 21: 22, 16: 17}
ONWARD |= {17: 18, 18: 22, 22: 23, 23: 24, 24: 25, 25: 26}
NEAR = 24.0  # map units from a spot to have reached it
FORWARD, LEFT, RIGHT = 0, 1, 2
AIM = 8.0  # degrees off that still are straight ahead


def nearest_spot(position: Tensor) -> int:
    """The number of the spot nearest to (3,) or (2,)."""
    return min(SPOTS, key=lambda spot: (position[:2] - torch.tensor(SPOTS[spot])).norm())


class Walker:
    """One player's next action, from where the player is and looks."""

    def __init__(self, position: Tensor) -> None:
        self._next = nearest_spot(position)

    def act(self, position: Tensor, heading: float) -> int:
        target = torch.tensor(SPOTS.get(self._next, GOAL))
        if (target - position[:2]).norm() < NEAR:
            self._next = ONWARD.get(self._next, 0)
            target = torch.tensor(SPOTS.get(self._next, GOAL))
        east, north = (target - position[:2]).tolist()
        wanted = torch.rad2deg(torch.atan2(torch.tensor(north), torch.tensor(east))).item()
        off = (wanted - heading + 180.0) % 360.0 - 180.0
        if abs(off) <= AIM:
            return FORWARD
        return LEFT if off > 0 else RIGHT
