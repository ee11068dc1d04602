"""Pictures made of frames, maps, charts and text.

A sheet is drawn twice as large and halved, so that text and lines are smooth. Shapes: T values.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

WHITE, GREY = np.array([255, 255, 255]), np.array([110, 110, 110])
PINK, BLUE = np.array([214, 0, 110]), np.array([30, 90, 220])
LIGHT_PINK, LIGHT_BLUE = np.array([255, 170, 210]), np.array([190, 215, 255])
INK, PALE, PAPER = (30, 30, 30), (170, 170, 170), (255, 255, 255)
LINE = 20  # height of a line of text
TWICE = 2


class Sheet:
    """A white picture; places and sizes are in pixels of the finished one."""

    def __init__(self, width: int, height: int) -> None:
        self.width, self.height = width, height
        self.image = Image.new("RGB", (TWICE * width, TWICE * height), PAPER)
        self.pen = ImageDraw.Draw(self.image)

    def text(self, place: tuple[float, float], words: str, *, bold: bool = False) -> None:
        """Writes a line of text at its upper left corner."""
        font = ImageFont.load_default(TWICE * (14 if bold else 13))
        x, y = (TWICE * part for part in place)
        self.pen.text((x, y), words, INK, font, stroke_width=0.4 if bold else 0)

    def paste(self, place: tuple[int, int], image: Image.Image) -> None:
        """Adds an image that is already twice as large."""
        self.image.paste(image, (TWICE * place[0], TWICE * place[1]))

    def frame(
        self, place: tuple[int, int], frame: torch.Tensor, size: tuple[int, int] | None = None
    ) -> None:
        """Adds a (3, height, width) frame, in a size (width, height) if one is given."""
        picture = Image.fromarray(frame.permute(1, 2, 0).numpy())
        width, height = size or picture.size
        how = Image.Resampling.BICUBIC if size else Image.Resampling.NEAREST
        self.paste(place, picture.resize((TWICE * width, TWICE * height), how))

    def line(self, points: NDArray[np.float64], colour: Sequence[int], width: float) -> None:
        """Draws a line through (T, 2) points."""
        self.pen.line(
            (TWICE * points).ravel().tolist(), tuple(colour), round(TWICE * width), "curve"
        )

    def save(self, path: Path) -> int:
        """Writes a small PNG and returns its size in bytes."""
        self.image.reduce(TWICE).quantize(256).save(path, optimize=True)
        return path.stat().st_size


def between(
    low: NDArray[np.int64], high: NDArray[np.int64], share: NDArray[np.floating]
) -> NDArray[np.float64]:
    """Colours (T, 3) between two, for (T,) shares in [0, 1]."""
    return low + (high - low) * np.clip(share, 0, 1)[:, None]


def chart(
    sheet: Sheet,
    box: tuple[int, int, int, int],
    values: NDArray[np.floating],
    colours: NDArray[np.floating],
    *,
    limits: tuple[float, float],
    marks: tuple[int, ...],
) -> None:
    """Draws (T,) values over steps, each in its colour, with marked steps, in (x, y, w, h)."""
    left, top, width, height = box
    left, width, height = left + 44, width - 44, height - LINE
    low, high = limits

    def at(step: float, value: float) -> tuple[float, float]:
        share = (value - low) / (high - low)
        return left + step / (len(values) - 1) * width, top + (1 - share) * height

    for value in (low, (low + high) / 2, high):
        y = at(0, value)[1]
        sheet.line(np.array([[left, y], [left + width, y]]), PALE, 0.5)
        sheet.text((left - 44, y - 8), f"{value:+.3f}" if low < 0 else f"{value:.1f}")
    for step in marks:
        sheet.line(np.array([at(step, low), at(step, high)]), INK, 0.5)
        sheet.text((at(step, low)[0] + 3, top + height + 2), f"step {step}")
    sheet.text((left, top + height + 2), "step 0")
    points = np.array([at(step, value) for step, value in enumerate(values)])
    for step in range(len(values) - 1):
        higher = step + int(values[step + 1] > values[step])
        sheet.line(points[step : step + 2], colours[higher].astype(int), 2)
