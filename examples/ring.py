"""Curiosity in a minimal world: a ring of coloured cells.

A walker sees the colours of the cells around it. An R-network is fitted to random walks; then
the bonus of a new walker is computed for every step of an episode.
"""

import torch
from torch import Tensor

import episodic_curiosity as ec

VIEW_SHAPE = (3, 16, 16)


class Ring:
    """N walkers on a ring of randomly coloured cells, each seeing the 16 cells around it."""

    def __init__(self, num_cells: int = 300, *, num_envs: int, seed: int = 0) -> None:
        self.generator = torch.Generator().manual_seed(seed)
        colours = torch.Generator().manual_seed(7)  # the same ring for every seed
        self.colours = torch.randint(
            0, 256, (num_cells, 3), generator=colours, dtype=torch.uint8
        )
        self.place = torch.randint(num_cells, (num_envs,), generator=self.generator)
        self.direction = torch.ones(num_envs, dtype=torch.int64)

    def walk(self) -> None:
        """Moves by one cell; the direction is kept 99% of the time."""
        turns = torch.rand(len(self.place), generator=self.generator) < 0.01
        self.direction = torch.where(turns, -self.direction, self.direction)
        self.place = (self.place + self.direction) % len(self.colours)

    def view(self, place: Tensor | None = None) -> Tensor:
        """Frames (N, 3, 16, 16): a column of pixels for each cell, the walker in the middle."""
        place = self.place if place is None else place
        width = VIEW_SHAPE[2]
        cells = (place[:, None] + torch.arange(width) - width // 2) % len(self.colours)
        columns = self.colours[cells].permute(0, 2, 1)  # (N, 3, 16)
        return columns[:, :, None, :].expand(-1, *VIEW_SHAPE)


def random_walk(num_steps: int, *, num_envs: int, seed: int) -> ec.Frames:
    """The views of N walkers, in one long episode each."""
    ring = Ring(num_envs=num_envs, seed=seed)
    views = []
    for _ in range(num_steps):
        views.append(ring.view())
        ring.walk()
    first = torch.zeros(num_steps, num_envs, dtype=torch.bool)
    first[0] = True
    return ec.Frames(torch.stack(views), first)


def main() -> None:
    torch.manual_seed(0)
    print("A ring of 300 coloured cells; a walker sees the 16 cells around it.")
    print("Fitting an R-network to 32,000 steps of random walking ...")
    r_network = ec.RNetwork(view_shape=VIEW_SHAPE)
    report = ec.fit_r_network(
        r_network,
        random_walk(2_000, num_envs=16, seed=0),
        ec.FitConfig(iterations=3_000),
        held_out=random_walk(1_000, num_envs=16, seed=1),
    )
    print(f"  held-out accuracy {report.held_out_accuracy:.1%}\n")

    print("One episode of a new walker (alpha 1, beta 0.5, F = max):")
    curiosity = ec.EpisodicCuriosity(r_network, num_envs=1, alpha=1.0, aggregate="max")
    ring = Ring(num_envs=1)
    first, remembered = True, 0
    for what, path in (
        ("walks through 100 cells, all new", range(1, 101)),
        ("walks back through them, all known", range(100, 0, -1)),
        ("walks through 80 cells, all new", range(0, -80, -1)),
        ("jumps to the far side of the ring", [150]),
        ("stands still there for 20 steps", [150] * 20),
    ):
        bonuses = []
        for place in path:
            view = ring.view(torch.tensor([place]))
            bonuses.append(curiosity.bonus_same_step(view, torch.tensor([first])).item())
            first = False
        newly = int(curiosity.memory.count) - remembered
        remembered += newly
        mean = sum(bonuses) / len(bonuses)
        print(f"  {what:36} mean bonus {mean:+.2f}, remembers {newly:2} of {len(bonuses)}")
    print("\nCells within 5 steps of memory have a negative bonus and are not remembered. A")
    print("walker's next cell is close to one just remembered, so new cells cost less than")
    print("known ones and sometimes pay; a jump to a distant cell pays immediately.")


if __name__ == "__main__":
    main()
