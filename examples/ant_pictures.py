"""Draws a picture for the documentation: ants from behind, and their head cameras.

python examples/ant_pictures.py docs/images/ant.png
"""

import sys
from pathlib import Path

import torch
from PIL import Image, ImageDraw

from episodic_curiosity.worlds.ant.world import AntWorld
from episodic_curiosity.worlds.registry import make_world

HEIGHT, WIDTH, GAP, TITLE = 120, 160, 4, 14
NUM_ANTS = 3


def column(world: AntWorld, env: int, view: torch.Tensor) -> Image.Image:
    """An ant from behind; below, its head camera by OpenGL and the view for curiosity."""
    pictures = {
        "from behind": (world.picture(env, size=(2 * HEIGHT, 2 * WIDTH + GAP)), 0, 0),
        "its head, by OpenGL": (
            world.picture(env, person="first", size=(HEIGHT, WIDTH)),
            0,
            2 * HEIGHT + TITLE,
        ),
        "its view": (view.permute(1, 2, 0).numpy(), WIDTH + GAP, 2 * HEIGHT + TITLE),
    }
    sheet = Image.new("RGB", (2 * WIDTH + GAP, 3 * HEIGHT + 2 * TITLE), "white")
    for text, (picture, left, top) in pictures.items():
        ImageDraw.Draw(sheet).text((left + 2, top + 1), text, fill="black")
        sheet.paste(Image.fromarray(picture), (left, top + TITLE))
    return sheet


def main() -> None:
    if len(sys.argv) != 2:
        sys.exit("usage: python examples/ant_pictures.py PICTURE.png")
    world = make_world("ant/no-reward", num_envs=NUM_ANTS, seed=3)
    step = world.reset()
    generator = torch.Generator().manual_seed(0)
    columns = []
    for env in range(NUM_ANTS):
        for _ in range(14):  # random play, so that poses differ
            step = world.step(2 * torch.rand(NUM_ANTS, 8, generator=generator) - 1)
        columns.append(column(world, env, step.view[env]))
    world.close()
    width, height = columns[0].size
    sheet = Image.new("RGB", ((width + 3 * GAP) * NUM_ANTS - 3 * GAP, height), "white")
    for number, part in enumerate(columns):
        sheet.paste(part, ((width + 3 * GAP) * number, 0))
    path = Path(sys.argv[1])
    path.parent.mkdir(parents=True, exist_ok=True)
    # A palette of 256 colours keeps the file small.
    sheet.quantize(256).save(path, optimize=True)
    print(f"{path}: {sheet.width} x {sheet.height}, {path.stat().st_size / 1000:.0f} KB")


if __name__ == "__main__":
    main()
