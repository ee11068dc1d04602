"""Draws the pictures of docs/tutorial.md; fits an R-network for about a minute.

python examples/tutorial_pictures.py docs/images
"""

import sys
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image

import episodic_curiosity as ec
from episodic_curiosity.reachability.pairs import draw_pairs
from examples.one_maze import SIZE, OneMaze, Walk, fit
from examples.sheets import (
    BLUE,
    GREY,
    LIGHT_BLUE,
    LIGHT_PINK,
    LINE,
    PINK,
    WHITE,
    Sheet,
    between,
    chart,
)

HEIGHT, WIDTH = 120, 160  # of the frames that are shown; the R-network sees 42 x 42
GAP = 8
MAP = 18  # pixels of a cell
ALPHA, BETA = 0.03, 0.5


def main() -> None:
    if len(sys.argv) != 2:
        sys.exit("usage: python examples/tutorial_pictures.py FOLDER")
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    small, large = OneMaze(42, 42), OneMaze(HEIGHT, WIDTH)
    r_network, held_out, accuracy = fit(small)
    print(f"held-out accuracy of the R-network: {accuracy:.1%}")
    walk = small.round(laps=2)
    views = small.views(walk)
    pictures = {
        "pairs": pairs_picture(r_network, held_out, large),
        "similarity": similarity_picture(r_network, views, walk, large),
        "memory": memory_picture(r_network, views, walk, large),
        "bonus": bonus_picture(r_network, views, walk, large),
    }
    for name, sheet in pictures.items():
        path = folder / f"tutorial_{name}.png"
        size = sheet.save(path)
        print(f"{path}: {sheet.width} x {sheet.height}, {size / 1000:.0f} KB")


def pairs_picture(r_network: ec.RNetwork, held_out: ec.Frames, maze: OneMaze) -> Sheet:
    """Near and far pairs that the R-network was not fitted to, with its answers."""
    num_steps = len(held_out.first)
    pairs = draw_pairs(held_out.first, ec.PairsConfig(), torch.Generator().manual_seed(3))
    sheet = Sheet(3 * (2 * WIDTH + 2) + 4 * GAP, 2 * (HEIGHT + 3 * LINE) + GAP)
    titles = {
        True: "Near pairs: at most 5 steps apart",
        False: "Far pairs: more than 25 steps apart",
    }
    for row, (is_near, title) in enumerate(titles.items()):
        top = row * (HEIGHT + 3 * LINE)
        sheet.text((GAP, top + 4), title, bold=True)
        chosen = (pairs.reachable == is_near).nonzero().flatten()
        chosen = chosen[torch.randperm(len(chosen), generator=torch.Generator().manual_seed(2))]
        for column, index in enumerate(chosen[:3].tolist()):
            times = [int(pairs.first[index]), int(pairs.second[index])]
            env = int(pairs.first_env[index])
            walk = maze.wander(num_steps, seed=64 + env)
            frames = maze.views(Walk(walk.places[times], walk.yaws[times]))
            seen = held_out.all_views[times, env]
            answer = torch.sigmoid(r_network(seen[:1], seen[1:])).item()
            left = GAP + column * (2 * WIDTH + 2 + GAP)
            for number, frame in enumerate(frames):
                sheet.frame((left + number * (WIDTH + 2), top + LINE + 8), frame)
            words = f"{abs(times[1] - times[0])} steps apart; the R-network says {answer:.2f}"
            sheet.text((left, top + LINE + HEIGHT + 12), words)
    return sheet


@torch.no_grad()
def similarity_picture(
    r_network: ec.RNetwork, views: torch.Tensor, walk: Walk, maze: OneMaze
) -> Sheet:
    """The similarity of one view to all of a round."""
    lap, here = len(views) // 2, 60
    similarity = torch.sigmoid(
        r_network(views[here].expand(lap, *views.shape[1:]), views[:lap])
    ).numpy()
    is_far = np.abs(np.arange(lap) - here) > 25
    there = int(np.argmax(np.where(is_far, similarity, 0)))
    plan = map_of(maze, walk, slice(0, lap), between(WHITE, PINK, similarity), here=here)
    left = plan.width // 2 + 2 * GAP
    sheet = Sheet(left + WIDTH + GAP + 330, plan.height // 2 + LINE + GAP)
    sheet.text((GAP, 4), "The round from above", bold=True)
    sheet.paste((GAP, LINE + 4), plan)
    for number, step in enumerate((here, there)):
        top = number * (HEIGHT + LINE + 6)
        words = (
            "The view at the arrow" if step == here else f"Step {step}: {similarity[step]:.2f}"
        )
        sheet.text((left, top + 4), words, bold=True)
        frame = maze.views(Walk(walk.places[[step]], walk.yaws[[step]]))[0]
        sheet.frame((left, top + LINE + 4), frame)
    left += WIDTH + GAP
    sheet.text((left, 4), "Its similarity to the views along the round", bold=True)
    box = (left, LINE + 10, 320, plan.height // 2 - 10)
    colours = between(GREY, PINK, similarity)
    chart(sheet, box, similarity, colours, limits=(0, 1), marks=(here,))
    return sheet


def memory_picture(
    r_network: ec.RNetwork, views: torch.Tensor, walk: Walk, maze: OneMaze
) -> Sheet:
    """The places that are remembered on the first lap, and the first views in memory."""
    lap = len(views) // 2
    _, remembered = explored(r_network, views)
    times = [time for time in range(lap) if remembered[time]]
    colours = np.tile(GREY, (lap, 1))
    plan = map_of(maze, walk, slice(0, lap), colours, memory=walk.places[times])
    columns, half = 4, (WIDTH * 3 // 4, HEIGHT * 3 // 4)
    shown = times[: 2 * columns]
    sheet = Sheet(
        plan.width // 2 + 3 * GAP + columns * (half[0] + GAP),
        max(plan.height // 2, 240) + LINE + GAP,
    )
    sheet.text((GAP, 4), f"{len(times)} of {lap} views remembered", bold=True)
    sheet.paste((GAP, LINE + 4), plan)
    left = plan.width // 2 + 3 * GAP
    sheet.text((left, 4), f"The first {len(shown)} of them", bold=True)
    frames = maze.views(Walk(walk.places[shown], walk.yaws[shown]))
    for number, frame in enumerate(frames):
        row, column = divmod(number, columns)
        place = (left + column * (half[0] + GAP), LINE + 4 + row * (half[1] + LINE + 6))
        sheet.frame(place, frame, half)
        sheet.text((place[0], place[1] + half[1] + 2), f"step {shown[number]}")
    return sheet


def bonus_picture(
    r_network: ec.RNetwork, views: torch.Tensor, walk: Walk, maze: OneMaze
) -> Sheet:
    """The bonus along two laps, as a trail and over time."""
    bonus, _ = explored(r_network, views)
    lap, most = len(views) // 2, ALPHA * BETA
    colours = np.where(
        (bonus > 0)[:, None],
        between(LIGHT_PINK, PINK, 2 * bonus / most),
        between(LIGHT_BLUE, BLUE, -bonus / most),
    )
    laps = {"The first lap": slice(0, lap), "The second lap": slice(lap, len(views))}
    left = GAP
    sheet = Sheet(2 * (SIZE * MAP + GAP) + 350, SIZE * MAP + LINE + GAP)
    for title, part in laps.items():
        order = np.argsort(bonus[part])  # what is paid is drawn last
        walked = Walk(walk.places[part][order], walk.yaws[part][order])
        sheet.text((left, 4), title, bold=True)
        plan = map_of(maze, walked, slice(None), colours[part][order])
        sheet.paste((left, LINE + 4), plan)
        left += SIZE * MAP + GAP
    sheet.text((left, 4), "The bonus of a step: paid is pink", bold=True)
    box = (left, LINE + 10, 330, SIZE * MAP - 10)
    chart(sheet, box, bonus, colours, limits=(-most, most), marks=(lap,))
    return sheet


def explored(r_network: ec.RNetwork, views: torch.Tensor) -> tuple[NDArray, NDArray]:
    """The bonus of every view of one episode, and whether it was remembered."""
    curiosity = ec.EpisodicCuriosity(r_network, 1, alpha=ALPHA, beta=BETA, aggregate="max")
    curiosity.begin(views[:1])
    bonus, added = [0.0], [0, int(curiosity.memory.added)]
    for view in views[1:]:
        bonus.append(curiosity.bonus(view[None]).item())
        added.append(int(curiosity.memory.added))
    return np.array(bonus), np.diff(added) > 0


def map_of(
    maze: OneMaze,
    walk: Walk,
    part: slice,
    colours: NDArray,
    *,
    here: int | None = None,
    memory: NDArray | None = None,
) -> Image.Image:
    """The maze from above with a coloured trail, an arrow and rings."""
    agent = None if here is None else (*walk.places[here].tolist(), float(walk.yaws[here]))
    picture = maze.world.overhead(
        pixels_per_cell=4 * MAP,
        items=(),
        trajectory=walk.places[part],
        trail_colours=colours,
        memory=memory,
        agent=agent,
        mark_size=1.9,
    )
    return Image.fromarray(picture).reduce(2)  # twice as large as shown: Sheet halves it


if __name__ == "__main__":
    main()
