"""Frames of a film: camera pictures side by side, numbers, and the bonus over time.

Shapes: h x w pixels.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from episodic_curiosity.show.film import path_map
from episodic_curiosity.show.film.episode import Episode
from episodic_curiosity.show.film.path_map import Colour, PathMap
from episodic_curiosity.worlds.base import Picture

PAPER, INK, PALE = (255, 255, 255), (26, 26, 26), (118, 118, 118)
CURVE, ZERO = (42, 120, 214), (200, 200, 200)
COLOURS = (PAPER, INK, PALE, CURVE, ZERO, *path_map.COLOURS)  # in every palette
MARGIN, GAP = 8, 8
LINE = 16  # height of a line of text, in pixels
SMALL, LARGE = 12, 13  # font sizes
SPACE = 0.3  # width of a space over the font size: the font's can be zero at small sizes
ROW = 2 * LINE + 2  # a name and a number
COLUMN = 84  # pixels, wide enough for every number and its name
CURVE_HEIGHT = 44
LAST_SECONDS = 1.5  # duration of the last frame of an episode


class Frame(NamedTuple):
    """A picture and its duration in units of 1 / fps."""

    picture: Picture
    num_moments: int


@dataclass(frozen=True)
class Storyboard:
    """The frames of a film, drawn on access to save memory."""

    title: Sequence[str]  # task and method
    episodes: Sequence[Episode]
    captions: Sequence[str]  # of the cameras
    fps: int
    height: int  # of the cameras' pictures
    map_cell: float | None  # side of the Grid-Oracle cells on a map of the path; None: no map
    has_bonus: bool

    def __len__(self) -> int:
        return sum(len(episode.shots) for episode in self.episodes)

    def __iter__(self) -> Iterator[Frame]:
        for number in range(len(self)):
            yield self[number]

    @property
    def moments(self) -> list[int]:
        """The duration of each frame in units of 1 / fps."""
        return [self._num_moments(number) for number in range(len(self))]

    def __getitem__(self, number: int) -> Frame:
        order, own = self._find(number)
        return Frame(self._draw(order, own), self._num_moments(number))

    def _find(self, number: int) -> tuple[int, int]:
        """The episode of a frame, and the frame's index in it."""
        for order, episode in enumerate(self.episodes):
            if number < len(episode.shots):
                return order, number
            number -= len(episode.shots)
        raise IndexError("frame index out of range")

    def _num_moments(self, number: int) -> int:
        order, own = self._find(number)
        is_last = own == len(self.episodes[order].shots) - 1
        return max(1, round(LAST_SECONDS * self.fps)) if is_last else 1

    def _draw(self, order: int, own: int) -> Picture:
        episode = self.episodes[order]
        shot = episode.shots[own]
        panels = dict(zip(self.captions, shot.pictures, strict=True))
        if self.map_cell is not None:
            plan = PathMap(episode, self.map_cell, self.height).draw(shot.step)
            panels[f"path, cells of {self.map_cell:g}"] = plan
        title = list(self.title)
        if len(self.episodes) > 1:
            title.append(f"episode {order + 1} of {len(self.episodes)}")
        body = _beside({caption: self._fit(panel) for caption, panel in panels.items()})
        parts = [_title(title, body.width), body]
        parts.append(_numbers(self._labels(episode, shot.step), body.width))
        if self.has_bonus:
            parts.append(_curve(episode, shot.step, body.width))
        return np.asarray(_below(parts))

    def _fit(self, picture: Picture) -> Image.Image:
        """Scales to the film's height, except if at most 10% smaller: maps stay sharp."""
        image = Image.fromarray(picture)
        if 0.9 * self.height <= image.height <= self.height:
            return image
        width = round(image.width * self.height / image.height)
        return image.resize((width, self.height), Image.Resampling.BICUBIC)

    def _labels(self, episode: Episode, step: int) -> dict[str, str]:
        labels = {"step": f"{step} of {episode.num_steps}"}
        labels["reward"] = f"{episode.reward[step]:.3g}"
        if self.has_bonus:
            labels["total bonus"] = f"{sum(episode.bonus[: step + 1]):.3g}"
        if episode.coverage:
            labels["cells covered"] = str(episode.coverage[step])
        if any(episode.remembered):
            labels["added to memory"] = str(sum(episode.remembered[: step + 1]))
        return labels


def _beside(panels: Mapping[str, Image.Image]) -> Image.Image:
    """Panels in a row, under their captions."""
    width = sum(panel.width for panel in panels.values()) + GAP * (len(panels) - 1)
    height = max(panel.height for panel in panels.values())
    sheet = Image.new("RGB", (width, LINE + height), PAPER)
    left = 0
    for caption, panel in panels.items():
        _write(sheet, (left, 0), caption, SMALL, PALE)
        sheet.paste(panel, (left, LINE))
        left += panel.width + GAP
    return sheet


def _below(parts: Sequence[Image.Image]) -> Image.Image:
    """Parts in a column; width and height are even, as MP4 requires."""
    width = max(part.width for part in parts) + 2 * MARGIN
    height = sum(part.height for part in parts) + GAP * (len(parts) - 1) + 2 * MARGIN
    sheet = Image.new("RGB", (width + width % 2, height + height % 2), PAPER)
    top = MARGIN
    for part in parts:
        sheet.paste(part, (MARGIN, top))
        top += part.height + GAP
    return sheet


def _title(parts: Sequence[str], width: int) -> Image.Image:
    """The parts of the title, on as many lines as needed."""
    lines = [""]
    for part in parts:
        longer = f"{lines[-1]}, {part}" if lines[-1] else part
        if lines[-1] and _length(longer, LARGE) > width:
            lines.append(part)
        else:
            lines[-1] = longer
    strip = Image.new("RGB", (width, LINE * len(lines)), PAPER)
    for number, line in enumerate(lines):
        _write(strip, (0, LINE * number), line, LARGE, INK)
    return strip


def _numbers(labels: Mapping[str, str], width: int) -> Image.Image:
    """Names and values in columns of equal width."""
    num_columns = min(len(labels), max(1, width // COLUMN))
    num_rows = -(-len(labels) // num_columns)
    strip = Image.new("RGB", (width, ROW * num_rows), PAPER)
    for number, (name, value) in enumerate(labels.items()):
        row, column = divmod(number, num_columns)
        left, top = round(column * width / num_columns), ROW * row
        _write(strip, (left, top), name, SMALL, PALE)
        _write(strip, (left, top + LINE - 2), value, LARGE, INK)
    return strip


def _curve(episode: Episode, step: int, width: int) -> Image.Image:
    """The bonus up to this step, on axes for the complete episode."""
    low, high = min(0.0, *episode.bonus), max(0.0, *episode.bonus)
    strip = Image.new("RGB", (width, LINE + CURVE_HEIGHT), PAPER)
    _write(strip, (0, 0), f"bonus of a step, {low:.2g} to {high:.2g}", SMALL, PALE)
    pen = ImageDraw.Draw(strip)
    past = np.array(episode.bonus[1 : step + 1])  # the first observation has no bonus
    x = np.arange(len(past)) * (width - 1) / max(1, len(episode.bonus) - 2)

    def level(bonus: np.ndarray | float) -> np.ndarray:
        return LINE + (high - np.asarray(bonus)) / ((high - low) or 1.0) * (CURVE_HEIGHT - 2)

    pen.line([(0, float(level(0.0))), (width, float(level(0.0)))], ZERO)
    if len(past) > 1:
        pen.line(np.stack((x, level(past)), axis=1).ravel().tolist(), CURVE)
    return strip


def _write(
    sheet: Image.Image, place: tuple[int, int], text: str, size: int, ink: Colour
) -> None:
    """Writes text word by word, with visible spaces."""
    pen, font = ImageDraw.Draw(sheet), ImageFont.load_default(size)
    left, top = place
    for word in text.split(" "):
        pen.text((left, top), word, ink, font)
        left += _length(f"{word} ", size)


def _length(text: str, size: int) -> int:
    """The width in pixels of a text drawn by `_write`."""
    words, font = text.split(" "), ImageFont.load_default(size)
    spaces = (len(words) - 1) * round(SPACE * size)
    return sum(round(font.getlength(word)) for word in words) + spaces
