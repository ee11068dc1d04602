"""A film of two agents in the same maze: their views above maps of their paths.

An animated WebP file: full colours in a fifth of a GIF's size, and every browser plays it. The
gaps are transparent, so it fits a light and a dark page. Needs Pillow. Shapes: P positions of a
walk, h x w pixels.
"""

import dataclasses
import io
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from episodic_curiosity.runs.config import Run
from episodic_curiosity.worlds.base import Picture
from episodic_curiosity.worlds.lab.elements import TEXT_MAZE
from examples.walks import Maps, Walk, open_maze

PIXELS_PER_CELL = 18  # of the maps; sets the width of the film
FRAMES, FPS = 300, 15  # a time lapse of 20 s
LAST_SECONDS = 2.5  # duration of the last frame
GAP = 8
FONT_SIZE, STRIP = 22, 46  # of the text below the maps and of its strip, in pixels
BAR = 8  # height of the bar below the text
QUALITY, EFFORT = 55, 1  # of WebP; more effort takes longer for little
JUMP = 60.0  # units: a longer step is a respawn
FINER = 2  # supersampling factor of the maps
CLEAR, STRIP_COLOUR, REST = (0, 0, 0, 0), (30, 30, 34, 255), (70, 70, 76, 255)
INK = (255, 255, 255, 255)
BATCH = 50  # views drawn at a time


class Side(NamedTuple):
    """One agent's half of the film."""

    run: Run
    walk: Walk
    path: NDArray[Any]  # (P, 3) colours
    bar: tuple[int, int, int]  # colour of the bar of cells covered


def pair_film(sides: Sequence[Side], env: int) -> bytes:
    """Draws the complete episodes of agents on the level of an environment."""
    num_steps = min(side.walk.num_steps for side in sides)
    frames = min(FRAMES, num_steps + 1)
    steps = np.linspace(0, num_steps, frames).round().astype(int)
    most = max(side.walk.covered[num_steps] for side in sides)
    halves = [_Half(side, env, steps, int(most)) for side in sides]
    images = (_beside([half.frame(number) for half in halves]) for number in range(frames))
    durations = [round(1000 / FPS)] * (frames - 1) + [round(1000 * LAST_SECONDS)]
    first, buffer = next(images), io.BytesIO()
    first.save(
        buffer,
        "WEBP",
        save_all=True,
        append_images=images,
        duration=durations,
        loop=0,
        quality=QUALITY,
        method=EFFORT,
    )
    return buffer.getvalue()


class _Half:
    """Draws the frames of one agent, in order."""

    def __init__(self, side: Side, env: int, steps: NDArray[Any], most: int) -> None:
        self._walk, self._colours, self._steps = side.walk, side.path, steps
        self._bar, self._most = (*side.bar, 255), most
        plan = Maps(side.run, env + 1).picture(
            env, pixels_per_cell=FINER * PIXELS_PER_CELL, agent=None
        )
        self._map = Image.fromarray(plan)
        self._pen = ImageDraw.Draw(self._map)
        self._drawn = 0  # the step up to which the map has the path
        self._width = self._map.width // FINER
        height = self._width * 3 // 4
        self._views = _views(side, (height, self._width), steps)

    def frame(self, number: int) -> Image.Image:
        """The view, the map with the path so far, and the cells covered."""
        step = int(self._steps[number])
        view = Image.fromarray(self._views[number])
        plan = self._plan(step)
        top, below = view.height + GAP, view.height + GAP + plan.height
        sheet = Image.new("RGBA", (self._width, below + STRIP), CLEAR)
        sheet.paste(view, (0, 0))
        sheet.paste(plan, (0, top))
        self._write(ImageDraw.Draw(sheet), below, step)
        return sheet

    def _plan(self, step: int) -> Image.Image:
        for later in range(self._drawn + 1, step + 1):
            here = self._walk.places[later - 1 : later + 1]
            if np.linalg.norm(here[1] - here[0]) <= JUMP:
                colour = tuple(int(part) for part in self._colours[later])
                self._pen.line([*map(self._pixel, here)], colour, 4 * FINER)
        self._drawn = step
        marked = self._map.copy()
        x, y = self._pixel(self._walk.places[step])
        heading = np.radians(self._walk.yaws[step])
        for size, colour in ((8.5, (255, 255, 255)), (6.5, (20, 20, 20))):
            corners = [
                (
                    x + FINER * size * reach * np.cos(heading + turn),
                    y - FINER * size * reach * np.sin(heading + turn),
                )
                for turn, reach in ((0.0, 1.2), (2.5, 1.0), (-2.5, 1.0))
            ]
            ImageDraw.Draw(marked).polygon(corners, colour)
        return marked.reduce(FINER)

    def _pixel(self, place: NDArray[Any]) -> tuple[float, float]:
        """A place on the supersampled map, whose top is north."""
        east, north = (place - np.array(TEXT_MAZE.origin)) / np.array(TEXT_MAZE.cell)
        scale = FINER * PIXELS_PER_CELL
        return float(east * scale), float(self._map.height - north * scale)

    def _write(self, pen: ImageDraw.ImageDraw, top: int, step: int) -> None:
        covered = int(self._walk.covered[step])
        font = ImageFont.load_default(FONT_SIZE)
        right, bottom = self._width - 1, top + STRIP - 1
        pen.rectangle((0, top, right, bottom), STRIP_COLOUR)
        pen.text((10, top + 5), f"{covered} cells", INK, font)
        pen.text((self._width - 10, top + 5), f"step {step}", INK, font, anchor="ra")
        pen.rectangle((0, bottom - BAR + 1, right, bottom), REST)
        if reached := round(covered / self._most * right):
            pen.rectangle((0, bottom - BAR + 1, reached, bottom), self._bar)


def _views(side: Side, size: tuple[int, int], steps: NDArray[Any]) -> list[Picture]:
    """The views at some steps in a larger size than the agent's own."""
    world = dataclasses.replace(side.run.world, view_size=size)
    drawer = open_maze(dataclasses.replace(side.run, world=world), 1)
    drawer.reset()
    snapshots = torch.from_numpy(side.walk.snapshots[steps])
    return [
        view.permute(1, 2, 0).numpy()
        for part in snapshots.split(BATCH)
        for view in drawer.redraw(part)
    ]


def _beside(halves: Sequence[Image.Image]) -> Image.Image:
    width = sum(half.width for half in halves) + GAP * (len(halves) - 1)
    sheet = Image.new("RGBA", (width, halves[0].height), CLEAR)
    left = 0
    for half in halves:
        sheet.paste(half, (left, 0))
        left += half.width + GAP
    return sheet
