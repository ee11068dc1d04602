"""The bonus of an ant's R-network for standing, walking and turning on the spot.

python examples/ant_bonus.py RUN

Standing ants are carried over the floor, or turned, without moving a leg: the bonus depends on
position and direction alone. RUN is the folder of an ant's run of ppo+ec or ppo+eco; the bonus
is that of ant/no-reward for every run.
"""

import math
import sys
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

import episodic_curiosity as ec
from episodic_curiosity.runs.record import read_config

NUM_ANTS, NUM_STEPS, SETTLING = 4, 150, 100
PLACE, TURN = slice(0, 2), slice(3, 7)  # indices into a snapshot: x and y, a quaternion


class Motion(NamedTuple):
    """Displacement of an ant per step."""

    speed: float = 0.0  # units
    turn: float = 0.0  # radians


MOTIONS = {
    "standing": Motion(),
    "walking, 1 unit a second": Motion(speed=0.05),
    "walking, 2 units a second": Motion(speed=0.1),
    "turning, a round in 6 s": Motion(turn=2 * math.pi / 120),
    "turning, a round in 3 s": Motion(turn=2 * math.pi / 60),
}


def moved(snapshot: Tensor, motion: Motion, time: int) -> Tensor:
    """Returns (N, 120) snapshots of the ants after `time` steps of the motion."""
    numbers = snapshot.view(torch.float32).clone()
    numbers[:, PLACE] += torch.tensor([motion.speed * time, 0.0])
    half = motion.turn * time / 2
    w, x, y, z = numbers[:, TURN].unbind(dim=1)
    cos, sin = math.cos(half), math.sin(half)  # about the vertical, applied first
    turned = (cos * w - sin * z, cos * x - sin * y, cos * y + sin * x, cos * z + sin * w)
    numbers[:, TURN] = torch.stack(turned, dim=1)
    return numbers.view(torch.uint8)


def load(folder: Path) -> ec.RNetwork:
    """Loads the R-network of an ant's run; raises ValueError unless it takes views."""
    task = read_config(folder)["task"]
    if not task.startswith("ant/"):
        raise ValueError(f"{folder} holds a run of {task}, wanted one of ant/...")
    r_network = ec.RNetwork.load(folder)
    if len(r_network.config.view_shape) != 3:
        raise ValueError(f"the R-network in {folder} takes vectors, wanted one for views")
    return r_network


def main() -> None:
    if len(sys.argv) != 2:
        sys.exit("usage: python examples/ant_bonus.py RUN")
    try:
        r_network = load(Path(sys.argv[1]))
    except ValueError as error:
        sys.exit(str(error))
    _, height, width = r_network.config.view_shape
    world = ec.make_world(
        "ant/no-reward", num_envs=NUM_ANTS, seed=0, split="test", view_size=(height, width)
    )
    world.reset()
    for _ in range(SETTLING):
        world.step(torch.zeros(NUM_ANTS, 8))
    still = world.snapshot()
    print(f"{'bonus of a step, 0 to 1':28}first 50 steps   last 50 of {NUM_STEPS}")
    for name, motion in MOTIONS.items():
        curiosity = ec.EpisodicCuriosity(
            r_network,
            NUM_ANTS,
            alpha=1.0,
            beta=1.0,
            aggregate="tenth_largest",
            memory_capacity=1000,
        )
        paid = [
            curiosity.bonus_same_step(
                world.redraw(moved(still, motion, time)), torch.full((NUM_ANTS,), time == 0)
            ).mean()
            for time in range(NUM_STEPS)
        ]
        first, last = torch.stack(paid[1:51]).mean(), torch.stack(paid[-50:]).mean()
        print(f"{name:28}{first:14.2f}{last:19.2f}", flush=True)


if __name__ == "__main__":
    main()
