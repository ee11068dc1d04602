"""Draws a picture for the documentation: every maze task from above and in first person.

python examples/maze_pictures.py docs/images/mazes.png
"""

import sys
from pathlib import Path

import numpy as np
import torch
from PIL import Image, ImageDraw

from episodic_curiosity.worlds.maze.tasks import TASKS
from episodic_curiosity.worlds.maze.world import MazeWorld
from episodic_curiosity.worlds.registry import make_world

HEIGHT, WIDTH, GAP = 120, 160, 4
NUM_FRAMES = 4
NUM_ENVS = 256  # the most varied frames are shown
WALKS_ON = torch.tensor([0, 0, 0, 6, 7])  # forward, or forward and turning


def row_of(task: str, seed: int) -> Image.Image:
    """One level from above with a random path, then first-person frames."""
    options = {"num_envs": NUM_ENVS, "seed": seed, "num_levels": 50}
    # The walker's frames are not used.
    walker = make_world(f"maze/{task}", observation_size=(1, 1), **options)
    walker.reset()
    generator = torch.Generator().manual_seed(4)
    way = []
    for time in range(300):
        if time % 6 == 0:  # repeats each action for 6 steps
            chosen = torch.randint(len(WALKS_ON), (NUM_ENVS,), generator=generator)
        step = walker.step(WALKS_ON[chosen])
        way.append(step.position[0, :2].numpy())
    above = Image.fromarray(walker.overhead(trajectory=np.stack(way)))

    world = make_world(f"maze/{task}", observation_size=(HEIGHT, WIDTH), **options)
    world.load_state(walker.state())
    frames = look_at_things(world, generator)
    if "fire" in world.spec.action_names:
        for _ in range(3):
            shot = world.step(torch.full((NUM_ENVS,), world.spec.action_names.index("fire")))
        frames[-1] = most_varied(shot.observation, 1)[0]

    row = Image.new("RGB", ((WIDTH + GAP) * (NUM_FRAMES + 1), HEIGHT + GAP + 14), "white")
    ImageDraw.Draw(row).text((2, 1), f"maze/{task}", fill="black")
    above.thumbnail((WIDTH, HEIGHT))
    row.paste(above, ((WIDTH - above.width) // 2, 14))
    for number, frame in enumerate(frames):
        row.paste(Image.fromarray(frame), ((WIDTH + GAP) * (number + 1), 14))
    return row


def look_at_things(world: MazeWorld, generator: torch.Generator) -> list[np.ndarray]:
    """The most varied frames from positions a short distance before an object."""
    scene = world.scene()
    distance = 120 + 200 * torch.rand(NUM_ENVS, generator=generator)
    yaw = 360 * torch.rand(NUM_ENVS, generator=generator)
    ahead = torch.stack([yaw.deg2rad().cos(), yaw.deg2rad().sin()], dim=1)
    target = scene.sprite_position[:, 0]
    position = target - ahead * distance[:, None]
    stays = ~world._on_floor(position)
    position[stays] = scene.position[stays]
    yaw = yaw + 40 * (torch.rand(NUM_ENVS, generator=generator) - 0.5)
    return most_varied(world.place(position, yaw).observation, NUM_FRAMES)


def most_varied(observation: torch.Tensor, how_many: int) -> list[np.ndarray]:
    """The frames whose colours have the highest entropy."""
    frames = observation.permute(0, 2, 3, 1).numpy()
    scores = []
    for frame in frames:
        _, counts = np.unique(frame.reshape(-1, 3) // 64, axis=0, return_counts=True)
        share = counts / counts.sum()
        scores.append(-(share * np.log(share)).sum())
    return [frames[index] for index in np.argsort(scores)[::-1][:how_many]]


def main() -> None:
    if len(sys.argv) != 2:
        sys.exit("usage: python examples/maze_pictures.py PICTURE.png")
    rows = [row_of(task, seed) for seed, task in enumerate(TASKS)]
    sheet = Image.new("RGB", (rows[0].width, sum(row.height for row in rows)), "white")
    top = 0
    for row in rows:
        sheet.paste(row, (0, top))
        top += row.height
    path = Path(sys.argv[1])
    path.parent.mkdir(parents=True, exist_ok=True)
    # A palette of 256 colours keeps the file small.
    sheet.quantize(256).save(path, optimize=True)
    print(f"{path}: {sheet.width} x {sheet.height}, {path.stat().st_size / 1000:.0f} KB")


if __name__ == "__main__":
    main()
